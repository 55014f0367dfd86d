// The class of each object. Where Lua says nothing, the form of a table is its class: the names of
// its fields.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "heap/heap_analysis.h"
#include "heap/object_names.h"
#include "luastate/strings.h"

namespace luaspy {
namespace {

constexpr std::size_t most_fields = 8;    // shown of a form
constexpr std::size_t most_in_form = 32;  // a table with more names is not a record, but a map
constexpr std::size_t field_bytes = 32;   // shown of a name
constexpr std::size_t longest_field = 256;
constexpr std::uint64_t most_slots = 256;    // visited of a table; with more it is a map, too
constexpr std::size_t most_forms = 1 << 14;  // told apart: more come from names that are data

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e37'79b9'7f4a'7c15;
  return hash ^ hash >> 29;
}

// Names of fields look like names, or like keywords. Addresses, paths and numbers are data.
bool is_field(std::string_view text) {
  const auto is_part = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  return !text.empty() && (text[0] < '0' || text[0] > '9') && std::ranges::all_of(text, is_part);
}

class ObjectClasses {
 public:
  // `analysis` must outlive it, and know its paths.
  explicit ObjectClasses(const HeapAnalysis& analysis) : analysis_(analysis), names_(analysis) {}

  ClassNumber number(Node node);
  std::vector<ObjectClass> take() { return std::move(classes_); }

 private:
  ClassNumber named(ObjectType type, const std::string& name);
  ClassNumber of_table(Address table);
  ClassNumber of_form(const TableParts& parts);
  ClassNumber of_function(ObjectType type, const Value& function);
  const std::string& of_metatable(Address metatable);

  const HeapAnalysis& analysis_;
  ObjectNames names_;
  std::vector<ObjectClass> classes_;
  std::unordered_map<std::string, ClassNumber> by_name_;  // with the type before it
  std::unordered_map<std::uint64_t, ClassNumber> by_form_;
  std::unordered_map<Address, ClassNumber> by_function_;  // by Proto or C function
  std::unordered_map<Address, std::string> metatables_;   // the classes that they stand for; "": none
};

}  // namespace

ClassNumber ObjectClasses::named(ObjectType type, const std::string& name) {
  const auto [known, is_new] = by_name_.try_emplace(std::string(luaspy::name(type)) + ' ' + name,
                                                    static_cast<ClassNumber>(classes_.size()));
  if (is_new) classes_.push_back({name, type});
  return known->second;
}

ClassNumber ObjectClasses::number(Node node) {
  const HeapObject object = analysis_.graph().object(node);
  switch (object.type) {
    case ObjectType::table:
      return of_table(object.address);
    case ObjectType::lua_function:
    case ObjectType::c_function:
      return of_function(object.type, {Value::Type::function, object.address});
    case ObjectType::userdata: {
      const Userdata its = analysis_.lua().userdata(analysis_.memory(), object.address);
      const std::string name = its.is_file ? "FILE*" : of_metatable(its.metatable);
      return named(object.type, name.empty() ? "userdata" : name);
    }
    case ObjectType::thread: {
      if (object.address == analysis_.lua().main_thread(analysis_.memory(), analysis_.global_state()))
        return named(object.type, "main coroutine");
      const std::string began = names_.began_with(object.address);
      return named(object.type, began.empty() ? "coroutine" : "coroutine of " + began);
    }
    case ObjectType::prototype: {
      const std::optional<FunctionPlace> place = analysis_.lua().place(analysis_.memory(), object.address);
      return named(object.type, "code of " + (place ? names_.chunk_of(object.address, *place) : "?"));
    }
    default:
      return named(object.type, std::string(luaspy::name(object.type)));
  }
}

ClassNumber ObjectClasses::of_function(ObjectType type, const Value& function) {
  const std::optional<Function> its = analysis_.lua().function(analysis_.memory(), analysis_.global_state(),
                                                               function.word);
  const Address key = !its ? 0 : its->proto != 0 ? its->proto : its->key;
  if (const auto known = by_function_.find(key); known != by_function_.end()) return known->second;
  return by_function_[key] = named(type, names_.text(function));
}

const std::string& ObjectClasses::of_metatable(Address metatable) {
  const auto [known, is_new] = metatables_.try_emplace(metatable);
  if (is_new && metatable != 0) known->second = names_.class_of(metatable);
  return known->second;
}

ClassNumber ObjectClasses::of_table(Address table) {
  const std::optional<TableParts> parts = analysis_.lua().table_parts(analysis_.memory(),
                                                                      analysis_.reader().table_form(), table);
  if (!parts) return named(ObjectType::table, "table");
  const std::string& name = of_metatable(parts->metatable);
  return name.empty() ? of_form(*parts) : named(ObjectType::table, name);
}

// The names of the fields, and whether there are elements.
ClassNumber ObjectClasses::of_form(const TableParts& parts) {
  std::vector<Address> fields;
  bool has_elements = false, is_map = false, is_empty = true;
  analysis_.lua().visit_entries(analysis_.memory(), parts, most_slots, [&](const Value& key, const Value&) {
    is_empty = false;
    if (key.type == Value::Type::string) {
      fields.push_back(key.word);
      is_map = fields.size() > most_in_form;
    } else if (key.is_any_number()) {
      has_elements = true;
    } else {
      is_map = true;
    }
    // Elements come first, and one tells as much as all.
    return !is_map;
  });
  const auto map = [&] { return named(ObjectType::table, "{[…] = …}"); };
  if (is_map || (!fields.empty() && parts.slots() > most_slots)) return map();
  if (is_empty) return named(ObjectType::table, parts.slots() > most_slots ? "{…}" : "{}");
  std::ranges::sort(fields);
  std::uint64_t form = has_elements;
  for (const Address field : fields) form = mixed(form, field);
  if (const auto known = by_form_.find(form); known != by_form_.end()) return known->second;
  if (by_form_.size() == most_forms) return map();
  std::vector<std::string> texts;
  for (const Address field : fields) {
    const std::string text = read_string(analysis_.memory(), analysis_.lua(), field, longest_field).value_or("");
    if (!is_field(text)) return by_form_[form] = map();
    texts.push_back(printable(text, field_bytes));
  }
  std::ranges::sort(texts);
  const std::size_t more = texts.size() > most_fields ? texts.size() - most_fields : 0;
  texts.resize(texts.size() - more);
  if (more != 0) texts.push_back(fmt::format("…({} more)", more));
  if (has_elements) texts.insert(texts.begin(), "[1…]");
  return by_form_[form] = named(ObjectType::table, '{' + joined(texts, ", ") + '}');
}

void HeapAnalysis::classify(const Options& options) {
  ObjectClasses classes(*this);
  class_of_.resize(graph_->nodes());
  for (Node node = 1; node < graph_->nodes(); ++node) {
    if (options.told && node % (1 << 16) == 0)
      options.told("naming classes", static_cast<double>(node) / static_cast<double>(graph_->nodes()));
    if (is_live(node)) class_of_[node] = classes.number(node);
  }
  classes_ = classes.take();
}

}  // namespace luaspy
