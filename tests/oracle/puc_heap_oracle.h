#pragma once
// Compares PucHeap with what Lua's allocator is asked for: each object is a block of memory of its own,
// and from 5.2 on Lua tells the allocator its type (lua_Alloc in the manual). The sum is that of all
// blocks. A script makes a varied heap and stops in many phases of the collector. Included after Lua's
// own headers.

#include <map>
#include <set>
#include <utility>

#include "compare.h"
#include "luastate/puc/puc_heap.h"

namespace heap_oracle {

using namespace luaspy;

struct Block {
  std::uint64_t size = 0;
  int tag = 0;
};
inline std::map<Address, Block> blocks;
inline const Layout* row = nullptr;

struct Seen {
  long comparisons = 0, objects = 0, dead = 0, reached = 0, torn = 0;
  std::map<ObjectType, long> types;
  std::set<std::string> phases;
};
inline Seen seen;

inline Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

inline void* allocate(void*, void* block, std::size_t old_size, std::size_t size) {
  const auto known = blocks.find(address_of(block));
  const int tag = block == nullptr ? static_cast<int>(old_size) : known->second.tag;
  if (block != nullptr) {
    expect_at("a block's size", std::to_string(known->second.size), std::to_string(old_size), 0, 0);
    blocks.erase(known);
  }
  if (size == 0) return std::free(block), nullptr;
  void* const now = std::realloc(block, size);
  blocks[address_of(now)] = {size, tag};
  return now;
}

// What Lua has allocated, and nothing else: as in a copy, constants of the program are missing.
class BlockMemory : public Memory {
 public:
  bool read(Address address, std::span<std::byte> into) const override {
    const auto after = blocks.upper_bound(address);
    if (after == blocks.begin()) return false;
    const auto& [start, block] = *std::prev(after);
    if (address - start > block.size || into.size() > block.size - (address - start)) return false;
    std::memcpy(into.data(), reinterpret_cast<const std::byte*>(address), into.size());
    return true;
  }
};

inline std::optional<ObjectType> type_of(int tag) {
  switch (tag) {
    case LUA_TSTRING:
      return ObjectType::string;
    case LUA_TTABLE:
      return ObjectType::table;
    case LUA_TFUNCTION:
      return ObjectType::lua_function;  // or a C function
    case LUA_TUSERDATA:
      return ObjectType::userdata;
    case LUA_TTHREAD:
      return ObjectType::thread;
#if LUA_VERSION_NUM >= 502
    case LUA_TPROTO:
      return ObjectType::prototype;
#if LUA_VERSION_NUM != 503  // there it is no object of the collector
    case LUA_TUPVAL:
      return ObjectType::upvalue;
#endif
#endif
    default:
      return std::nullopt;
  }
}

// What is allocated with the object itself; the rest of its size is in other blocks.
inline std::uint64_t own_size(const HeapObject& object) {
  switch (object.type) {
    case ObjectType::table:
      return row->heap.table_size;
    case ObjectType::thread:
      return row->heap.thread_size;
    case ObjectType::prototype:
      return row->p_size;
    default:
      return object.size;
  }
}

inline std::string text(const HeapObject& object) {
  return std::string(name(object.type)) + ", " + std::to_string(object.size) + " bytes" +
         (object.is_dead ? ", dead" : "");
}

using Objects = std::map<Address, HeapObject>;

// Each object is a block of its size and type.
inline void compare_blocks(const Objects& objects, Address main, const std::string& what) {
  long there = 0;
  for (const auto& [address, object] : objects) {
    ++seen.objects;
    ++seen.types[object.type];
    seen.dead += object.is_dead ? 1 : 0;
    if (address == main) continue;  // part of a bigger block
    const Address start = object.type == ObjectType::thread ? address - (row->heap.thread_size - row->L_size) : address;
    const auto block = blocks.find(start);
    const std::uint64_t size = block != blocks.end() ? block->second.size : 0;
    expect_at((what + ", block of a " + std::string(name(object.type))).c_str(), std::to_string(size),
              std::to_string(own_size(object)), 0, 0);
    if (block == blocks.end()) continue;
    const std::optional<ObjectType> type = type_of(block->second.tag);
    if (!type) continue;
    ++there;
    const ObjectType its = object.type == ObjectType::c_function ? ObjectType::lua_function : object.type;
    expect_at((what + ", type").c_str(), name(*type), name(its), 0, 0);
  }
  long expected = 0;
  for (const auto& [unused, block] : blocks) expected += type_of(block.tag) ? 1 : 0;
#if LUA_VERSION_NUM >= 502
  expect_at((what + ", objects with a type").c_str(), std::to_string(expected - 1), std::to_string(there), 0, 0);
#endif
}

// What the collector has found to be dead cannot be reached. With `all`, everything else can.
inline void compare_reached(const PucHeap& heap, const Objects& objects, bool all, const std::string& what) {
  std::set<Address> reached;
  std::vector<Address> open;
  const auto reach = [&](Address address) {
    if (objects.contains(address) && reached.insert(address).second) open.push_back(address);
  };
  std::vector<std::pair<Address, Address>> ephemerons;  // key and value, in tables that were reached
  heap.visit_roots([&](const Root& root) { reach(root.to); });
  for (bool more = true; more;) {
    while (!open.empty()) {
      const Address address = open.back();
      open.pop_back();
      heap.visit_references(objects.at(address), [&](const Reference& reference) {
        if (reference.from == address) reach(reference.to);
        else ephemerons.emplace_back(reference.from, reference.to);
      });
    }
    for (const auto& [key, value] : ephemerons) {
      if (reached.contains(key)) reach(value);
    }
    more = !open.empty();
  }
  seen.reached += static_cast<long>(reached.size());
  for (const auto& [address, object] : objects) {
    if (object.is_dead)
      expect_at((what + ", dead").c_str(), "not reached", reached.contains(address) ? text(object) : "not reached", 0,
                0);
    else if (all)
      expect_at((what + ", after a full collection").c_str(), "reached",
                reached.contains(address) ? "reached" : text(object), 0, 0);
  }
}

inline void compare_all(lua_State* L, const Layout& layout, const std::string& what) {
  const BlockMemory memory;
  const PucLua lua(layout);
  const Address G = address_of(G(L));
  const PucHeap heap(memory, lua, G);
  Objects objects;
  std::uint64_t sum = heap.other_bytes();
  const bool complete = heap.visit_objects(10'000'000, [&](const HeapObject& object) {
    if (!objects.emplace(object.address, object).second) expect_at((what + ", twice").c_str(), "", text(object), 0, 0);
    sum += object.size;
  });
  expect_at((what + ", complete").c_str(), 1, complete ? 1 : 0, 0, 0);
  const CollectorState collector = lua.collector(memory, G);
  std::uint64_t allocated = 0;
  for (const auto& [unused, block] : blocks) allocated += block.size;
  // 5.5 has strings whose characters it does not count (lstring.c, luaS_newextlstr).
  if (LUA_VERSION_NUM >= 505) allocated = static_cast<std::uint64_t>(collector.bytes);
  expect_at((what + ", the counter").c_str(), std::to_string(allocated), std::to_string(collector.bytes), 0, 0);
  expect_at((what + ", the sum").c_str(), std::to_string(allocated), std::to_string(sum), 0, 0);
  compare_blocks(objects, lua.main_thread(memory, G), what);
  compare_reached(heap, objects, what == "after a full collection", what);
  ++seen.comparisons;
  seen.phases.insert(std::string(collector.phase));
}

// heap(what)
inline int compare_heap(lua_State* L) {
  compare_all(L, *row, lua_tostring(L, 1));
  return 0;
}

// phase()
inline int push_phase(lua_State* L) {
  const std::string phase(PucLua(*row).collector(BlockMemory(), address_of(G(L))).phase);
  lua_pushlstring(L, phase.data(), phase.size());
  return 1;
}

// phases(): each number that this Lua gives to a phase has a name.
inline int compare_phases(lua_State* L) {
  struct Phase {
    int number;
    const char* name;
  };
#if LUA_VERSION_NUM == 501
  const Phase phases[] = {{GCSpause, "GCSpause"},
                          {GCSpropagate, "GCSpropagate"},
                          {GCSsweepstring, "GCSsweepstring"},
                          {GCSsweep, "GCSsweep"},
                          {GCSfinalize, "GCSfinalize"}};
#elif LUA_VERSION_NUM == 502
  const Phase phases[] = {
      {GCSpropagate, "GCSpropagate"},   {GCSatomic, "GCSatomic"}, {GCSsweepstring, "GCSsweepstring"},
      {GCSsweepudata, "GCSsweepudata"}, {GCSsweep, "GCSsweep"},   {GCSpause, "GCSpause"}};
#else
#if LUA_VERSION_NUM == 503
  const Phase other_atomic = {GCSpause + 1, "GCSinsideatomic"};  // lgc.c
#else
  const Phase other_atomic = {GCSenteratomic, "GCSenteratomic"};
#endif
  const Phase phases[] = {
      {GCSpropagate, "GCSpropagate"}, {GCSatomic, "GCSatomic"},       other_atomic,
      {GCSswpallgc, "GCSswpallgc"},   {GCSswpfinobj, "GCSswpfinobj"}, {GCSswptobefnz, "GCSswptobefnz"},
      {GCSswpend, "GCSswpend"},       {GCScallfin, "GCScallfin"},     {GCSpause, "GCSpause"}};
#endif
  const auto phase_now = G(L)->gcstate;
  for (const Phase& phase : phases) {
    G(L)->gcstate = static_cast<lu_byte>(phase.number);
    const CollectorState collector = PucLua(*row).collector(BlockMemory(), address_of(G(L)));
    expect_at("phase", phase.name, collector.known ? std::string(collector.phase) : "not known", 0, 0);
  }
  G(L)->gcstate = phase_now;
  return 0;
}

// A wrong field must be detected.
inline int expect_noticed(lua_State* L) {
  const auto notice = [&](const char* field, const Layout& wrong) {
    const long before = count.differ;
    const Seen seen_before = seen;
    const Layout* const right = std::exchange(row, &wrong);
    planted = true;
    compare_all(L, wrong, field);
    planted = false;
    row = right;
    seen = seen_before;
    const bool is_noticed = std::exchange(count.differ, before) > before;
    expect_at(field, "noticed", is_noticed ? "noticed" : "unnoticed", 0, 0);
  };
  const auto move = [&](const char* field, Offset HeapFields::*offset, int by) {
    Layout wrong = *row;
    if (wrong.heap.*offset == no_field) return;
    wrong.heap.*offset = static_cast<Offset>(wrong.heap.*offset + by);
    notice(field, wrong);
  };
  move("G_strt_size", &HeapFields::G_strt_size, -4);
  move("G_finobj", &HeapFields::G_finobj, 8);
  move("G_fixedgc", &HeapFields::G_fixedgc, 8);
  if (LUA_VERSION_NUM == 501) move("G_buffsize", &HeapFields::G_buffsize, -8);
  // In others, open upvalues are in the collector's list, too.
  if (LUA_VERSION_NUM <= 503) move("L_openupval", &HeapFields::L_openupval, 8);
  move("udata_len", &HeapFields::udata_len, -8);
  move("long_string_data", &HeapFields::long_string_data, 8);
  Layout wrong = *row;
  wrong.heap.table_size += 8;
  notice("table_size", wrong);
  wrong = *row;
  wrong.heap.upvalue_size += 8;
  notice("upvalue_size", wrong);
  return 0;
}

inline constexpr const char* script = R"LUA(
local heap, noticed, phase, keep = heap, noticed, phase, {}
local function add(...) for i = 1, select("#", ...) do keep[#keep + 1] = (select(i, ...)) end end
local load = loadstring or load
local yield, create, resume, wrap = coroutine.yield, coroutine.create, coroutine.resume, coroutine.wrap
heap("a new state")
phases()
-- Tables: array and hash parts of all sizes, grown, shrunk, with holes.
for n = 0, 70 do
  local list, map, both = {}, {}, { 1, 2, x = 3 }
  for i = 1, n do list[i], map["k" .. i], both[i], both[-i] = {}, i, i, { i } end
  for i = 1, n, 3 do list[i] = nil end
  add(list, map, both)
end
local big, shrunk = {}, {}
for i = 1, 3000 do big[i], big["k" .. i], shrunk[i], shrunk["k" .. i] = i, {}, {}, i end
for i = 1, 3000 do shrunk[i], shrunk["k" .. i] = nil, nil end
shrunk.again = 1
add(big, shrunk)
-- Strings of all lengths.
for i = 0, 90 do add(("x"):rep(i) .. i) end
add(("long"):rep(10000))
-- Weak tables; ephemerons, also in chains.
for _, mode in ipairs { "k", "v", "kv", "neither" } do
  local weak = setmetatable({}, { __mode = mode })
  for i = 1, 40 do
    local key, value = { i }, { value = i }
    weak[key], weak[i], weak["s" .. i] = value, "text" .. i, {}
    if i % 3 == 0 then add(key) end
  end
  local last = { "first" }
  add(last)
  for i = 1, 20 do local next_one = { i } weak[last] = next_one last = next_one end
  add(weak)
end
-- Functions: shared and open upvalues, C functions with upvalues, without names, nested.
local function counter() local n, t = 0, {} return function() n = n + 1 return t end, function() return n, t end end
for i = 1, 30 do add(counter()) end
add(string.gmatch("a b", "%a"), io.lines("/dev/null"), load(string.dump(counter)), load("local a return function() return a, {1, x = 'y'} end"))
-- Coroutines: not begun, waiting, ended, failed, with big stacks.
local function deep(n, ...) local here = { n } if n == 0 then yield(here, ...) return here end local r = deep(n - 1, here, ...) return r, here end
for _, f in ipairs { function() yield({}) end, function() deep(60) end, function(...) local v = { ... } local function g() return v end yield(g) return g end } do
  local co = create(f)
  resume(co, {}, "x")
  add(co, create(f))
end
local failed, ended, large = create(function() error({}) end), create(function() end), create(function() local function r(n) if n > 0 then return 1 + r(n - 1) end yield() return 0 end r(5000) end)
resume(failed) resume(ended) resume(large)
add(failed, ended, large)
-- Userdata and finalizers.
local function finalizer(f)
  if newproxy then local p = newproxy(true) getmetatable(p).__gc = f return p end
  return setmetatable({ {} }, { __gc = f })
end
for i = 1, 20 do add(finalizer(function() end)) end
add(io.open("/dev/null"), io.tmpfile(), userdata(1000))
heap("all kinds")
local open = { "open" }
local function uses_open() return open end
noticed()
wrap(function(...) local mine = { ... } heap("in a coroutine") return mine end)({}, {})
table.sort({ 3, 1, 2 }, function(x, y) if x == 3 then heap("in a comparison") end return x < y end)
string.gsub("a", "a", function() heap("in gsub") end)
do local p = finalizer(function() heap("in a finalizer") end) p = nil end
collectgarbage() collectgarbage()
collectgarbage("stop")
local function litter(n)
  for i = 1, n do
    local t, f, g = { i, {} }, counter()
    wrap(function(x) local mine = { x } yield(function() return mine end) end)(t)
    local s, p = "dead" .. i, finalizer(function() end)
    add(load("return " .. i))
  end
end
local function cycle(mode)
  litter(100)
  for i = 1, #keep, 3 do keep[i] = false end
  local steps, often = 0, VERSION == 501 and 60 or 3  -- 5.1 sweeps in small steps
  if VERSION ~= 505 then collectgarbage("setstepmul", 10) end
  if VERSION == 504 then collectgarbage("incremental", 100, 10, 4) end
  if VERSION == 505 then collectgarbage("param", "stepmul", 100) collectgarbage("param", "stepsize", 4000) end
  repeat
    steps = steps + 1
    local done = collectgarbage("step", 0)
    if steps <= 6 or steps % (phase() ~= "GCSpropagate" and often or steps < 200 and 7 or 500) == 0 then heap(mode) end
  until done or steps > 200000
  collectgarbage("stop")
  heap(mode .. ", at its end")
end
for i = 1, 3 do cycle("in the cycle") end
if pcall(collectgarbage, "generational") and VERSION ~= 501 and VERSION ~= 503 then
  for i = 1, 3 do
    litter(60)
    heap("generational")
    collectgarbage("step", 0)
    heap("generational, after a step")
  end
  collectgarbage("incremental")
end
collectgarbage() collectgarbage() collectgarbage("stop")
heap("after a full collection")
)LUA";

inline int new_userdata(lua_State* L) {
  const auto size = static_cast<std::size_t>(lua_tointeger(L, 1));
#if LUA_VERSION_NUM >= 504
  lua_newuserdatauv(L, size, 3);
  lua_newtable(L);
  lua_setiuservalue(L, -2, 2);
#else
  lua_newuserdata(L, size);
#endif
  return 1;
}

inline bool run(const Layout& layout) {
  row = &layout;
#if LUA_VERSION_NUM >= 505
  lua_State* const L = lua_newstate(allocate, nullptr, 1);
#else
  lua_State* const L = lua_newstate(allocate, nullptr);
#endif
  luaL_openlibs(L);
  lua_register(L, "heap", compare_heap);
  lua_register(L, "noticed", expect_noticed);
  lua_register(L, "phase", push_phase);
  lua_register(L, "phases", compare_phases);
  lua_register(L, "userdata", new_userdata);
  lua_pushinteger(L, LUA_VERSION_NUM);
  lua_setglobal(L, "VERSION");
  const long before = count.differ;
  const bool good = luaL_loadbuffer(L, script, std::char_traits<char>::length(script), "@heap.lua") == 0 &&
                    lua_pcall(L, 0, 0, 0) == 0;
  if (!good) std::printf("heap: %s\n", lua_tostring(L, -1));
  lua_close(L);
  std::printf("%ld heaps with %ld objects (%ld dead, %ld reached) compared in %zu phases, %ld differ; ",
              seen.comparisons, seen.objects, seen.dead, seen.reached, seen.phases.size(), count.differ - before);
  bool all = good && blocks.empty();
  for (const ObjectType type : {ObjectType::string, ObjectType::table, ObjectType::lua_function, ObjectType::c_function,
                                ObjectType::userdata, ObjectType::thread, ObjectType::prototype, ObjectType::upvalue}) {
    if (seen.types[type] == 0) std::printf("no %s was compared; ", std::string(name(type)).c_str()), all = false;
  }
  if (seen.dead == 0 || seen.phases.size() < 3) std::printf("no dead object, or few phases; "), all = false;
  return all;
}

}  // namespace heap_oracle
