#include "luastate/collector.h"

#include <algorithm>
#include <array>

namespace luaspy {
namespace {

// The phases by number: PUC's from lgc.h, LuaJIT's from lj_gc.h.
constexpr std::string_view phases51[] = {"GCSpause", "GCSpropagate", "GCSsweepstring", "GCSsweep", "GCSfinalize"};
constexpr std::string_view phases52[] = {"GCSpropagate",  "GCSatomic", "GCSsweepstring",
                                         "GCSsweepudata", "GCSsweep",  "GCSpause"};
constexpr std::string_view phases53[] = {"GCSpropagate",  "GCSatomic", "GCSswpallgc", "GCSswpfinobj",
                                         "GCSswptobefnz", "GCSswpend", "GCScallfin",  "GCSpause"};
constexpr std::string_view phases54[] = {"GCSpropagate",  "GCSenteratomic", "GCSatomic",  "GCSswpallgc", "GCSswpfinobj",
                                         "GCSswptobefnz", "GCSswpend",      "GCScallfin", "GCSpause"};
constexpr std::string_view phases_luajit[] = {"GCSpause",       "GCSpropagate", "GCSatomic",
                                              "GCSsweepstring", "GCSsweep",     "GCSfinalize"};

std::span<const std::string_view> phases_of(const Dialect& lua) {
  if (lua.luajit != nullptr) return phases_luajit;
  switch (lua.puc->bytecode) {
    case Bytecode::lua51:
      return phases51;
    case Bytecode::lua52:
      return phases52;
    case Bytecode::lua53:
      return phases53;
    default:
      return phases54;
  }
}

// lstate.h, KGC_…
std::string_view mode_of(const Layout& layout, unsigned kind) {
  constexpr std::string_view modes52[] = {"incremental", "emergency", "generational"};
  // The last one exists from 5.5 on.
  constexpr std::string_view modes54[] = {"incremental", "generational", "generational, major"};
  if (layout.G_gckind == no_field || kind >= std::size(modes54)) return "incremental";
  return layout.bytecode == Bytecode::lua52 ? modes52[kind] : modes54[kind];
}

// WHITEBITS: bits 0 and 1 of `marked`; 3 and 4 from 5.4 on.
std::uint8_t white_bits(const Dialect& lua) {
  const bool high = lua.puc != nullptr &&
                    (lua.puc->bytecode == Bytecode::lua54 || lua.puc->bytecode == Bytecode::lua55);
  return high ? 0x18 : 0x03;
}

}  // namespace

CollectorState read_collector(const Memory& memory, const Dialect& lua, Address G) {
  CollectorState state;
  std::optional<std::uint8_t> phase, white;
  if (lua.luajit != nullptr) {
    const LuajitLayout& layout = *lua.luajit;
    if (layout.G_gc == no_field) return state;
    const Address gc = G + layout.G_gc;
    const auto total = read_ref(memory, layout, gc);
    white = memory.get<std::uint8_t>(gc + 2u * layout.ref_size);
    phase = memory.get<std::uint8_t>(gc + 2u * layout.ref_size + 1);
    state.bytes = static_cast<std::int64_t>(total.value_or(0));
    state.mode = "incremental";
  } else {
    const Layout& layout = *lua.puc;
    phase = memory.get<std::uint8_t>(G + layout.G_gcstate);
    white = memory.get<std::uint8_t>(G + layout.G_currentwhite);
    std::uint64_t total = memory.get<std::uint64_t>(G + layout.G_totalbytes).value_or(0);
    if (layout.G_GCdebt != no_field) {
      const std::uint64_t debt = memory.get<std::uint64_t>(G + layout.G_GCdebt).value_or(0);
      // lstate.h, gettotalbytes: in 5.5, GCdebt has the opposite sign.
      total += layout.bytecode == Bytecode::lua55 ? -debt : debt;
    }
    state.bytes = static_cast<std::int64_t>(total);
    state.mode = mode_of(layout,
                         layout.G_gckind != no_field ? memory.get<std::uint8_t>(G + layout.G_gckind).value_or(0) : 0);
  }
  if (!phase || !white) return state;
  const std::span<const std::string_view> phases = phases_of(lua);
  state.known = *phase < phases.size();
  if (state.known) state.phase = phases[*phase];
  state.dead_white = static_cast<std::uint8_t>(~*white & white_bits(lua));  // lgc.h, otherwhite
  return state;
}

Address main_thread_of(const Memory& memory, const Dialect& lua, Address G) {
  if (lua.luajit != nullptr) return G - lua.luajit->main_L_below;
  if (lua.puc->mainthread_embedded) return G + lua.puc->G_mainthread;
  return memory.get<Address>(G + lua.puc->G_mainthread).value_or(0);
}

Address finalizer_thread_of(const Memory& memory, const Dialect& lua, Address G) {
  constexpr Offset value_size = 8;
  if (lua.luajit == nullptr) return 0;
  // In releases that have vmthref, it follows the registry. In releases where the registry comes
  // directly after mainthref, a temporary value follows it instead.
  const LuajitLayout& layout = *lua.luajit;
  if (layout.G_registry <= layout.G_mainthref + value_size) return 0;
  const Address thread = read_ref(memory, layout, G + layout.G_registry + value_size).value_or(0);
  return is_thread_of(memory, layout, thread, G) ? thread : 0;
}

Address first_object(const Memory& memory, const Dialect& lua, Address G) {
  if (lua.puc != nullptr) return memory.get<Address>(G + lua.puc->G_allgc).value_or(0);
  const LuajitLayout& layout = *lua.luajit;
  if (layout.G_gc == no_field) return 0;
  return read_ref(memory, layout, G + layout.G_gc + 2u * layout.ref_size + 8).value_or(0);
}

bool read_head(const Memory& memory, const Dialect& lua, Address object, ObjectHead& head) {
  // lobject.h, CommonHeader: next, tt, marked; lj_obj.h, GCHeader: nextgc, marked, gct.
  std::array<std::byte, 16> bytes;
  if (lua.puc != nullptr) {
    if (!plausible_pointer(object) || !memory.read(object, bytes)) return false;
    head.next = load<Address>(bytes, 0);
    head.type = load<std::uint8_t>(bytes, 8);
    head.marked = load<std::uint8_t>(bytes, 9);
    head.is_thread = head.type == lua.puc->tag_thread;
    // The types from LUA_TSTRING to the last collectable one (5.1: LUA_TUPVAL, 10). Variants are in
    // the bits above; the other bits of the byte are clear.
    constexpr unsigned variant_bits = 0x30, first = 4, last = 10;
    const unsigned plain = head.type & ~variant_bits;
    return plain >= first && plain <= last && (head.next == 0 || plausible_pointer(head.next));
  }
  const LuajitLayout& layout = *lua.luajit;
  const auto used = std::span(bytes).first(layout.L_gct + 1u);
  if (!plausible_pointer(object) || !memory.read(object, used)) return false;
  head.next = load_ref(layout, used, 0);
  head.marked = load<std::uint8_t>(used, layout.L_gct - 1u);
  head.type = load<std::uint8_t>(used, layout.L_gct);
  head.is_thread = head.type == luajit::gct_thread;
  return head.type >= luajit::gct_upvalue && head.type <= luajit::gct_userdata &&
         (head.next == 0 || plausible_pointer(head.next));
}

namespace {

// The last objects visited, to return to a place where the list could still be trusted.
class Trail {
 public:
  void add(Address object) { objects_[slot(count_++)] = object; }
  std::int64_t count() const { return count_; }
  // Goes back up to `n` objects, as far as they are known. Returns the object to continue with; 0
  // if there is none.
  Address take_back(std::int64_t n, const std::function<void(Address)>& refresh) {
    const std::int64_t known = std::min<std::int64_t>({n, count_, size});
    for (std::int64_t i = 0; i < known; ++i) refresh(objects_[slot(count_ - 1 - i)]);
    count_ -= known;
    return known != 0 ? objects_[slot(count_)] : 0;
  }

