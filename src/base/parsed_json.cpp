#include "base/parsed_json.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace luaspy {
namespace {

// Builds a value from what nlohmann's parser reports; a function that returns false ends the parsing.
class JsonBuilder {
 public:
  JsonBuilder(std::size_t deepest, const KeepJson& keep) : deepest_(deepest), keep_(keep) {}

  Json take() { return std::move(root_); }

  bool null() { return put(Json()); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t number) { return put(number); }
  bool number_unsigned(std::uint64_t number) { return put(number); }
  bool number_float(double number, const std::string& /*as it is written*/) { return put(number); }
  bool string(const std::string& text) { return put(text); }
  bool binary(const nlohmann::json::binary_t& /*not in a text*/) { return false; }
  bool key(const std::string& key) {
    if (!is_too_deep()) open_.back().key = key;
    return true;
  }
  bool start_object(std::size_t /*unknown*/) { return open(Json::object()); }
  bool start_array(std::size_t /*unknown*/) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const nlohmann::detail::exception& /*why*/) {
    return false;
  }

 private:
  struct Open {
    Json value;
    std::string key;  // of an object's next member
  };

  bool is_too_deep() const { return open_.size() > deepest_; }

  bool put(Json value) {
    if (is_too_deep()) return true;
    if (open_.empty()) return root_ = std::move(value), true;
    if (open_.size() == 2 && !open_[0].value.is_array() && !keep_(open_[0].key, value)) return true;
    Open& parent = open_.back();
    if (parent.value.is_array()) parent.value.add(std::move(value));
    else parent.value.add(std::move(parent.key), std::move(value));
    return true;
  }

  bool open(Json empty) {
    if (is_too_deep()) return ++left_out_, true;
    open_.push_back({std::move(empty), {}});
    return true;
  }

  bool close() {
    if (left_out_ != 0) return --left_out_, true;
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return put(std::move(value));
  }

  std::size_t deepest_;
  const KeepJson& keep_;
  Json root_;
  std::vector<Open> open_;    // from the outermost array or object to the innermost
  std::size_t left_out_ = 0;  // of these inside the innermost one: they are nested too deep
};

}  // namespace

std::optional<Json> parsed_json(std::string_view text, std::size_t deepest, const KeepJson& keep) {
  JsonBuilder builder(deepest, keep);
  return nlohmann::json::sax_parse(text, &builder) ? std::optional(builder.take()) : std::nullopt;
}

}  // namespace luaspy
