#include "luastate/known_definitions.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "luastate/strings.h"

namespace luaspy {
namespace {

constexpr std::size_t most_texts = 1 << 12, most_definitions_kept = 1 << 18, most_text_bytes = 1 << 20;

bool fits(const Definition& definition, const Prototype& prototype) {
  return definition.line == prototype.line_defined && definition.last_line == prototype.last_line_defined &&
         definition.parameters == prototype.parameters;
}

}  // namespace

std::span<const Definition> KnownDefinitions::in_text_of(const Prototype& prototype, std::uint64_t mark, const Lua& lua,
                                                         const Memory& memory) {
  const std::string& source = prototype.source;
  if (source.starts_with('@')) return in_file(source.substr(1));
  if (source.starts_with('=') || prototype.source_string == 0) return {};
  if (source.size() < string_limit) return in_text(source);  // this is all of it
  // Another string may be at that address since the Proto was read.
  const auto text = read_string(memory, lua, prototype.source_string, most_text_bytes);
  if (!text || !text->starts_with(source) || lua.mark(memory, prototype.address) != mark) return {};
  return in_text(*text);
}

std::span<const Definition> KnownDefinitions::in_file(const std::string& name) {
  if (files_ == nullptr) return {};
  if (const auto known = by_file_.find(name); known != by_file_.end()) return known->second;
  const std::optional<std::string> text = files_->text(name);
  std::vector<Definition> found = text ? definitions(*text) : std::vector<Definition>();
  make_room();
  return keep(by_file_[name], std::move(found));
}

std::span<const Definition> KnownDefinitions::in_text(std::string_view text) {
  const std::size_t hash = std::hash<std::string_view>()(text);
  if (const auto known = by_text_.find(hash); known != by_text_.end()) return known->second;
  make_room();
  return keep(by_text_[hash], definitions(text));
}

void KnownDefinitions::make_room() {
  if (by_file_.size() + by_text_.size() < most_texts && kept_ < most_definitions_kept) return;
  by_file_.clear(), by_text_.clear();
  kept_ = 0;
}

std::span<const Definition> KnownDefinitions::keep(std::vector<Definition>& place, std::vector<Definition> found) {
  kept_ += found.size();
  place = std::move(found);
  return place;
}

int find_definition(std::span<const Definition> all, const Prototype& prototype, const Siblings* siblings) {
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
