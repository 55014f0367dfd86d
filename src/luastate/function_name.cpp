#include "luastate/function_name.h"

#include <algorithm>

#include "luastate/definitions.h"

namespace luaspy {
namespace {

// "Account" of "bank.Account" and of "app/Account".
std::string_view last_word(std::string_view table) {
  const std::size_t end = table.find_last_of("./:");
  return end == table.npos ? table : table.substr(end + 1);
}

bool names_a_class(std::string_view word) {
  return !word.empty() && word[0] >= 'A' && word[0] <= 'Z' &&
         std::ranges::any_of(word, [](char c) { return c >= 'a' && c <= 'z'; });
}

// Of several names the one that the source uses, too.
const LoadedFunctions::Name& best_name(const std::vector<LoadedFunctions::Name>& names, const PathParts& definition) {
  const auto same_key = [&](const LoadedFunctions::Name& name) { return name.key == definition.key; };
  const auto same_path = [&](const LoadedFunctions::Name& name) {
    return same_key(name) && last_word(name.table) == last_word(definition.table);
  };
  auto found = std::ranges::find_if(names, same_path);
  if (found == names.end()) found = std::ranges::find_if(names, same_key);
  return found != names.end() ? *found : names.front();
}

}  // namespace

FunctionName function_name(const LoadedFunctions::Function* loaded, const LoadedFunctions::Name* own,
                           std::string_view definition, bool takes_self) {
  const bool is_known = loaded != nullptr && !loaded->names.empty(), is_shared = !is_known || loaded->is_shared;
  if (is_shared && (own == nullptr || !definition.empty()))
    return {std::string(definition), is_known && !definition.empty()};
  const PathParts parts = path_parts(definition);
  const LoadedFunctions::Name& name = is_shared ? *own : best_name(loaded->names, parts);
  const std::string_view word = last_word(parts.table);
  if (names_a_class(word) && (word == parts.table || word != last_word(name.table)))
    return {std::string(definition), true};
  return {name_in_table(name.table, name.key, takes_self || definition.find(':') != definition.npos), true};
}

std::string c_function_name(const LoadedFunctions::Function* loaded) {
  if (loaded == nullptr || loaded->is_shared || loaded->names.empty()) return {};
  const LoadedFunctions::Name& name = loaded->names.front();
  return name_in_table(name.table, name.key, name.level == LoadedFunctions::Level::object);
}

}  // namespace luaspy
