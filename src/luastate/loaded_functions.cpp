#include "luastate/loaded_functions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <unordered_set>

#include "base/page_cache.h"
#include "base/text.h"
#include "luastate/strings.h"
#include "luastate/tokens.h"

namespace luaspy {
namespace {

constexpr std::size_t most_functions = 1 << 16, most_tables = 1 << 14;
constexpr std::uint64_t most_slots_in_all = 1 << 20;  // of all tables
constexpr std::uint64_t most_slots_of_module = 1 << 16;
constexpr std::uint64_t most_slots_of_table = 1 << 12;  // larger ones are data
constexpr std::size_t most_names = 4;                   // kept of one function
constexpr std::size_t longest = 60;

// Fields in which other classes are, not parts of this one (moonscript, 30log).
bool is_other_class(std::string_view key) {
  return key == "__parent" || key == "__super" || key == "__class" || key == "__subclasses";
}

}  // namespace

bool LoadedFunctions::Name::is_before(const Name& other) const {
  // Modules share functions (socket and socket.core): the shortest name is the one that people use.
  return std::tuple(level, table.size() + key.size(), std::tie(table, key)) <
         std::tuple(other.level, other.table.size() + other.key.size(), std::tie(other.table, other.key));
}

class LoadedFunctions::Reading {
 public:
  Reading(LoadedFunctions& into, const Lua& lua, const Memory& memory, Address G)
      : into_(into), lua_(lua), memory_(memory), G_(G) {}

  void read() {
    const std::optional<TableForm> form = lua_.find_table_form(memory_, G_);
    const std::optional<Value> registry = lua_.read_value(memory_, lua_.registry_slot(G_));
    if (!form || !registry || registry->type != Value::Type::table) return;
    form_ = *form;
    Address loaded = 0;
    std::vector<Found> classes;
    visit(registry->word, most_slots_of_module, [&](const std::string& key, const Value& value) {
      if (value.type != Value::Type::table) return;
      if (key == "_LOADED") loaded = value.word;
      // Other libraries keep their own tables there, too: a class has a name that reads as one.
      else if (!key.starts_with('_') && key.find(' ') == key.npos)
        classes.push_back({into_.kept(class_name(key)), value.word});
    });
    read_modules(loaded);
    read_all(tables_, Level::table, most_slots_of_table);
    read_all(parts_, Level::part, most_slots_of_table);
    parts_.clear();
    std::erase_if(classes, [&](const Found& found) { return !is_metatable(found.table); });
    read_all(classes, Level::object, most_slots_of_table);
    read_all(parts_, Level::object, most_slots_of_table);
  }

 private:
  struct Found {
    std::string_view name;
    Address table = 0;
    bool is_metatable = false;  // only its metamethods belong to the name
  };

  // liolib.c, LUA_FILEHANDLE: the manual calls them file:read.
  static std::string class_name(const std::string& key) { return key == "FILE*" ? "file" : printable(key, longest); }

  void read_modules(Address loaded) {
    std::vector<Found> modules;
    visit(loaded, most_slots_of_module, [&](const std::string& key, const Value& value) {
      std::string name = printable(key, longest);
      if (value.type == Value::Type::table)
        modules.push_back({into_.kept(name == "_G" ? std::string() : std::move(name)), value.word});
      else add_function(value, {}, name, Level::module);
    });
    for (const Found& module : modules) modules_.insert(module.table);
    add_global_names(modules);
    read_all(modules, Level::module, most_slots_of_module);
  }

  // A module may be a global, too, which is its name then if that is shorter (`vim` is vim.shared).
  void add_global_names(std::vector<Found>& modules) {
    std::unordered_map<Address, std::size_t> shortest;
    Address globals = 0;
    for (const Found& module : modules) {
      if (module.name.empty()) globals = module.table;
      std::size_t& size = shortest.try_emplace(module.table, module.name.size()).first->second;
      size = std::min(size, module.name.size());
    }
    visit(globals, most_slots_of_module, [&](const std::string& key, const Value& value) {
      const auto module = value.type == Value::Type::table ? shortest.find(value.word) : shortest.end();
      if (module != shortest.end() && key.size() < module->second)
        modules.push_back({into_.kept(printable(key)), value.word});
    });
  }

