#pragma once
// The class of each object. Where Lua says nothing, the form of a table is its class: the names of
// its fields.

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "heap/heap_analysis.h"
#include "heap/object_names.h"

namespace luaspy {

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

}  // namespace luaspy
