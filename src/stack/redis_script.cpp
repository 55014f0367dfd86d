#include "stack/redis_script.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string_view>
#include <utility>

namespace luaspy {
namespace {

constexpr std::array<FieldPaths::KeyId, 1> run_context = {0};

// Where a scriptRunCtx has what is read here. In Redis, and in Valkey before 9.0: three pointers, of which the first is
// the name, and two ints. In Valkey 9.0: the engine and three pointers, of which the first is the name, and two ints.
struct RunContextLayout {
  Address name, start_time;  // of a clock of the server's
};
constexpr RunContextLayout redis_layout{0, 32}, valkey_layout{8, 40};
constexpr Address call_run_context = 8;  // in a luaFuncCallCtx: behind a pointer

// What a scriptRunCtx says.
struct Context {
  std::array<char, 128> room;
  std::string_view name;  // read_text()
  std::uint64_t begun = 0;
};
void read_context(const Memory& memory, Address at, RunContextLayout layout, Context& context) {
  context.begun = memory.get<std::uint64_t>(at + layout.start_time).value_or(0);
  const Address name = memory.get<Address>(at + layout.name).value_or(0);
  if (plausible_pointer(name, 1)) context.name = read_text(memory, name, context.room);
}

// Of what "__RUN_CTX__" points to. The second word of Redis's is a client, which begins with its number and not with an
// address, as the scriptRunCtx that Valkey 9.0 has there does.
void read_what_runs(const Memory& memory, Address at, Context& context) {
  const Address run = memory.get<Address>(at + call_run_context).value_or(0);
  const Address engine = plausible_pointer(run) ? memory.get<Address>(run).value_or(0) : 0;
  if (plausible_pointer(engine)) read_context(memory, run, valkey_layout, context);
  else read_context(memory, at, redis_layout, context);
}

// functions.c, functionsVerifyName; a SHA-1 has no others either.
bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

HostRequest request_with(const Memory& memory, Address at) {
  Context context;
  read_what_runs(memory, at, context);
  if (context.name.empty() || !std::ranges::all_of(context.name, is_name_char))
    return {.text = std::string(unknown_value)};
  // It lies on the stack of the server's one thread, at the same place each time.
  return {.text = std::string(context.name), .identity = {.id = request_id(at, context.begun)}};
}

// By the function that the server has called.
HostRequest outermost_script(const Joined& joined, Names& names) {
  for (const StackCall& at : joined.calls) {
    if (at.state == nullptr || !at.walk->calls[at.call].is_lua()) continue;
    const LuaCall& call = at.walk->calls[at.call];
    const Prototype* const prototype = names.prototype(*at.state->lua, call);
    if (prototype == nullptr || !is_host_script(prototype->source)) return {};
    const std::string_view sha1 = names.host_script(call);
    return {.text = std::string(sha1.empty() ? unknown_value : sha1)};
  }
  return {};
}

}  // namespace

std::optional<Value> RedisScripts::context_of(const Memory& memory, Address G) const {
  const FieldPaths::State* const known = paths_.find(G);
  if (known == nullptr) return std::nullopt;
  const std::optional<Value> registry = known->lua->read_value(memory, known->lua->registry_slot(G));
  return registry ? paths_.follow(memory, *known, *registry, run_context) : std::nullopt;
}

void RedisScripts::touch(const Memory& memory, const Located& located) const {
  for (const ActiveState& state : located.active) {
    const std::optional<Value> context = context_of(memory, state.G);
    if (!context || context->type != Value::Type::light_userdata) continue;
    Context read;
    read_what_runs(memory, context->word, read);
    return;
  }
}

// Whether the registry has the key, and where. Most Luas are no Redis: they are asked at ever longer intervals.
bool RedisScripts::look_up(const ActiveState& state, const Memory& live) {
  constexpr std::size_t most_states = 1 << 10;  // a program may make them without end
  const bool is_redis = paths_.find(state.G) != nullptr;
  if (looks_.size() > most_states) looks_.clear();
  if (!is_redis && (state.lua->kind() != LuaKind::puc || !std::has_single_bit(++looks_[state.G]))) return false;
  const std::optional<Value> registry = state.lua->read_value(live, state.lua->registry_slot(state.G));
  FieldPaths::Lesson& lesson = lessons_[state.G];
  const FieldPaths::Learned learned = registry ? paths_.learn(live, state, *registry, run_context, lesson)
                                               : FieldPaths::Learned{.nowhere = true};
  const bool found = learned.something && !learned.nowhere;
  if (!found) lessons_.erase(state.G);
  has_learned_ |= found;
  return found;
}

HostRequest RedisScripts::value(const Joined& joined, Names& names, const Memory& stopped, const Memory& live) {
  for (const RunningState& running : joined.from.lua.on_thread()) {
    const ActiveState& state = running.activation;
    const std::optional<Value> context = context_of(stopped, state.G);
    if (context && context->type == Value::Type::light_userdata) return request_with(stopped, context->word);
    // What was not found, or is nil: the key may have moved since it was learned.
    if (look_up(state, live) || (!context && paths_.find(state.G) != nullptr))
      return {.text = std::string(unknown_value)};
  }
  return outermost_script(joined, names);
}

void RedisScripts::learn() {
  for (auto& [G, lesson] : lessons_) paths_.keep(G, std::move(lesson));
  lessons_.clear();
  has_learned_ = false;
}

}  // namespace luaspy
