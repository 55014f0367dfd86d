#include "input/sysprof_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>

namespace luaspy {
namespace {

constexpr std::size_t most_calls = 1 << 16, most_native = 1 << 8;  // LuaJIT's stacks have fewer; sysprof writes 128
constexpr std::uint8_t symbol_event = 10, last_event = 0x80, last_frame = 0x80;

bool read_calls(ByteReader& in, const LuajitSymbols& symbols, SysprofSample& sample) {
  using Kind = SysprofSample::Call::Kind;
  for (;;) {
    const std::optional<std::uint8_t> header = in.byte();
    if (!header) return false;
    if ((*header & last_frame) != 0) break;
    const auto kind = static_cast<Kind>(*header);
    const std::optional<std::uint64_t> id = in.number();
    if (!id || *header == 0 || *header > static_cast<std::uint8_t>(Kind::fast) || sample.calls.size() == most_calls)
      return false;
    SysprofSample::Call& call = sample.calls.emplace_back();
    call.kind = kind;
    if (kind == Kind::fast) call.ffid = *id;
    if (kind == Kind::c) call.place = symbols.c(*id);
    if (kind != Kind::lua) continue;
    const std::optional<std::uint64_t> line = in.number();
    if (!line) return false;
    call.place = symbols.lua(*id, static_cast<int>(std::min<std::uint64_t>(*line, std::numeric_limits<int>::max())));
  }
  std::ranges::reverse(sample.calls);
  return true;
}

bool read_native(ByteReader& in, const LuajitSymbols& symbols, SysprofSample& sample) {
  for (;;) {
    const std::optional<std::uint64_t> address = in.number();
    if (!address || sample.native.size() == most_native) return false;
    if (*address == 0) break;
    sample.native.push_back(symbols.c(*address));
  }
  std::ranges::reverse(sample.native);
  return true;
}

bool read_trace(ByteReader& in, const LuajitSymbols& symbols, SysprofSample& sample) {
  const std::optional<std::uint64_t> number = in.number(), prototype = in.number(), line = in.number();
  if (!number || !prototype || !line) return false;
  sample.trace = symbols.trace(*number);
  return true;
}

bool read_sample(std::uint8_t header, ByteReader& in, const LuajitSymbols& symbols, SysprofSample& sample) {
  using State = SysprofSample::State;
  sample.state = static_cast<State>(header);
  sample.calls.clear(), sample.native.clear(), sample.trace = {};
  if (sample.state == State::trace) return read_trace(in, symbols, sample);
  const bool is_guest = sample.state == State::lfunc || sample.state == State::ffunc || sample.state == State::cfunc;
  return (!is_guest || read_calls(in, symbols, sample)) && read_native(in, symbols, sample);
}

bool calls_lua(std::string_view name) {
  static constexpr std::array callers = {"lua_call", "lua_pcall", "lua_cpcall", "lua_resume"};
  return std::ranges::find(callers, name) != callers.end();
}

}  // namespace

std::string each_sysprof_sample(ByteReader& in, LuajitSymbols& symbols,
                                const std::function<bool(const SysprofSample&)>& see) {
  SysprofSample sample;
  for (;;) {
    const std::int64_t at = in.offset();
    const std::optional<std::uint8_t> header = in.byte();
    if (!header) return fmt::format("byte {}: the stream ends without its end mark", at);
    if ((*header & last_event) != 0) return {};
    if (*header >= symbol_event) {
      const auto symbol = static_cast<LuajitSymbols::Symbol>(*header - symbol_event);
      if (*header > symbol_event + 2 || !symbols.read(symbol, in))
        return fmt::format("byte {}: this is no whole symbol", at);
      continue;
    }
    if (!read_sample(*header, in, symbols, sample)) return fmt::format("byte {}: this is no whole sample", at);
    if (!see(sample)) return fmt::format("byte {}: it has more than luaspy reads", at);
  }
}

// The calls of Lua that no C function has on the C stack are those of the last frame there that calls Lua. Without
// such a frame, the innermost part of the C stack is missing: what there is of it is outside of them all.
std::vector<SysprofPart> joined_stack(const SysprofSample& sample, const LuajitSymbols& symbols) {
  std::vector<LuajitSymbols::NativeFunction> native;
  for (const LuajitPlace& place : sample.native) native.push_back(symbols.native(place.address));
  std::vector<SysprofPart> joined;
  std::vector<std::size_t> waiting;  // calls whose place is not known yet
  std::size_t next = 0;              // of native
  const auto put_until = [&](std::size_t end) {
    std::size_t after = end;
    for (std::size_t i = next; i < end; ++i) {
      if (calls_lua(native[i].name)) after = i + 1;
    }
    for (; next < after; ++next) joined.push_back({false, next});
    for (const std::size_t call : waiting) joined.push_back({true, call});
    waiting.clear();
    for (; next < end; ++next) joined.push_back({false, next});
  };
  for (std::size_t i = 0; i < sample.calls.size(); ++i) {
    const SysprofSample::Call& call = sample.calls[i];
    const std::uint64_t start = call.kind == SysprofSample::Call::Kind::c ? symbols.native(call.place.address).start
                                                                          : 0;
    std::size_t place = next;
    while (place < native.size() && native[place].start != start) ++place;
    if (start == 0 || place == native.size()) {
      waiting.push_back(i);
      continue;
    }
    put_until(place);
    joined.push_back({true, i});
    ++next;
  }
  put_until(native.size());
  return joined;
}

VmState vm_state_of(SysprofSample::State state) {
  static constexpr std::array states = {
      VmState::interpreting, VmState::interpreting, VmState::interpreting, VmState::c,          VmState::collecting,
      VmState::exiting,      VmState::recording,    VmState::optimising,   VmState::assembling, VmState::machine_code};
  return states[static_cast<std::size_t>(state)];
}

}  // namespace luaspy
