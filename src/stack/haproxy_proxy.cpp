#include "stack/haproxy_proxy.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/page_cache.h"

namespace luaspy {
namespace {

constexpr Address extra_space = sizeof(Address);  // 5.3 and later: before the lua_State
// Bytes of each struct that are searched.
constexpr std::size_t hlua_size = 128, task_size = 256, stream_size = 1536, proxy_size = 12 << 10, applet_size = 256,
                      link_size = 128;
constexpr std::uint8_t listener_type = 1, proxy_type = 2;  // obj_type-t.h: the first byte of each such object

// Words of a struct; fewer, if it is at the end of what can be read.
std::vector<Address> words_at(const Memory& memory, Address at, std::size_t size) {
  std::vector<Address> words(size / sizeof(Address));
  while (!words.empty() && !memory.read(at, std::as_writable_bytes(std::span(words)))) words.resize(words.size() / 2);
  return words;
}

bool has_type(const Memory& memory, Address at, std::uint8_t type) {
  return plausible_pointer(at) && memory.get<std::uint8_t>(at) == type;
}

std::uint32_t offset_of(std::size_t word) { return static_cast<std::uint32_t>(word * sizeof(Address)); }

bool is_proxy_name(std::string_view text) {  // cfgparse-listen.c: invalid_char
  const auto is_valid = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-' || c == ':';
  };
  return !text.empty() && std::ranges::all_of(text, is_valid);
}

}  // namespace

// 0: it is none of HAProxy's; nullopt: it cannot be read.
std::optional<Address> HaproxyProxies::hlua_of(const Memory& memory, Address L) {
  const std::optional<Address> hlua = memory.get<Address>(L - extra_space);
  if (!hlua) return std::nullopt;
  if (!plausible_pointer(*hlua)) return 0;
  const std::optional<Address> its = memory.get<Address>(*hlua);
  return its ? std::optional(*its == L ? *hlua : 0) : std::nullopt;
}

// The name of a proxy is the key of its node in a tree, too, right behind small numbers (ebpttree.h).
std::optional<std::uint32_t> HaproxyProxies::find_id(const Memory& memory, Address proxy) {
  const std::vector<Address> words = words_at(memory, proxy, proxy_size);
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!plausible_pointer(words[i], 1)) continue;
    for (std::size_t key = i + 1; key < words.size(); ++key) {
      if (words[key] != words[i] || words[key - 1] >> 32 != 0 || !plausible_pointer(words[key - 2] & ~Address{7}, 1))
        continue;
      Room room;
      if (is_proxy_name(read_text(memory, words[i], room))) return offset_of(i);
      break;
    }
  }
  return std::nullopt;
}

bool HaproxyProxies::is_session(const Memory& memory, Address at) {
  const auto words = plausible_pointer(at) ? memory.get<std::array<Address, 2>>(at) : std::nullopt;
  return words && has_type(memory, (*words)[0], proxy_type) && has_type(memory, (*words)[1], listener_type);
}

std::optional<HaproxyProxies::Task> HaproxyProxies::task_of(const Memory& memory, Address hlua,
                                                            const Places& places) const {
  if (!places.task || !places.process) return std::nullopt;
  const Address task = memory.get<Address>(hlua + *places.task).value_or(0);
  return plausible_pointer(task) ? memory.get<Task>(task + *places.process) : std::nullopt;
}

// 0: it is not known.
Address HaproxyProxies::stream_of(const Memory& memory, const Task& task, const Places& places) const {
  if (task.function == functions_->stream) return task.context;
  if (task.function != functions_->applet || !places.stream) return 0;
  Address at = task.context;
  for (const std::uint32_t offset : *places.stream) {
    if (!plausible_pointer(at, 1)) return 0;
    at = memory.get<Address>(at + offset).value_or(0);
  }
  return at;
}

std::string_view HaproxyProxies::name_of(const Memory& memory, Address stream, Room& room) const {
  if (!places_.session || !places_.id || !plausible_pointer(stream)) return {};
  const Address session = memory.get<Address>(stream + *places_.session).value_or(0);
  if (!is_session(memory, session)) return {};
  const Address name = memory.get<Address>(memory.get<Address>(session).value_or(0) + *places_.id).value_or(0);
  const std::string_view text = plausible_pointer(name, 1) ? read_text(memory, name, room) : std::string_view();
  return is_proxy_name(text) ? text : std::string_view();
}

