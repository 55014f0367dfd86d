#pragma once
// A Lua: where its objects keep what, and how they are read. There is a PucLua (puc/puc_lua.h) for
// each row of offsets, and a LuajitLua (luajit/luajit_lua.h) for each LuaJIT whose offsets were
// found. Only luas.h knows both; everything else asks a Lua.
//
// All of it is read from memory of a target, which may be changing, or be no such object at all.
// Where something does not fit, the result is that there is nothing, and never an error. Sizes and
// loops are bounded. A Lua never changes and lives as long as luaspy, so anybody may keep a pointer
// to it, and threads may share it.

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/address_range.h"
#include "base/memory.h"
#include "base/resident_memory.h"
#include "luastate/allocator.h"
#include "luastate/collector.h"
#include "luastate/coroutine.h"
#include "luastate/heap_reader.h"
#include "luastate/offset.h"
#include "luastate/prototype.h"
#include "luastate/strings.h"
#include "luastate/tables.h"
#include "luastate/value.h"
#include "luastate/value_path.h"
#include "luastate/walk.h"

namespace luaspy {

// The implementations.
enum class LuaKind : std::uint8_t { puc, luajit };
inline constexpr std::size_t lua_kinds = 2;

// The fields with which a running lua_State is found. A running state has an anchor on the C stack
// (locate.h): the errorJmp of PUC, the cframe of LuaJIT.
struct StateFields {
  Offset tt = 0, marked = 0, G = 0;  // the object's type and mark, the reference to its global_State
  std::uint8_t tag = 0;              // what `tt` is of a lua_State
  bool short_reference = false;      // references have 32 bits
  Offset anchor = 0;
  Address anchor_flags = 0;      // bits of the anchor that are not part of the address
  Offset anchor_previous = 0;    // in the object that it points at: the next one outwards
  bool always_anchored = false;  // false: only in a protected call
  // A main thread and its global_State are allocated together: how far above the main thread the
  // global_State may be, modulo 2^64.
  Address nearest_G = 0, farthest_G = 0;

  // The global_State that the object refers to whose first bytes these are.
  Address global_of(std::span<const std::byte> bytes) const {
    return short_reference ? load<std::uint32_t>(bytes, G) : load<Address>(bytes, G);
  }
  bool may_be_main(Address L, Address its_G) const { return its_G - L - nearest_G <= farthest_G - nearest_G; }
};
// Bytes of a lua_State that show whether it is one: up to the fields above, and ci, in every Lua.
inline constexpr std::size_t state_head_size = 112;

// A closure, and what shows which function it is.
struct Function {
  Address proto = 0;  // Lua
  Address key = 0;    // as LuaCall.key; LuaJIT: also of a Lua function: its bytecode
};

// The program's own part of a userdata.
struct Userdata {
  Address bytes = 0;
  Address metatable = 0;  // 0: none
  bool is_file = false;   // LuaJIT: of the io library. PUC shows that only by its metatable.
};

// Neighbouring slots of a Lua stack.
struct Slots {
  Address first = 0;
  std::uint64_t count = 0;
};
inline constexpr std::uint64_t most_stack_slots = 1'100'000;  // LUAI_MAXSTACK (luaconf.h), with its error room

class Lua {
 public:
  virtual ~Lua() = default;
  Lua(const Lua&) = delete;
  Lua& operator=(const Lua&) = delete;

  // "Lua 5.4.3-5.4.9"; "LuaJIT, 64-bit references".
  virtual std::string name() const = 0;
  LuaKind kind() const { return sizes_.kind; }

  // ---- lua_State and global_State
  const StateFields& state() const { return state_; }
  // Why the memory at `L` is not a lua_State of this Lua, in a few words; nullptr: it is one.
  virtual const char* misfit(const Memory& memory, Address L) const = 0;
  // The Lua of the state at `L`, whose first state_head_size bytes are `head`; nullptr if it is not
  // this one. LuaJIT: has the offsets that were found in the global_State.
  virtual const Lua* recognise(const Memory& memory, Address L, std::span<const std::byte> head) const = 0;
  // The same, if `L` is the main thread of `G`.
  virtual const Lua* recognise_main(const Memory& memory, Address L, Address G) const = 0;
  // A closed global_State may look valid until its memory is used again. Is this one open? `L`: its
  // main thread.
  virtual bool is_open(const Memory& memory, Address L, Address G) const = 0;
  // Is `L` calling something, with no protected call below? It may run without an anchor then.
  virtual bool is_unprotected(const Memory& memory, Address L) const = 0;
  virtual bool is_thread_of(const Memory& memory, Address L, Address G) const = 0;
  virtual Address main_thread(const Memory& memory, Address G) const = 0;  // 0: cannot be read
  // A number of the fields of `G` that stay the same as long as it is open: another Lua that is made at its
  // place mostly has others (its userdata of lua_Alloc, its seed). lua_setallocf changes it, too. 0: not readable.
  std::uint64_t identity(const Memory& memory, Address G) const;
  // The slot of the registry.
  Address registry_slot(Address G) const { return G + sizes_.registry; }

