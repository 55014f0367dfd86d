// Compares LuajitHeap with luajit_heap_inside.c, in the process of a LuaJIT: every object, its
// type, size and references, the roots, and the sum of all with gc.total. A script makes a varied
// heap and stops in many phases of the collector.

extern "C" {
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
}

#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/page_cache.h"
#include "compare.h"
#include "luajit_heap_inside.h"
#include "luajit_heap_oracle.h"
#include "luajit_heap_script.h"
#include "luajit_inside.h"
#include "luastate/luajit/layouts.h"
#include "luastate/luajit/luajit_heap.h"
#include "support/dice.h"

using namespace luaspy;

namespace {

ObjectType type_of(const inside_object& object) {
  switch (object.gct) {
    case luajit::gct_string:
      return ObjectType::string;
    case luajit::gct_upvalue:
      return ObjectType::upvalue;
    case luajit::gct_thread:
      return ObjectType::thread;
    case luajit::gct_proto:
      return ObjectType::prototype;
    case luajit::gct_function:
      return object.is_lua_function != 0 ? ObjectType::lua_function : ObjectType::c_function;
    case luajit::gct_trace:
      return ObjectType::trace;
    case luajit::gct_cdata:
      return ObjectType::cdata;
    case luajit::gct_table:
      return ObjectType::table;
    default:
      return ObjectType::userdata;
  }
}

std::string text(const HeapObject& object) {
  return std::string(name(object.type)) + ", " + std::to_string(object.size) + " bytes" +
         (object.is_dead ? ", dead" : "");
}

// What the comparisons have seen: none of it may be missing.
struct Seen {
  long comparisons = 0, objects = 0, references = 0, dead = 0, waiting = 0, recording = 0, torn = 0;
  std::map<ObjectType, long> types;
  std::set<int> phases;
};
Seen seen;

using Addresses = std::set<Address>;
void add_address(void* into, std::uint64_t address) { static_cast<Addresses*>(into)->insert(address); }

std::string list(const Addresses& addresses, const Addresses& others) {
  std::string text;
  for (const Address address : addresses) {
    if (others.contains(address)) continue;
    char digits[24];
    std::snprintf(digits, sizeof digits, " %llx", static_cast<unsigned long long>(address));
    text += digits;
  }
  return text.substr(0, 200);
}

void expect_addresses(const std::string& what, const Addresses& expected, const Addresses& got) {
  if (expected != got) expect_at(what.c_str(), list(expected, got), list(got, expected), 0, 0);
}

void compare_objects(lua_State* L, const LuajitHeap& heap, const std::string& what) {
  std::map<Address, HeapObject> expected, got;
  inside_objects(
      L,
      [](void* into, const inside_object* object) {
        (*static_cast<std::map<Address, HeapObject>*>(into))[object->address] = {object->address, type_of(*object),
                                                                                 object->is_dead != 0, object->size};
      },
      &expected);
  std::uint64_t sum = heap.other_bytes();
  const bool complete = heap.visit_objects(10'000'000, [&](const HeapObject& object) {
    if (!got.emplace(object.address, object).second) expect_at((what + ", twice").c_str(), "", text(object), 0, 0);
    sum += object.size;
  });
  expect_at((what + ", complete").c_str(), 1, complete ? 1 : 0, 0, 0);
  expect_at((what + ", objects").c_str(), static_cast<int>(expected.size()), static_cast<int>(got.size()), 0, 0);
  for (const auto& [address, object] : expected) {
    const auto same = got.find(address);
    expect_at(what.c_str(), text(object), same != got.end() ? text(same->second) : "missing", 0, 0);
    ++seen.types[object.type];
    ++seen.objects;
    seen.dead += object.is_dead ? 1 : 0;
    if (object.is_dead) continue;
    Addresses referred, read;
    inside_references(L, address, add_address, &referred);
    heap.visit_references(object, [&](const Reference& reference) {
      read.insert(reference.to);
      // A value counts also if its weak key does not live on.
      expect_at((what + ", from").c_str(), 1, reference.from == address ? 1 : 0, 0, 0);
    });
    seen.references += static_cast<long>(referred.size());
    expect_addresses(what + ", references of a " + std::string(name(object.type)), referred, read);
  }
  expect_at((what + ", other bytes").c_str(), std::to_string(inside_other_bytes(L)), std::to_string(heap.other_bytes()),
            0, 0);
  expect_at((what + ", gc.total").c_str(), std::to_string(inside_total(L)), std::to_string(sum), 0, 0);
}

// After a full collection everything that is left must be reachable.
void expect_reachable(const LuajitHeap& heap) {
  std::unordered_map<Address, HeapObject> left;
  heap.visit_objects(10'000'000, [&](const HeapObject& object) { left.emplace(object.address, object); });
  std::vector<HeapObject> found;
  const auto find = [&](Address address) {
    const auto object = left.find(address);
    if (object == left.end()) return;
    found.push_back(object->second);
    left.erase(object);
  };
  heap.visit_roots([&](const Root& root) { find(root.to); });
  while (!found.empty()) {
    const HeapObject object = found.back();
    found.pop_back();
    heap.visit_references(object, [&](const Reference& reference) { find(reference.to); });
  }
  for (const auto& [address, object] : left) expect_at("after a full collection", "reachable", text(object), 0, 0);
}

// Memory of which some reads give something else: addresses, sizes, types.
class TornMemory : public Memory {
 public:
  TornMemory(const Memory& whole, Dice& dice) : whole_(whole), dice_(dice) {}
  bool read(Address address, std::span<std::byte> into) const override {
    ++reads;
    if (!whole_.read(address, into)) return false;
    if (dice_(torn_of) == 0) into[dice_(static_cast<unsigned>(into.size()))] = static_cast<std::byte>(dice_(256));
    return true;
  }
  mutable long reads = 0;