// It has a task that has it.
bool HaproxyProxies::is_stream(const Memory& memory, Address at, std::uint32_t process) const {
  for (const Address word : words_at(memory, at, stream_size)) {
    if (!plausible_pointer(word)) continue;
    const auto task = memory.get<Task>(word + process);
    if (task && task->function == functions_->stream && task->context == at) return true;
  }
  return false;
}

void HaproxyProxies::find_task(const Memory& memory, Address hlua, Places& places) const {
  const std::vector<Address> all = words_at(memory, hlua, hlua_size);
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (!plausible_pointer(all[i])) continue;
    const std::vector<Address> words = words_at(memory, all[i], task_size);
    for (std::size_t at = 0; at < words.size(); ++at) {
      if (words[at] != functions_->stream && words[at] != functions_->applet && words[at] != functions_->task) continue;
      places.task = offset_of(i), places.process = offset_of(at);
      return;
    }
  }
}

void HaproxyProxies::find_session(const Memory& memory, Address stream, Places& places) const {
  const std::vector<Address> words = words_at(memory, stream, stream_size);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_session(memory, words[i])) continue;
    const std::optional<std::uint32_t> id = find_id(memory, memory.get<Address>(words[i]).value_or(0));
    if (id) places.session = offset_of(i), places.id = id;
    if (id) return;
  }
}

void HaproxyProxies::find_stream(const Memory& memory, Address applet, Places& places) const {
  std::set<Address> seen, tried;  // a stream may be pointed to from an outer struct, too
  const auto is_new = [&](Address at) { return plausible_pointer(at) && seen.insert(at).second; };
  const std::vector<Address> first = words_at(memory, applet, applet_size);
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!is_new(first[i])) continue;
    const std::vector<Address> second = words_at(memory, first[i], link_size);
    for (std::size_t j = 0; j < second.size(); ++j) {
      if (!is_new(second[j])) continue;
      const std::vector<Address> third = words_at(memory, second[j], link_size);
      for (std::size_t k = 0; k < third.size(); ++k) {
        if (!plausible_pointer(third[k]) || !tried.insert(third[k]).second ||
            !is_stream(memory, third[k], *places.process))
          continue;
        places.stream = {offset_of(i), offset_of(j), offset_of(k)};
        return;
      }
    }
  }
}

void HaproxyProxies::look_for_places(const Memory& live, Address hlua) {
  constexpr int most_tries = 16;  // each reads all that it has
  if (tries_++ >= most_tries) return;
  const PageCache memory(live);
  Places places = places_;
  if (!places.task) find_task(memory, hlua, places);
  const std::optional<Task> task = task_of(memory, hlua, places);
  if (task && task->function == functions_->applet && !places.stream) find_stream(memory, task->context, places);
  const Address stream = task ? stream_of(memory, *task, places) : 0;
  if (plausible_pointer(stream) && !places.session) find_session(memory, stream, places);
  new_places_ = places;
}

void HaproxyProxies::touch(const Memory& memory, const Located& located) const {
  if (!places_.task) return;
  for (const ActiveState& state : located.active) {
    const Address hlua = hlua_of(memory, state.L).value_or(0);
    if (hlua == 0) continue;
    Room room;
    if (const std::optional<Task> task = task_of(memory, hlua, places_))
      (void)name_of(memory, stream_of(memory, *task, places_), room);
    return;
  }
}

HostRequest HaproxyProxies::value(const Joined& joined, const Memory& stopped, const Memory& live) {
  if (!functions_)
    functions_ = {function_at_("process_stream"), function_at_("hlua_applet_wakeup"),
                  function_at_("hlua_process_task")};
  if (functions_->stream == 0 || functions_->applet == 0 || functions_->task == 0) return {};
  for (const RunningState& running : joined.from.lua.on_thread()) {
    const std::optional<Address> hlua = hlua_of(places_.task ? stopped : live, running.activation.L);
    if (hlua == Address{0}) continue;
    if (!hlua) return {.text = std::string(unknown_value)};
    const std::optional<Task> task = task_of(stopped, *hlua, places_);
    if (task && task->function == functions_->task) return {.text = std::string(no_request)};
    Room room;
    const std::string_view name = task ? name_of(stopped, stream_of(stopped, *task, places_), room)
                                       : std::string_view();
    if (!name.empty()) return {.text = std::string(name)};
    look_for_places(live, *hlua);
    return {.text = std::string(unknown_value)};
  }
  return {};
}

}  // namespace luaspy
