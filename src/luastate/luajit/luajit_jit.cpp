#include "luastate/luajit/luajit_jit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "base/page_cache.h"
#include "luastate/cycle_detector.h"
#include "luastate/luajit/jit_starts.h"
#include "luastate/luajit/luajit_functions.h"
#include "luastate/luajit/trace_errors.h"
#include "luastate/luajit/traces.h"
#include "luastate/tables.h"

namespace luaspy {
namespace {

constexpr std::uint32_t most_traces = 1 << 16;  // TraceNo1 has 16 bits (lj_jit.h)
constexpr std::uint32_t most_snapshots = 1 << 10;
constexpr unsigned calls_between_searches = 8;

}  // namespace

unsigned attempts_of(unsigned penalty_value) {
  constexpr unsigned least = jit_layout::penalty_least;
  return penalty_value < least ? 0 : static_cast<unsigned>(std::bit_width(penalty_value / least));
}

JitLink JitTrace::link_kind() const {
  constexpr unsigned last = static_cast<unsigned>(JitLink::stitch);  // lj_jit.h, TraceLink, has the same order
  return link_type <= last ? static_cast<JitLink>(link_type) : JitLink::unknown;
}

LuajitJit::LuajitJit(const Memory& memory, const LuajitLua& lua, Address G)
    : memory_(memory), lua_(lua), layout_(lua.layout()), G_(G) {}

// lj_obj.h, global_State: dispatchmode follows hookmask; lj_dispatch.c, DISPMODE_JIT.
std::optional<bool> LuajitJit::is_on() const {
  const std::uint8_t dispmode_jit = layout_.is_20 ? 0x01 : 0x10;
  if (layout_.G_hookmask == no_field || (!fields_ && !find_jit_fields(memory_, layout_, G_))) return std::nullopt;
  const auto mode = memory_.get<std::uint8_t>(G_ + layout_.G_hookmask + 1);
  return mode ? std::optional((*mode & dispmode_jit) != 0) : std::nullopt;
}

bool LuajitJit::find_fields() {
  const bool is_complete = fields_ && fields_->G_errinfo != no_field && fields_->G_mcarea != no_field;
  if (is_complete || asked_++ % calls_between_searches != 0) return fields_.has_value();
  if (const std::optional<JitFields> found = find_jit_fields(memory_, layout_, G_)) fields_ = found;
  return fields_.has_value();
}

std::vector<JitPenalty> read_penalties(const LuajitLayout& layout, std::span<const std::byte> bytes) {
  std::vector<JitPenalty> penalties;
  for (std::size_t at = 0, i = 0; i < jit_layout::penalty_slots; ++i, at += jit_layout::penalty_size(layout)) {
    if (at + jit_layout::penalty_size(layout) > bytes.size()) break;
    const JitPenalty penalty = {load_ref(layout, bytes, at), load<std::uint16_t>(bytes, at + layout.ref_size),
                                load<std::uint16_t>(bytes, at + layout.ref_size + 2u)};
    if (plausible_pointer(penalty.start, 4) && penalty.value >= jit_layout::penalty_least) penalties.push_back(penalty);
  }
  return penalties;
}

JitDetail jit_detail(const LuajitLua& lua, std::uint64_t errinfo) {
  const Value value = lua.load_value(std::as_bytes(std::span(&errinfo, 1)), 0);
  if (value.is_object(Value::Type::function)) return {JitDetail::Kind::function, 0, value.word};
  if (value.type == Value::Type::nil) return {JitDetail::Kind::none};
  constexpr double most = 1 << 16;
  if (value.type != Value::Type::number) return {};
  const double number = value.number();
  if (!(number >= 0 && number < most) || number != std::floor(number)) return {};
  return {JitDetail::Kind::number, static_cast<int>(number)};
}

std::optional<JitInstant> LuajitJit::instant() {
  if (!find_fields()) return std::nullopt;
  const JitFields& fields = *fields_;
  const bool has_recording = fields.G_curtrace != no_field;
  const Offset first = has_recording ? fields.G_curtrace : fields.G_param;
  std::size_t end = fields.G_penalty + jit_layout::penalty_slots * jit_layout::penalty_size(layout_) + 4u;
  if (has_recording) end = std::max<std::size_t>(end, fields.G_startpc + 128u);
  if (fields.G_errinfo != no_field) end = std::max<std::size_t>(end, fields.G_errinfo + 8u);
  std::vector<std::byte> bytes(end - first);
  if (!memory_.read(G_ + first, bytes)) return std::nullopt;
  const auto at = [&](Offset offset) { return static_cast<std::size_t>(offset - first); };
  JitInstant now;
  now.penalties = read_penalties(layout_, std::span(bytes).subspan(at(fields.G_penalty)));
  const auto parameter = [&](std::size_t index) { return load<std::int32_t>(bytes, at(fields.G_param) + 4 * index); };
  const std::size_t last = fields.parameters - 1u, hotloop = layout_.is_20 ? 5 : 6;
  now.parameters = {parameter(0),           parameter(1),        parameter(hotloop), parameter(hotloop + 1),
                    parameter(hotloop + 2), parameter(last - 1), parameter(last)};
  if (!has_recording) return now;
  JitInstant::Recording& recording = now.last;
  const auto ref = [&](Offset offset) { return load_ref(layout_, bytes, at(offset)); };
  recording.start = ref(static_cast<Offset>(fields.G_curtrace + layout_.T_startpc));
  recording.number = load<std::uint16_t>(bytes, at(static_cast<Offset>(fields.G_curtrace + layout_.T_traceno)));
  recording.pc = load<Address>(bytes, at(fields.G_pc));
  recording.parent = load<std::uint32_t>(bytes, at(fields.G_startpc) + jit_layout::parent);
  recording.exit = load<std::uint32_t>(bytes, at(fields.G_startpc) + jit_layout::exitno);
  if (fields.G_errinfo != no_field)
    recording.detail = jit_detail(lua_, load<std::uint64_t>(bytes, at(fields.G_errinfo)));
  now.free_slot = load<std::uint32_t>(bytes, at(fields.G_trace) + 8);
  now.slots = load<std::uint32_t>(bytes, at(fields.G_trace) + jit_fields::sizetrace_after_trace);
  if (fields.G_mcarea == no_field) return now;
  now.has_machine_code = true;
  now.machine_code = load<std::uint64_t>(bytes, at(fields.G_mcarea) + jit_layout::szallmcarea);
  now.code_top = load<Address>(bytes, at(fields.G_mcarea) + jit_layout::mctop);
  return now;
}

// ---- Traces

std::vector<Address> LuajitJit::trace_objects() {
  std::vector<Address> objects;
  if (!find_fields() || fields_->G_trace == no_field) return objects;
  const Address at = G_ + fields_->G_trace, array = memory_.get<Address>(at).value_or(0);
  const std::uint32_t count = memory_.get<std::uint32_t>(at + jit_fields::sizetrace_after_trace).value_or(0);
  std::vector<std::byte> references(std::size_t{layout_.ref_size} * std::min(count, most_traces));
  if (!plausible_pointer(array) || !memory_.read(array, references)) return objects;
  const Address current = G_ + fields_->G_curtrace;  // it has a number while it is recorded
  for (std::size_t i = 0; i < references.size(); i += layout_.ref_size) {
    const Address object = load_ref(layout_, references, i);
    objects.push_back(plausible_pointer(object) && object != current ? object : 0);
  }
  return objects;
}

void LuajitJit::find_trace_form() {
  if (layout_.T_nsnap == no_field) (void)find_traces(memory_, G_, layout_);
}

std::optional<JitTrace> LuajitJit::trace(Address object) {
  find_trace_form();
  return read_trace(object);
}

std::vector<JitTrace> LuajitJit::traces() {
  std::vector<JitTrace> traces;
  const std::vector<Address> objects = trace_objects();
  find_trace_form();
  for (std::size_t number = 1; number < objects.size(); ++number) {
    if (objects[number] == 0) continue;
    std::optional<JitTrace> trace = read_trace(objects[number]);
    if (trace && trace->number == number) traces.push_back(std::move(*trace));
  }
  return traces;
}

std::optional<JitTrace> LuajitJit::read_trace(Address object) const {
  std::array<std::byte, 128> bytes;
  const auto fields = std::span(bytes).first(layout_.T_size);
  if (!memory_.read(object, fields) || load<std::uint8_t>(fields, layout_.T_gct) != luajit::gct_trace)
    return std::nullopt;
  JitTrace trace;
  trace.object = object;
  trace.number = load<std::uint16_t>(fields, layout_.T_traceno);
  trace.link = load<std::uint16_t>(fields, layout_.T_link);
  trace.root = load<std::uint16_t>(fields, layout_.T_root);
  trace.prototype = load_ref(layout_, fields, layout_.T_startpt);
  trace.start = load_ref(layout_, fields, layout_.T_startpc);
  trace.bytes = load<std::uint32_t>(fields, layout_.T_szmcode);
  // lj_jit.h, GCtrace: in releases with snapshots of 8 bytes, topslot and linktype follow the header.
  const bool is_beta3 = layout_.snapshots.size == 8;
  trace.link_type = load<std::uint8_t>(fields, is_beta3 ? layout_.T_gct + 2u : layout_.T_nextside + 4u);
  Trace known;
  known.root = trace.root, known.ir = load<Address>(fields, layout_.T_ir);
  const TraceStart from = start_of(memory_, known);
  trace.parent = from.parent, trace.exit = from.exit;
  if (layout_.T_nsnap != no_field)
    read_exits(trace, load<std::uint16_t>(fields, layout_.T_nsnap), load<Address>(fields, layout_.T_snap));
  return trace;
}

// lj_jit.h, SnapShot: count is its last field.
void LuajitJit::read_exits(JitTrace& trace, std::uint32_t count, Address snapshots) const {
  const SnapshotForm& form = layout_.snapshots;
  if (count > most_snapshots || !plausible_pointer(snapshots, 4)) return;
  std::vector<std::byte> bytes(std::size_t{count} * form.size);
  if (!memory_.read(snapshots, bytes)) return;
  for (std::uint32_t i = 0; i < count; ++i)
    trace.exits.push_back(load<std::uint8_t>(bytes, std::size_t{i} * form.size + form.nent + 1u));
}

// ---- Functions

// lj_trace.c, trace_stop: a compiled instruction has the trace's number as D.
std::uint32_t LuajitJit::original(std::uint32_t instruction) const {
  if (!fields_ || fields_->G_trace == no_field) return 0;
  const std::uint32_t number = instruction >> 16;
  const Address at = G_ + fields_->G_trace, array = memory_.get<Address>(at).value_or(0);
  if (number >= memory_.get<std::uint32_t>(at + jit_fields::sizetrace_after_trace).value_or(0)) return 0;
  const Address object = read_ref(memory_, layout_, array + std::uint64_t{layout_.ref_size} * number).value_or(0);
  if (!plausible_pointer(object) || memory_.get<std::uint8_t>(object + layout_.T_gct) != luajit::gct_trace) return 0;
  return memory_.get<std::uint32_t>(object + layout_.T_startins).value_or(0);
}

std::optional<JitFunction> LuajitJit::function(Address prototype) const {
  const std::optional<Prototype> read = lua_.prototype(memory_, prototype);
  const std::optional<FunctionPlace> place = lua_.place(memory_, prototype);
  const auto flags = memory_.get<std::uint8_t>(prototype + layout_.pt_flags);
  if (!read || !place || !flags) return std::nullopt;
  constexpr std::uint8_t nojit = 0x08;  // lj_obj.h, PROTO_NOJIT
  JitFunction function = {prototype, read->code_address, *place, read->identity(), (*flags & nojit) != 0, read->lines,
                          {}};
  function.starts = find_starts(layout_, *read, [this](std::uint32_t instruction) { return original(instruction); });
  // lj_trace.c, trace_start: where the compiler is off, hot code is patched as if it were blacklisted.
  if (function.is_off) {
    for (JitStart& start : function.starts) {
      if (start.state == JitStart::State::blacklisted) start.state = JitStart::State::open;
    }
  }
  return function;
}

// lj_trace.c, blacklist_pc.
bool LuajitJit::is_blacklisted(Address start) const {
  constexpr std::uint8_t nojit = 0x08;  // lj_obj.h, PROTO_NOJIT
  const auto instruction = memory_.get<std::uint32_t>(start);
  if (!instruction) return false;
  const std::string name = opcode_name(layout_, *instruction & 0xff);
  if (name != "IFORL" && name != "IITERL" && name != "ILOOP" && name != "IFUNCF" && name != "ITERC") return false;
  const Address prototype = prototype_of(start);
  return prototype != 0 && (memory_.get<std::uint8_t>(prototype + layout_.pt_flags).value_or(nojit) & nojit) == 0;
}

Address LuajitJit::prototype_of(Address instruction) const { return proto_of(memory_, layout_, instruction); }

bool LuajitJit::find_prototypes(std::uint64_t most, std::vector<Address>& found) const {
  const PageCache memory(memory_);
  CycleDetector circle;
  for (Address object = lua_.first_object(memory_, G_); object != 0;) {
    ObjectHead head;
    if (most-- == 0 || circle.closes(object) || !lua_.read_head(memory, object, head)) return false;
    if (head.type == luajit::gct_proto) found.push_back(object);
    object = head.next;
  }
  return true;
}

// ---- Strings

JitStrings LuajitJit::strings(std::uint64_t most) const {
  constexpr std::uint64_t most_chains = 1 << 24;
  constexpr std::size_t shown = 5;
  JitStrings strings;
  const std::optional<LuajitHeapFields> heap = find_heap_fields(memory_, layout_, G_);
  if (!heap) return strings;
  const PageCache memory(memory_);
  const Address at = G_ + heap->G_strtab;
  const Address table = memory_.get<Address>(at).value_or(0);
  const auto mask = memory_.get<std::uint32_t>(at + sizeof(Address)),
             count = memory_.get<std::uint32_t>(at + sizeof(Address) + 4);
  if (!plausible_pointer(table) || !mask || !count || *mask >= most_chains) return strings;
  strings.strings = *count, strings.chains = std::uint64_t{*mask} + 1;
  const std::uint64_t step = 1 + std::max<std::uint64_t>(strings.strings, strings.chains) /
                                     std::max(most, std::uint64_t{1});
  std::uint64_t left = 2 * most, index = 0;
  bool complete = true;
  std::vector<std::uint32_t> longest;
  complete &= visit_elements(memory_, table, layout_.ref_size, strings.chains, [&](std::span<const std::byte> chain) {
    if (index++ % step != 0) return true;
    ++strings.chains_read;
    const std::optional<std::uint32_t> length = chain_length(memory, load_ref(layout_, chain, 0), left);
    complete &= length.has_value();
    if (length.value_or(0) > 1) longest.push_back(*length);
    return left != 0;
  });
  std::ranges::sort(longest, std::greater());
  longest.resize(std::min(longest.size(), shown));
  strings.longest = std::move(longest);
  strings.complete = complete && left != 0;
  return strings;
}

// lj_str.c: the low bit of a chain's anchor is a flag. nullopt: it has changed meanwhile, or is too long.
std::optional<std::uint32_t> LuajitJit::chain_length(const Memory& memory, Address anchor, std::uint64_t& left) const {
  std::uint32_t length = 0;
  CycleDetector circle;
  for (Address string = anchor & ~Address{1}; string != 0; ++length) {
    std::array<std::byte, 16> head;
    const auto fields = std::span(head).first(layout_.L_gct + 1u);
    if (left == 0 || circle.closes(string) || !plausible_pointer(string, 4) || !memory.read(string, fields) ||
        load<std::uint8_t>(fields, layout_.L_gct) != luajit::gct_string)
      return std::nullopt;
    --left;
    string = load_ref(layout_, fields, 0);
  }
  return length;
}

std::string LuajitJit::reason(unsigned number, const JitDetail& detail, const std::string& function) const {
  return trace_error(layout_, number, detail, function);
}

std::string LuajitJit::advice(unsigned number, const JitDetail& detail) const {
  return trace_error_advice(layout_, number, detail);
}

}  // namespace luaspy