  // The shortest name of a table is taken, whatever the order in which tables are found.
  void read_all(std::vector<Found>& found, Level level, std::uint64_t most) {
    std::ranges::sort(found, {}, [](const Found& each) { return std::tuple(each.name.size(), std::tie(each.name)); });
    const std::vector<Found> now = std::move(found);
    found.clear();
    for (const Found& each : now) {
      if (level != Level::module && modules_.contains(each.table)) continue;
      if (seen_.size() >= most_tables) return;
      // A module may have two names (pl.text is pl.stringx), of which the source uses one.
      if (seen_.insert(each.table).second || level == Level::module) read_table(each, level, most);
    }
  }

  void read_table(const Found& table, Level level, std::uint64_t most) {
    std::vector<std::pair<std::string, Value>> entries;
    const Address metatable = visit(
        table.table, most, [&](const std::string& key, const Value& value) { entries.emplace_back(key, value); });
    const std::string_view name = level == Level::module && !table.name.empty() ? own_name(entries, table.name)
                                                                                : table.name;
    for (const auto& [key, value] : entries) {
      const bool is_meta = key.starts_with("__");
      if (table.is_metatable && !is_meta) continue;
      if (value.type != Value::Type::table) add_function(value, name, key, level);
      else if (!table.is_metatable && level != Level::part) record_table(key, value.word, name, level);
    }
    if (metatable != 0 && level < Level::part) parts_.push_back({name, metatable, true});
  }

  // A class that is a module by itself may know its name.
  std::string_view own_name(const std::vector<std::pair<std::string, Value>>& entries, std::string_view name) {
    const auto found = std::ranges::find_if(
        entries, [](const auto& entry) { return entry.first == "__name" && entry.second.type == Value::Type::string; });
    if (found == entries.end()) return name;
    const std::optional<std::string> own = read_string(memory_, lua_, found->second.word);
    return own && is_name(*own) ? into_.kept(printable(*own, longest)) : name;
  }

  // The table in the field `key` of the one that is called `name`.
  void record_table(const std::string& key, Address table, std::string_view name, Level level) {
    if (key.starts_with("__") && (level != Level::module || !name.empty())) {
      if (!is_other_class(key)) parts_.push_back({name, table});
    } else if (level == Level::module) {
      const std::string shown = printable(key, longest);
      tables_.push_back({into_.kept(name.empty() ? shown : std::string(name) + '.' + shown), table});
    }
  }

  bool is_metatable(Address table) {
    bool is = false;
    visit(table, most_slots_of_table,
          [&](const std::string& key, const Value&) { is |= key == "__index" || key == "__gc" || key == "__name"; });
    return is;
  }

  void add_function(const Value& value, std::string_view table, const std::string& key, Level level) {
    if (value.type != Value::Type::function && value.type != Value::Type::light_function) return;
    const bool is_light = value.type == Value::Type::light_function;
    const auto function = is_light ? std::optional(luaspy::Function{0, value.word})
                                   : lua_.function(memory_, G_, value.word);
    if (!function) return;
    Name name{table, printable(key, longest), level};
    if (function->proto == 0) return into_.add(std::move(name), function->key, 0, is_light ? 0 : value.word, false);
    into_.add(std::move(name), function->proto, lua_.mark(memory_, function->proto), value.word, true);
  }

  // As read_string(), which is made for many strings at once.
  bool read_key(Address string, std::string& text) const {
    std::array<std::byte, 64> bytes;
    const auto header = std::span(bytes).first(lua_.string_header_size());
    if (!plausible_pointer(string, lua_.string_alignment()) || !memory_.read(string, header)) return false;
    const std::optional<Characters> found = lua_.characters(header);
    if (!found || found->by_pointer || found->length > string_limit) return false;
    text.resize(found->length);
    return memory_.read(string + header.size(), std::as_writable_bytes(std::span(text)));
  }

  // The entries whose key is a string. Returns the metatable, 0 if there is none.
  template <typename Visit>
  Address visit(Address table, std::uint64_t most, Visit entry) {
    std::optional<TableParts> parts = lua_.table_parts(memory_, form_, table);
    if (!parts || parts->node_count > most || parts->node_count > slots_left_) return 0;
    parts->array_size = 0;
    slots_left_ -= parts->node_count;
    lua_.visit_entries(memory_, *parts, parts->node_count, [&](const Value& key, const Value& value) {
      const bool is_wanted = value.type == Value::Type::function || value.type == Value::Type::light_function ||
                             value.type == Value::Type::table || value.type == Value::Type::string;
      if (key.type != Value::Type::string || !is_wanted) return true;
      if (std::string text; read_key(key.word, text)) entry(text, value);
      return into_.functions_.size() < most_functions;
    });
    return parts->metatable;
  }