 private:
  static constexpr unsigned torn_of = 2000;
  const Memory& whole_;
  Dice& dice_;
};

// A heap of which parts are wrong is visited within bounds.
void visit_torn(const Memory& memory, const LuajitLua& lua, Address G, const LuajitHeapFields& fields) {
  constexpr long most_reads = 20'000'000;
  Dice dice;
  for (int i = 0; i < 20; ++i) {
    const TornMemory torn(memory, dice);
    const LuajitHeap heap(torn, lua, G, fields);
    std::vector<HeapObject> objects;
    heap.visit_objects(100'000, [&](const HeapObject& object) { objects.push_back(object); });
    for (const HeapObject& object : objects) heap.visit_references(object, [&](const Reference&) { ++seen.torn; });
    heap.visit_roots([&](const Root&) {});
    (void)heap.other_bytes();
    expect_at("reads of a torn heap", "bounded", torn.reads < most_reads ? "bounded" : std::to_string(torn.reads), 0,
              0);
  }
}

void compare_all(lua_State* L, const LuajitHeap& heap, const std::string& what) {
  compare_objects(L, heap, what);
  Addresses expected, got;
  inside_roots(L, add_address, &expected);
  heap.visit_roots([&](const Root& root) { got.insert(root.to); });
  expect_addresses(what + ", roots", expected, got);
}

// A wrong offset must be detected.
void expect_noticed(lua_State* L, const Memory& memory, const LuajitLayout& layout, const LuajitHeapFields& fields) {
  const Address G = inside_globals(L);
  const int word = layout.ref_size;
  const auto must_notice = [&](const char* field, const LuajitLayout& layout, const LuajitHeapFields& fields) {
    const long before = count.differ;
    const Seen seen_before = seen;
    const LuajitLua lua(layout);
    planted = true;
    compare_all(L, LuajitHeap(memory, lua, G, fields), field);
    planted = false;
    seen = seen_before;
    const bool is_noticed = std::exchange(count.differ, before) > before;
    expect_at(field, "noticed", is_noticed ? "noticed" : "unnoticed", 0, 0);
  };
  const auto move = [&](const char* field, Offset LuajitLayout::*offset, int by) {
    LuajitLayout wrong = layout;
    wrong.*offset = static_cast<Offset>(wrong.*offset + by);
    must_notice(field, wrong, fields);
  };
  const auto move_field = [&](const char* field, Offset LuajitHeapFields::*offset, int by) {
    LuajitHeapFields wrong = fields;
    wrong.*offset = static_cast<Offset>(wrong.*offset + by);
    must_notice(field, layout, wrong);
  };
  move("L_openupval", &LuajitLayout::L_openupval, word);
  move("L_stacksize", &LuajitLayout::L_stacksize, 4);
  move("pt_trace", &LuajitLayout::pt_trace, -2);
  move("pt_sizept", &LuajitLayout::pt_sizept, 4);
  move("tab_colo", &LuajitLayout::tab_colo, -1);
  move("uv_size", &LuajitLayout::uv_size, 8);
  move("udata_env", &LuajitLayout::udata_env, word);
  move("udata_len", &LuajitLayout::udata_len, 4);
  move("cdata_ctypeid", &LuajitLayout::cdata_ctypeid, 2);
  move("T_nins", &LuajitLayout::T_nins, 4);
  move("T_nk", &LuajitLayout::T_nk, -4);
  move("T_nextroot", &LuajitLayout::T_nextroot, -2);
  move("T_nextside", &LuajitLayout::T_nextside, 2);
  move("G_gcroot", &LuajitLayout::G_gcroot, word);
  move_field("G_strtab", &LuajitHeapFields::G_strtab, 8);
  move_field("G_tmpbuf", &LuajitHeapFields::G_tmpbuf, 8);
  move_field("G_irbuf", &LuajitHeapFields::G_irbuf, 8);
  move_field("cts_cbid", &LuajitHeapFields::cts_cbid, 8);
  LuajitHeapFields wrong = fields;
  wrong.aligned_strings = !wrong.aligned_strings;
  must_notice("aligned_strings", layout, wrong);
}

// heap(what)
int compare_heap(lua_State* L) {
  const std::string what = lua_tostring(L, 1);
  const OwnMemory own;
  const PageCache memory(own);
  LuajitLayout layout = inside_gc64() != 0 ? layout_rows::luajit_gc64 : layout_rows::luajit_gc32;
  const Address G = inside_globals(L);
  if (!find_globals(memory, reinterpret_cast<Address>(L), G, layout))
    return expect_at(what.c_str(), "a state", "none", 0, 0), 0;
  const LuajitLua& lua = luajit_lua(layout);
  const std::optional<LuajitHeapFields> fields = find_heap_fields(memory, layout, G);
  if (!fields) return expect_at(what.c_str(), "a heap", "none", 0, 0), 0;
  const LuajitHeap heap(memory, lua, G, *fields);
  compare_all(L, heap, what);
  if (what == "traces") expect_noticed(L, memory, layout, *fields);
  if (what == "after a full collection") {
    expect_reachable(heap);
    visit_torn(memory, lua, G, *fields);
  }
  ++seen.comparisons;
  seen.waiting += static_cast<long>(inside_waiting(L));
  seen.recording += inside_recording(L);
  seen.phases.insert(inside_phase(L));
  return 0;
}

int phase(lua_State* L) {
  lua_pushinteger(L, inside_phase(L));
  return 1;
}

int light(lua_State* L) {
  lua_pushlightuserdata(L, reinterpret_cast<void*>(static_cast<Address>(lua_tointeger(L, 1) % 100) << 39));
  return 1;
}

}  // namespace

bool compare_heaps() {
  lua_State* const L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "heap", compare_heap);
  lua_register(L, "light", light);
  lua_register(L, "phase", phase);
  const long before = count.differ;
  if (luaL_loadbuffer(L, luajit_heap_script, std::char_traits<char>::length(luajit_heap_script), "@heap.lua") != 0 ||
      lua_pcall(L, 0, 0, 0) != 0) {
    std::printf("heap: %s\n", lua_tostring(L, -1));
    return false;
  }
  lua_close(L);
  std::printf("%ld heaps with %ld objects (%ld dead, %ld wait for __gc) and %ld references compared, %ld differ; ",
              seen.comparisons, seen.objects, seen.dead, seen.waiting, seen.references, count.differ - before);
  bool good = true;
  const auto must_have = [&](const char* what, bool is_there) {
    if (!is_there) std::printf("no %s was compared; ", what), good = false;
  };
  must_have("dead object", seen.dead > 0);
  must_have("waiting object", seen.waiting > 0);
  must_have("torn heap", seen.torn > 0);
  must_have("trace that is being recorded", seen.recording > 0);
  // GCSpause, GCSpropagate, GCSsweepstring, GCSsweep, GCSfinalize; GCSatomic is left in the step.
  must_have("phase of five", seen.phases.size() >= 5);
  for (std::size_t type = 0; type < object_types; ++type)
    must_have(std::string(name(static_cast<ObjectType>(type))).c_str(), seen.types[static_cast<ObjectType>(type)] > 0);
  return good;
}
