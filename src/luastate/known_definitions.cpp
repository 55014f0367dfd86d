#include "luastate/known_definitions.h"

#include <algorithm>

namespace luaspy {
namespace {

constexpr std::size_t most_texts = 1 << 12, most_definitions_kept = 1 << 18, most_text_bytes = 1 << 20;

bool fits(const Definition& definition, const Prototype& prototype) {
  return definition.line == prototype.line_defined && definition.last_line == prototype.last_line_defined &&
         definition.parameters == prototype.parameters;
}

}  // namespace

std::vector<Definition> KnownDefinitions::read(const Prototype& prototype, const Lua& lua, const Memory& memory) {
  const std::string& source = prototype.source;
  if (source.starts_with('@')) {
    const auto text = files_ != nullptr ? files_->text(source.substr(1)) : std::nullopt;
    return text ? definitions(*text) : std::vector<Definition>();
  }
  if (source.starts_with('=') || prototype.source_string == 0) return {};
  if (source.size() < string_limit) return definitions(source);
  const auto text = read_string(memory, lua, prototype.source_string, most_text_bytes);
  return text ? definitions(*text) : std::vector<Definition>();
}

const std::vector<Definition>& KnownDefinitions::in_text_of(const Prototype& prototype, const Lua& lua,
                                                            const Memory& memory) {
  std::string key = prototype.source;
  if (!key.starts_with('@')) key += '\0' + std::to_string(prototype.source_string);
  if (const auto known = texts_.find(key); known != texts_.end()) return known->second;
  if (texts_.size() >= most_texts || kept_ >= most_definitions_kept) texts_.clear(), kept_ = 0;
  const std::vector<Definition>& found = texts_[key] = read(prototype, lua, memory);
  kept_ += found.size();
  return found;
}

int find_definition(const std::vector<Definition>& all, const Prototype& prototype, const Siblings* siblings) {
  const auto number_of = [&](const Definition& definition) { return static_cast<int>(&definition - all.data()); };
  const Definition* only = nullptr;
  int count = 0;
  for (const Definition& each : all) {
    if (fits(each, prototype)) only = &each, ++count;
  }
  if (count < 2) return only != nullptr ? number_of(*only) : Siblings::unknown;
  if (siblings == nullptr || siblings->parent == Siblings::unknown) return Siblings::unknown;
  std::vector<const Definition*> on_line;
  for (const Definition& each : all) {
    if (each.line == prototype.line_defined && each.parent == siblings->parent) on_line.push_back(&each);
  }
  if (on_line.size() != static_cast<std::size_t>(siblings->count)) return Siblings::unknown;
  const Definition* const found = on_line[static_cast<std::size_t>(siblings->number)];
  return fits(*found, prototype) ? number_of(*found) : Siblings::unknown;
}

}  // namespace luaspy
