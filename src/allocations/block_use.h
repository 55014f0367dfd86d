#pragma once
// What a block of memory is for, and to which object it belongs. Lua tells its allocation function
// only the type of new objects, from 5.2 on. The rest is found by the block's address, once the program has
// put it where it belongs.

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "luastate/lua.h"

namespace luaspy {

struct BlockUse {
  // Of the object that the block is, or is a part of; nullopt: not known.
  std::optional<ObjectType> type;
  bool is_part = false;    // a table's array or hash part, a coroutine's stack
  Address object = 0;      // 0: not known
  std::uint64_t text = 0;  // of a string: text_mark(); 0: not read
};

// Lua tells its allocation function that a block is for a closure, not for which one.
bool is_same_type(ObjectType one, ObjectType other);

// For people, and as an innermost frame: "[table]", "[part of a table]".
std::string name(const BlockUse& use);

// A number of a string's length and its characters, at most some hundred of them. 0: not readable.
std::uint64_t text_mark(const Memory& memory, const Lua& lua, Address string);

struct Block {
  Address address = 0;
  std::uint64_t size = 0;                 // bytes
  std::optional<ObjectType> told_type{};  // what Lua has told its allocation function
  bool is_new = false;                    // not a block that was made larger
};

// `words`: what the thread had in its registers and on its stack when the function returned. The
// object that gets a new part is among them: it is what luaH_resize, luaD_reallocstack and their
// likes work on. `memory` may be that of a process that runs.
BlockUse use_of(const Block& block, std::span<const Address> words, const Memory& memory, const Lua& lua,
                const HeapReader& reader);

// A program that makes much garbage may have freed an object before luaspy comes to read it, and have
// made another one of it. But each place in the VM's code asks for blocks of one use: what most of
// them were found to be, all of them are.
class LearnedUses {
 public:
  // Return addresses: of the allocation function, and of the function that called it; the process.
  using Place = std::array<Address, 3>;
  // Learns from a use that was found, and replaces one that most others contradict, but not what Lua has
  // told, nor a part whose object was found.
  BlockUse resolve(const Place& place, const Block& block, const BlockUse& found);

 private:
  using Kind = std::pair<ObjectType, bool>;  // BlockUse::type, is_part
  std::map<Place, std::map<Kind, int>> seen_;
};

// Whether an object still has the part.
bool has_part(const HeapObject& object, const Block& part, const Memory& memory, const Lua& lua,
              const HeapReader& reader);

}  // namespace luaspy
