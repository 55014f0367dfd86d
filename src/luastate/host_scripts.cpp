#include "luastate/host_scripts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/page_cache.h"
#include "luastate/strings.h"
#include "luastate/tokens.h"

namespace luaspy {
namespace {

constexpr std::string_view script_source = "@user_script", key_start = "f_";
constexpr std::size_t sha1_digits = 40, shown_digits = 8;
constexpr std::uint64_t most_slots = 1 << 18;  // of the registry, and of the globals
constexpr std::size_t most_nested = 1 << 16;
const std::string not_known;

bool is_script_key(std::string_view key) {
  constexpr std::string_view digits = "0123456789abcdef";
  return key.size() == key_start.size() + sha1_digits && key.starts_with(key_start) &&
         key.find_first_not_of(digits, key_start.size()) == key.npos;
}

std::string chunk_name_of(std::string_view sha1) {
  return std::string(script_source.substr(1)) + ' ' + std::string(key_start) +
         std::string(sha1.substr(0, shown_digits));
}

}  // namespace

bool is_host_script(std::string_view source) { return source == script_source; }

const HostScripts::Known* HostScripts::known(Address proto, std::uint64_t mark) const {
  for (const auto* const all : {&scripts_, &nested_}) {
    if (const auto found = all->find(proto); found != all->end() && found->second.mark == mark) return &found->second;
  }
  return nullptr;
}

const std::string& HostScripts::known_chunk_of(Address proto, std::uint64_t mark) const {
  const Known* const found = known(proto, mark);
  return found != nullptr ? found->chunk : not_known;
}

std::string_view HostScripts::known_script_of(Address proto, std::uint64_t mark) const {
  const Known* const found = known(proto, mark);
  return found != nullptr ? std::string_view(found->sha1) : std::string_view();
}

// A script runs below all functions in it, and outer functions are named first. So the functions in a script are known
// by the time that they are asked for.
const std::string& HostScripts::chunk_of(const Lua& lua, const Memory& memory, Address G, const Prototype& prototype,
                                         std::uint64_t mark) {
  constexpr int one_percent = 100, most_functions = 256;
  const auto script = [&]() -> const Known* {
    const auto found = scripts_.find(prototype.address);
    return found != scripts_.end() && found->second.mark == mark ? &found->second : nullptr;
  };
  if (script() == nullptr) {
    if (const std::string& chunk = known_chunk_of(prototype.address, mark); !chunk.empty()) return chunk;
    const Clock::time_point begin = Clock::now();
    if (begin - read_at_ < one_percent * read_for_) return not_known;
    read(lua, memory, G);
    read_at_ = Clock::now();
    read_for_ = read_at_ - begin;
  }
  const Known* const found = script();
  if (found == nullptr) return not_known;
  if (nested_.size() >= most_nested) nested_.clear();
  int left = most_functions;
  if (const std::optional<Prototype> whole = lua.prototype(memory, prototype.address))
    add_functions_in(lua, memory, *whole, *found, left);
  return found->chunk;
}

const std::string& HostScripts::chunk_of_any(const Lua& lua, const Memory& memory, Address G,
                                             const Prototype& prototype, std::uint64_t mark) {
  if (const std::string& chunk = chunk_of(lua, memory, G, prototype, mark); !chunk.empty()) return chunk;
  if (std::exchange(has_all_nested_, true)) return not_known;
  auto left = static_cast<int>(most_nested);
  for (const auto& [proto, script] : scripts_) {
    if (const std::optional<Prototype> whole = lua.prototype(memory, proto))
      add_functions_in(lua, memory, *whole, script, left);
  }
  return known_chunk_of(prototype.address, mark);
}

void HostScripts::add_functions_in(const Lua& lua, const Memory& memory, const Prototype& prototype,
                                   const Known& script, int& left) {
  for (const Address child : prototype.children) {
    if (left-- <= 0) return;
    const std::optional<Prototype> its = lua.prototype(memory, child);
    const std::uint64_t mark = lua.mark(memory, child);
    if (!its || mark == 0) continue;
    nested_[child] = {mark, script.sha1, script.chunk};
    add_functions_in(lua, memory, *its, script, left);
  }
}

void HostScripts::read(const Lua& lua, const Memory& memory, Address G) {
  scripts_.clear();
  has_all_nested_ = false;
  const PageCache pages(memory);
  const std::optional<TableForm> form = lua.find_table_form(pages, G);
  const std::optional<Value> registry = lua.read_value(pages, lua.registry_slot(G));
  if (!form || !registry || registry->type != Value::Type::table) return;
  for (const Address table : {registry->word, lua.globals_table(pages, *form, G, lua.main_thread(pages, G))}) {
    std::optional<TableParts> parts = table != 0 ? lua.table_parts(pages, *form, table) : std::nullopt;
    if (!parts) continue;
    parts->array_size = 0;
    lua.visit_entries(pages, *parts, most_slots, [&](const Value& key, const Value& value) {
      if (key.type != Value::Type::string || value.type != Value::Type::function ||
          string_length(pages, lua, key.word) != key_start.size() + sha1_digits)
        return true;
      const std::optional<std::string> name = read_string(pages, lua, key.word);
      if (!name || !is_script_key(*name)) return true;
      const std::optional<Function> function = lua.function(pages, G, value.word);
      if (function && function->proto != 0) {
        const std::string sha1 = name->substr(key_start.size());
        scripts_[function->proto] = {lua.mark(pages, function->proto), sha1, chunk_name_of(sha1)};
      }
      return true;
    });
  }
}

}  // namespace luaspy