  // ---- Coroutines
  virtual bool situation(const Memory& memory, Address G, Address L, Situation& now) const = 0;
  virtual bool has_hook(const Memory& memory, Address G, Address L) const = 0;
  // The calls of a state that no thread is in. `walk` is reused.
  virtual void walk_waiting(const Memory& memory, Address L, const WalkLimits& limits, LuaWalk& walk) const = 0;
  // The bounds of its Lua stack.
  virtual std::pair<Address, Address> stack_of(const Memory& memory, Address L) const = 0;
  // The function in a slot of the Lua stack, called or not. False if there is none.
  virtual bool function_in_slot(const Memory& memory, Address L, Address slot, LuaCall& call) const = 0;

  // ---- The collector
  virtual CollectorState collector(const Memory& memory, Address G) const = 0;
  // The coroutine in which LuaJIT runs finalizers (global_State.vmthref, from 2025-11 on:
  // 5c647754); 0: none.
  virtual Address finalizer_thread(const Memory&, Address) const { return 0; }
  virtual Address first_object(const Memory& memory, Address G) const = 0;  // 0: none, or unreadable
  // False if there is no object that could be in a collector's list.
  virtual bool read_head(const Memory& memory, Address object, ObjectHead& head) const = 0;

  // ---- Allocations
  // The function with which it allocates, moves and frees everything (lua.h, lua_Alloc); 0: not
  // known.
  virtual Address allocation_function(const Memory& memory, Address G) const = 0;
  // The fields that count the bytes in use, next to each other: one read has them as they were at
  // one instant. At most largest_counter bytes; empty: not known.
  virtual AddressRange heap_counter(Address G) const = 0;
  // The bytes in use, as CollectorState.bytes.
  virtual std::int64_t heap_bytes(std::span<const std::byte> counter) const = 0;
  static constexpr std::size_t largest_counter = 16;
  // What a new block is for, by the `osize` that lua_Alloc gets with it. nullopt: a part of an
  // object, such as a table's array, or this Lua does not say it.
  virtual std::optional<ObjectType> type_of_new(std::uint64_t osize) const = 0;

  // ---- The heap
  // Every object of `G`. `memory` must outlive it. nullptr: its lists are not known.
  virtual std::unique_ptr<HeapReader> heap_reader(const Memory& memory, Address G) const = 0;

  // ---- Its memory
  // What its own allocator has, which serves this one global_State. nullopt: the program has given
  // it another one, such as malloc; PUC's luaL_newstate always does. `space` bounds what is walked.
  virtual std::optional<AllocatorMemory> allocator(const Memory&, const AddressSpace&, Address) const {
    return std::nullopt;
  }
  // What allocators and JIT compilers of this Lua have mapped alone, in the whole process. `taken`:
  // memory that is known to be something else, ascending and disjoint.
  virtual SharedLuaMemory shared_memory(const Memory&, const ResidentMemory&, std::span<const AddressRange>) const {
    return {};
  }

  // ---- Functions
  // `most_bytes`: there is none if its arrays have more; strings that may not fit are left out.
  virtual std::optional<Prototype> prototype(const Memory& memory, Address proto,
                                             std::size_t most_bytes = most_prototype_bytes) const = 0;
  static constexpr std::size_t most_prototype_bytes = 64 << 20;
  virtual std::optional<FunctionPlace> place(const Memory& memory, Address proto) const = 0;
  // A number computed from the fields of a Proto that do not change while it lives (LuaCall.mark);
  // 0 if there is none.
  virtual std::uint64_t mark(const Memory& memory, Address proto) const = 0;
  virtual std::optional<std::int32_t> line_defined(const Memory& memory, Address proto) const = 0;
  virtual std::optional<Function> function(const Memory& memory, Address G, Address closure) const = 0;
  // Does the instruction at which `caller` stands say what it has called?
  virtual bool is_named_by_caller(const LuaCall& call) const = 0;
  // May the function that runs not be the one that the caller's instruction names, and nothing tells?
  bool hides_tail_calls() const { return kind() == LuaKind::luajit; }
  // Compares the function at the end of `path` in `caller` with `callee`. `live`: the target's
  // memory as it is now. `stopped`: what the stop read, for the caller's registers; if LuaCall.func
  // is 0, they are not in memory.
  virtual Callee check_callee(const Memory& live, const Memory& stopped, Address G, const ValuePath& path,
                              const LuaCall& caller, const LuaCall& callee) const = 0;