  LoadedFunctions& into_;
  const Lua& lua_;
  const PageCache memory_;
  Address G_;
  TableForm form_;
  std::vector<Found> tables_, parts_;
  std::unordered_set<Address> seen_, modules_;
  std::uint64_t slots_left_ = most_slots_in_all;
};

LoadedFunctions::State& LoadedFunctions::state(Address G) {
  constexpr std::size_t most_states = 256;
  if (states_.size() >= most_states && !states_.contains(G)) states_.clear();
  return states_[G];
}

void LoadedFunctions::read(const Lua& lua, const Memory& memory, Address G) {
  const Clock::time_point start = Clock::now();
  if (functions_.size() >= most_functions || closures_.size() >= most_functions || tables_.size() > 4 * most_tables)
    functions_.clear(), closures_.clear(), tables_.clear();
  ++reading_;
  reading_G_ = G;
  Reading(*this, lua, memory, G).read();
  std::erase_if(closures_, [&](const auto& each) { return each.second.G == G && each.second.reading != reading_; });
  state(G).has_news = false;
  read_at_ = Clock::now();
  read_for_ = read_at_ - start;
}

// For functions that are asked for for the first time, in no more than 1 % of the time. For others
// ever more rarely, after 1, 4, 16, 64 … misses, and not without end.
bool LoadedFunctions::read_for_miss(const Lua& lua, const Memory& memory, Address G, bool is_new) {
  constexpr int one_percent = 100;
  State& its = state(G);
  const unsigned misses = ++its.misses;
  its.has_news |= is_new;
  const bool has_time = its.has_news && Clock::now() - read_at_ >= one_percent * read_for_;
  const bool is_due = reads_left_ > 0 && std::has_single_bit(misses) && std::countr_zero(misses) % 2 == 0;
  if (!has_time && !is_due) return false;
  if (!has_time) --reads_left_;
  read(lua, memory, G);
  return true;
}

void LoadedFunctions::add(Name name, Address key, std::uint64_t mark, Address closure, bool is_lua) {
  constexpr int most_aliases = 3;
  if (key == 0) return;
  const bool is_base = name.table.empty() && (name.key == "ipairs" || name.key == "next");
  if (!is_lua && (name.table == "string" || name.table == "io" || is_base))
    state(reading_G_).library[std::string(name.table) + '.' + name.key] = key;
  Known& known = functions_[key];
  if (known.mark != mark) known = {};  // another function is there now
  known.mark = mark;
  const bool is_same_table = known.reading == reading_ && known.table == name.table;
  known.names_in_table = is_same_table ? known.names_in_table + 1 : 1;
  known.table = name.table;
  known.reading = reading_;
  const auto is_same = [&](const Name& other) { return other.table == name.table && other.key == name.key; };
  const bool is_new = !std::ranges::any_of(known.names, is_same);
  if (is_lua) {
    const bool is_other = known.closure != 0 && known.closure != closure && is_new;
    if (is_other && !known.is_shared) add_closure(known.names.front(), key, mark, known.closure);
    known.is_shared |= is_other || known.names_in_table > most_aliases;
    if (known.is_shared) add_closure(name, key, mark, closure);
    known.closure = closure;
  } else {
    known.is_shared |= known.names_in_table > most_aliases;
  }
  if (!is_new) return;
  const auto place = std::ranges::find_if(known.names, [&](const Name& other) { return name.is_before(other); });
  known.names.insert(place, std::move(name));
  if (known.names.size() > most_names) known.names.pop_back();
}

void LoadedFunctions::add_closure(const Name& name, Address proto, std::uint64_t mark, Address closure) {
  Closure& known = closures_[closure];
  if (known.reading != reading_ || known.proto != proto || name.is_before(known.name))
    known = {name, proto, mark, reading_G_, reading_};
}

Address LoadedFunctions::c_function_named(Address G, std::string_view table, std::string_view key) const {
  const auto its = states_.find(G);
  if (its == states_.end()) return 0;
  const auto found = its->second.library.find(std::string(table).append(".").append(key));
  return found != its->second.library.end() ? found->second : 0;
}

const LoadedFunctions::Function* LoadedFunctions::function(Address key, std::uint64_t mark) const {
  const auto found = functions_.find(key);
  return found != functions_.end() && found->second.mark == mark ? &found->second : nullptr;
}

const LoadedFunctions::Name* LoadedFunctions::closure(Address closure, Address proto, std::uint64_t mark) const {
  const auto found = closures_.find(closure);
  return closure != 0 && found != closures_.end() && found->second.proto == proto && found->second.mark == mark
             ? &found->second.name
             : nullptr;
}

}  // namespace luaspy