 private:
  static constexpr std::int64_t size = 4096;
  static std::size_t slot(std::int64_t i) { return static_cast<std::size_t>(i % size); }
  std::array<Address, size> objects_;
  std::int64_t count_ = 0;
};

bool belongs(const Memory& memory, const Dialect& lua, Address L, Address G) {
  if (lua.luajit != nullptr) return is_thread_of(memory, *lua.luajit, L, G);
  return memory.get<Address>(L + lua.puc->L_G) == G;
}

}  // namespace

void list_threads(const Memory& memory, const Dialect& lua, Address G, Address object, const ListWalk& how,
                  ThreadList& list) {
  constexpr int most_breaks = 64;
  list = {};
  const CollectorState collector = read_collector(memory, lua, G);
  Trail trail;
  // For each thread found, the number of objects before it.
  std::vector<std::int64_t> at;
  int breaks = 0;
  // R. P. Brent's test for a cycle: an object at a power of two is seen again.
  Address landmark = 0;
  std::int64_t steps = 0, next_landmark = 1;
  while (object != 0) {
    ObjectHead head;
    bool good = read_head(memory, lua, object, head) && (!head.is_thread || belongs(memory, lua, object, G));
    // The youngest object is in the list before its type is set (lj_gc.c, lj_mem_newgco).
    if (!good && trail.count() == 0 && plausible_pointer(head.next)) good = true, head.is_thread = false;
    if (object == landmark || ++steps > how.most) return;
    if (!good) {
      if (!how.refresh || ++breaks > most_breaks) return;
      how.refresh(object);
      object = trail.take_back(std::int64_t{1} << std::min(breaks, 12), how.refresh);
      while (!at.empty() && at.back() >= trail.count()) at.pop_back(), list.threads.pop_back();
      list.objects = trail.count();
      landmark = 0;
      if (object == 0) object = first_object(how.live != nullptr ? *how.live : memory, lua, G);
      if (object == 0) return;
      continue;
    }
    if (steps == next_landmark) landmark = object, next_landmark *= 2;
    if (head.is_thread) {
      if (collector.is_dead(head.marked)) {
        ++list.dead_threads;
      } else {
        list.threads.push_back(object);
        at.push_back(trail.count());
      }
    }
    trail.add(object);
    ++list.objects;
    if (how.visit && !how.visit(object, head.next)) break;
    object = head.next;
  }
  list.complete = true;
}

}  // namespace luaspy