  // ---- Values (TValue in lobject.h, lj_obj.h)
  // Size of a slot of the Lua stack, and of an array element of a table except in 5.5.
  std::size_t slot_size() const { return sizes_.slot; }
  virtual Value load_value(std::span<const std::byte> slots, std::size_t offset) const = 0;
  std::optional<Value> read_value(const Memory& memory, Address slot) const;
  // This Lua, knowing the types of its numbers, as far as the state `G` shows them. PUC can be built with
  // others than double and 64-bit integers; without this, numbers that may be of other types are
  // Value::Type::unknown_number. Reads tables of the state: some 100 µs.
  virtual const Lua& with_number_types(const Memory&, Address) const { return *this; }
  virtual std::string number_text(const Value& number) const = 0;  // as tostring() shows it
  virtual std::string light_userdata_text(std::uint64_t word) const = 0;
  virtual std::string cdata_text(const Memory& memory, Address cdata) const = 0;
  virtual Userdata userdata(const Memory& memory, Address object) const = 0;
  // A userdata of the io library, by its bytes.
  virtual bool is_closed_file(const Memory& memory, Address bytes) const = 0;

  // ---- Strings (TString, GCstr)
  std::size_t string_header_size() const { return sizes_.string_header; }
  std::size_t string_alignment() const { return sizes_.string_alignment; }
  virtual std::optional<Characters> characters(std::span<const std::byte> header) const = 0;

  // ---- Tables
  // The form of this process's tables; nullopt if it cannot be told yet.
  virtual std::optional<TableForm> find_table_form(const Memory& memory, Address G) const = 0;
  virtual TableForm stock_table_form() const = 0;
  virtual std::optional<TableParts> table_parts(const Memory& memory, TableForm form, Address table) const = 0;
  // Calls `visit` for each entry that is not nil, until it returns false; those of the array part
  // come first, in order. Looks at up to `most_slots`, read in pieces. False if it ended for any
  // other reason.
  bool visit_entries(const Memory& memory, const TableParts& parts, std::uint64_t most_slots,
                     const std::function<bool(const Value& key, const Value& value)>& visit) const;
  // The table of globals of `L`; 0 if it cannot be read.
  virtual Address globals_table(const Memory& memory, TableForm form, Address G, Address L) const = 0;

  // ---- The variables of a call (variables.h)
  // At the first instruction of this call, may its parameters be at another place, or not exist
  // yet?
  virtual bool prepares_parameters(const LuaCall& call) const = 0;
  virtual Address first_local(const Memory& memory, const LuaCall& call) const = 0;  // 0: not known
  virtual Slots varargs(const Memory& memory, const LuaCall& call, std::uint64_t parameters) const = 0;
  // Where the first argument of `call` is, which an instruction of `caller` called in this register;
  // 0: not known.
  virtual Address first_argument(const Memory& memory, const LuaCall& caller, int called_register,
                                 const LuaCall& call) const = 0;
  // What a C function has on its part of the stack: walk.calls[index].
  virtual Slots c_arguments(const Memory& memory, Address L, const LuaWalk& walk, std::size_t index) const = 0;
  std::size_t upvalue_count(const Memory& memory, Address closure) const {
    return memory.get<std::uint8_t>(closure + sizes_.upvalue_count).value_or(0);
  }
  // Where the value of an upvalue of a Lua closure is; 0 if it cannot be read.
  virtual Address upvalue_slot(const Memory& memory, Address closure, std::size_t index) const = 0;
  // The same of a C closure, which holds them itself.
  virtual Address c_upvalue_slot(Address closure, std::size_t index) const = 0;
  // The first instruction of the C function that `call` calls, if `call` is LuaJIT's function that
  // calls C functions by their type; else 0. `stopped`, `live`: as for check_callee().
  virtual Address ffi_function(const Memory&, const Memory&, const LuaCall&) const { return 0; }

 protected:
  // The fields for identity(); at most most_identity bytes.
  virtual std::array<AddressRange, 3> identity_fields(Address G) const = 0;
  static constexpr std::size_t most_identity = 128;

  // What is the same for all objects of a Lua. Bytes.
  struct Sizes {
    LuaKind kind = LuaKind::puc;
    Offset registry = 0;  // from the global_State on
    Offset slot = 0, string_header = 0, string_alignment = 8, node = 0;
    Offset upvalue_count = 0;       // from the closure on
    std::uint64_t first_index = 1;  // of a table's array part
    bool integer_keys = false;      // its keys are integers; false: there are only floats
  };
  Lua(const StateFields& state, const Sizes& sizes) : state_(state), sizes_(sizes) {}

  // A key and its value in a hash part.
  virtual std::pair<Value, Value> load_node(std::span<const std::byte> node) const = 0;
  // Calls `visit` for the first `count` slots of the array part.
  virtual bool visit_array(const Memory& memory, const TableParts& parts, std::uint64_t count,
                           const std::function<bool(std::uint64_t index, const Value& value)>& visit) const;
  const Sizes& sizes() const { return sizes_; }

 private:
  StateFields state_;
  Sizes sizes_;
};

}  // namespace luaspy
