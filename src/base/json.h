#pragma once
// Values of JSON, to be printed, or read from a text (base/parsed_json.h).

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace luaspy {

// Members of an object stay in the order in which they were added.
class Json {
 public:
  struct Member;

  Json();  // null
  Json(bool value);
  Json(double number);  // null if it is not finite
  Json(int number);
  Json(unsigned number);
  Json(long number);
  Json(unsigned long number);
  Json(long long number);
  Json(unsigned long long number);
  Json(const char* text);
  Json(std::string_view text);
  Json(const std::string& text);
  Json(const void*) = delete;  // a pointer would be a bool
  Json(std::initializer_list<Member> members);
  template <typename Value>
  Json(const std::vector<Value>& values) : Json(array()) {
    for (const Value& value : values) add(value);
  }

  // It is moved, never copied. As the compiler would define them, but not inline: they would be half of the code of
  // what prints.
  Json(Json&&) noexcept;
  Json& operator=(Json&&) noexcept;
  ~Json();

  static Json array();
  static Json object();
  template <typename Value>
  static Json array(const std::vector<Value>& values, Json (*json_of)(const Value&)) {
    Json json = array();
    for (const Value& value : values) json.add(json_of(value));
    return json;
  }

  // The member `key` of an object, null if it is new. Null becomes an object.
  Json& operator[](std::string_view key);
  // Adds an element to an array, and returns it. Null becomes an array.
  Json& add(Json element);
  // Adds a member to an object without a search for one that has this key already.
  Json& add(std::string key, Json value);

  // Reading. A value of a file can be of any type: these are empty if it is of another one.
  bool is_array() const;
  std::span<const Json> elements() const;        // of an array
  const Json* find(std::string_view key) const;  // of an object; the last one of several members `key`
  const Json& at(std::string_view key) const;    // as find(), but null if it is missing
  const std::string* as_text() const;            // UTF-8 if it was read
  std::optional<bool> as_bool() const;
  std::optional<std::uint64_t> as_unsigned() const;  // of an unsigned type, or read without a sign and a fraction

  // text(): each member and each element in a line of its own, two blanks further in for each level.
  // line(): all in one line. Both end with a line break.
  std::string text() const;
  std::string line() const;

 private:
  struct Named;
  using Text = std::unique_ptr<std::string>;
  using Elements = std::unique_ptr<std::vector<Json>>;
  using Members = std::unique_ptr<std::vector<Named>>;

  // `line_break`: the end of a line, and the blanks before this value; "": all in one line.
  void print(std::string& out, const std::string& line_break) const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, Text, Elements, Members> value_;
};

struct Json::Member {
  std::string_view key;
  mutable Json value;  // the object takes it out of the initializer list
};

}  // namespace luaspy
