#pragma once
// The value at the end of a chain of fields, req.uri, in memory that one stop has read. There, a key is known by its
// address: Lua keeps a short string once (lstring.c, internshrstr; lj_str.c, lj_str_new), so that no other key has to
// be read. The addresses, and where large tables have these keys, are learned between stops.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "luastate/locate.h"

namespace luaspy {

class FieldPaths {
 public:
  using KeyId = std::size_t;

  // `texts`: the keys that will be asked for, at most 40 bytes each. One of digits is an index.
  explicit FieldPaths(std::vector<std::string> texts);

  // What is known of a global state and its keys.
  struct State {
    const Lua* lua = nullptr;  // with its types of numbers
    TableForm form;
    std::vector<Address> keys;  // by KeyId; 0: not known
  };
  // What learn() found out of one global state, looked up for several values.
  struct Lesson {
    State state;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> places;  // of keys in large tables
  };
  struct Learned {
    bool something = false;  // what the value is was not known
    bool nowhere = false;    // there is no value, and one of the keys is in no table
  };

  const State* find(Address G) const;
  // The value of `root`'s fields; nil where Lua would give nil, nullopt if it is not known. In the stop this touches
  // what it needs.
  std::optional<Value> follow(const Memory& memory, const State& state, Value root,
                              std::span<const KeyId> fields) const;
  // In the stop: touches what text() needs.
  static void touch_text(const Memory& memory, const State& state, const Value& value);
  // A value as a label shows it; nullopt if it cannot be read.
  static std::optional<std::string> text(const Memory& memory, const State& state, const Value& value);

  // After a stop in whose memory follow() did not find a key, in live memory: what would help the next one.
  // `live` may change meanwhile: what is learned is checked each time that it is used. `lesson`: empty at first.
  Learned learn(const Memory& live, const ActiveState& at, Value root, std::span<const KeyId> fields,
                Lesson& lesson) const;
  // No stop may be in follow() meanwhile.
  void keep(Address G, Lesson&& lesson);
  void forget() { states_.clear(), places_.clear(); }

 private:
  struct Found {
    Value value;
    std::uint32_t place = 0;  // number of its node
    Address key = 0;
  };
  std::optional<Value> get(const Memory& memory, const State& state, Value object, KeyId key) const;
  std::optional<Value> get_raw(const Memory& memory, const State& state, const TableParts& parts, KeyId key) const;
  static std::optional<Value> get_element(const Memory& memory, const State& state, const TableParts& parts,
                                          std::uint64_t index);
  std::optional<Found> find_by_text(const Memory& memory, const State& state, const TableParts& parts, KeyId key) const;
  bool is_key(const Memory& memory, const State& state, KeyId key) const;
  static std::uint64_t place_id(Address nodes, KeyId key) { return nodes ^ (key << 56); }

  std::vector<std::string> texts_;
  KeyId index_;                                              // "__index"
  std::vector<std::uint64_t> indexes_;                       // by KeyId; 0: it is a text
  std::unordered_map<Address, State> states_;                // by global_State
  std::unordered_map<std::uint64_t, std::uint32_t> places_;  // by place_id(), of large tables: the number of its node
};

}  // namespace luaspy
