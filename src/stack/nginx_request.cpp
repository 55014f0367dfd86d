#include "stack/nginx_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "events/span.h"

namespace luaspy {
namespace {

// With 64-bit references: the global_State lies behind the main thread (lj_dispatch.h, GG_State), which ends with
// these two if LuaJIT is OpenResty's.
constexpr Address state_size = 112, exdata = 96;
constexpr std::uint32_t signature = 0x50545448;  // ngx_http_config.h, NGX_HTTP_MODULE: "HTTP"
constexpr std::uint32_t request_size = 2048;     // bytes that are searched
// ngx_str_t is a length and a pointer; these are how far behind request_line.
constexpr Address str_size = 16, uri = str_size, method_name = 5 * str_size, http_protocol = 6 * str_size;
// How far before it: start_sec and start_msec, of the wall clock.
constexpr Address start = 4 * sizeof(std::uint64_t);

// ngx_list.h, ngx_list_t: its last part, and the first one.
struct Part {
  Address elements = 0;
  std::uint64_t count = 0;
  Address next = 0;
};
struct List {
  Address last = 0;
  Part part;
  std::uint64_t element_size = 0, most = 0;  // of a part
  Address pool = 0;
};
// ngx_http_request.h: an array of what modules keep for the request, behind its signature and its connection.
constexpr Address contexts = 16;
constexpr int most_modules = 128;
// ngx_http_lua_common.h, ngx_http_lua_ctx_t: the request; a list of the contexts of coroutines and light threads; and,
// in it, that of the thread which the request began with. Each has its lua_State.
constexpr std::size_t words_of_request = 4, words_to_list = 8, context_words = 64;
constexpr std::uint64_t coroutines_of_a_part = 4;  // ngx_http_lua_util.c, ngx_http_lua_create_co_ctx

// ngx_hash.h, ngx_table_elt_t: a hash, key, value, the key in small letters; since 1.23 the next one of its name.
constexpr std::array<std::uint64_t, 2> header_sizes = {48, 56};
constexpr Address header_key = 8, header_value = header_key + str_size;
constexpr std::uint64_t headers_of_a_part = 20;  // ngx_http_request.c, ngx_http_process_request_line

// ngx_http_lua_common.h, NGX_HTTP_LUA_CONTEXT_*, a bit each, as ngx.get_phase names them (resty.core.phase).
constexpr const char* get_phase = "ngx_http_lua_ffi_get_phase";
constexpr std::array<std::string_view, 16> phases = {"set",
                                                     "rewrite",
                                                     "access",
                                                     "content",
                                                     "log",
                                                     "header_filter",
                                                     "body_filter",
                                                     "timer",
                                                     "init_worker",
                                                     "balancer",
                                                     "ssl_cert",
                                                     "ssl_session_store",
                                                     "ssl_session_fetch",
                                                     "exit_worker",
                                                     "ssl_client_hello",
                                                     "server_rewrite"};

constexpr std::string_view traceparent_key = "traceparent";

bool is_method(std::string_view text) {
  return !text.empty() && text.size() <= 20 &&
         std::ranges::all_of(text, [](char c) { return (c >= 'A' && c <= 'Z') || c == '_' || c == '-'; });
}

// "00-TRACE-SPAN-FLAGS": 32, 16 and 2 digits. Returns "TRACE-SPAN"; "" if it is none.
std::string_view span_in(std::string_view traceparent) {
  constexpr std::string_view version = "00-", flags = "-01";
  if (traceparent.size() <= version.size() + flags.size() || !traceparent.starts_with(version)) return {};
  const std::string_view text = traceparent.substr(version.size(), traceparent.size() - version.size() - flags.size());
  return traceparent[version.size() + text.size()] == '-' && span_of_text(text) ? text : std::string_view();
}

// Whether the list of contexts of coroutines has one of L.
bool lists_coroutine(const Memory& memory, Address place, Address L) {
  constexpr std::uint64_t most_size = 512;
  constexpr int most_parts = 64;
  const auto list = memory.get<List>(place);
  if (!list || list->most != coroutines_of_a_part || list->element_size > most_size ||
      list->element_size % sizeof(Address) != 0)
    return false;
  std::optional<Part> part = list->part;
  for (int i = 0; i < most_parts && part && part->count <= coroutines_of_a_part; ++i) {
    std::array<Address, coroutines_of_a_part * most_size / sizeof(Address)> words{};
    const std::span<Address> all = std::span(words).first(part->count * list->element_size / sizeof(Address));
    if (!plausible_pointer(part->elements) || !memory.read(part->elements, std::as_writable_bytes(all))) return false;
    if (std::ranges::find(all, L) != all.end()) return true;
    if (part->next == 0) return false;
    part = memory.get<Part>(part->next);
  }
  return false;
}

}  // namespace

bool NginxRequests::Text::read(const Memory& memory, Address place) {
  constexpr std::uint64_t most = 1 << 20;  // more is no length
  const auto words = memory.get<std::array<std::uint64_t, 2>>(place);
  length_ = words ? (*words)[0] : 0;
  size_ = 0;
  if (length_ == 0 || length_ > most || !plausible_pointer((*words)[1], 1)) return words.has_value();
  const std::size_t size = std::min<std::uint64_t>(length_, bytes_.size());
  if (memory.read((*words)[1], std::as_writable_bytes(std::span(bytes_).first(size)))) size_ = size;
  return true;
}

// 0: none.
Address NginxRequests::request_of(const Memory& memory, Address L) {
  const Address request = memory.get<Address>(L + exdata).value_or(0);
  return plausible_pointer(request) && memory.get<std::uint32_t>(request) == signature ? request : 0;
}

// Whether the context of lua-nginx-module for this request has the coroutine.
bool NginxRequests::knows(const Memory& memory, Address request, Address L) {
  const Address first = memory.get<Address>(request + contexts).value_or(0);
  for (int i = 0; i < most_modules && plausible_pointer(first); ++i) {
    const std::optional<Address> context = memory.get<Address>(first + static_cast<Address>(i) * sizeof(Address));
    if (!context) return false;
    const auto words = plausible_pointer(*context) ? memory.get<std::array<Address, context_words>>(*context)
                                                   : std::nullopt;
    if (!words) continue;
    const std::span<const Address> all(*words), head = all.first(words_of_request);
    if (std::ranges::find(head, request) == head.end()) continue;
    if (std::ranges::find(all, L) != all.end()) return true;
    for (const Address word : all.first(words_to_list))
      if (plausible_pointer(word) && lists_coroutine(memory, word, L)) return true;
  }
  return false;
}

bool NginxRequests::is_request_line(const Memory& memory, Address place) {
  Text line, method, path, protocol;
  line.read(memory, place);
  const std::string_view first_word = line.bytes().substr(0, line.bytes().find(' '));
  if (!is_method(first_word)) return false;
  method.read(memory, place + method_name);
  path.read(memory, place + uri);
  protocol.read(memory, place + http_protocol);
  return method.bytes() == first_word && path.bytes().starts_with('/') && protocol.bytes().starts_with("HTTP/");
}

// headers_in is the first list of a request. That of a subrequest is a copy, which points to a part of its parent's.
bool NginxRequests::is_list_of_headers(const Memory& memory, Address place) {
  const auto list = memory.get<List>(place);
  return list && list->most == headers_of_a_part && list->part.count <= list->most &&
         std::ranges::find(header_sizes, list->element_size) != header_sizes.end() &&
         plausible_pointer(list->part.elements) && plausible_pointer(list->last) && plausible_pointer(list->pool) &&
         (list->part.next == 0 || plausible_pointer(list->part.next));
}

NginxRequests::Places NginxRequests::find_places(const Memory& memory, Address request) {
  Places places;
  for (std::uint32_t offset = 0; offset < request_size && !places.request_line; offset += sizeof(Address)) {
    if (!places.headers && is_list_of_headers(memory, request + offset)) places.headers = offset;
    if (is_request_line(memory, request + offset)) places.request_line = offset;
  }
  if (!places.request_line) return {};
  // Of a request that is no subrequest of another, it is the request itself. Versions differ in `schema`.
  for (std::uint32_t i = 0; i < 4 && !places.main; ++i) {
    const auto offset = static_cast<std::uint32_t>(*places.request_line + http_protocol + str_size +
                                                   i * sizeof(Address));
    if (memory.get<Address>(request + offset) == request) places.main = offset;
  }
  return places;
}

// ngx_http_lua_ffi_get_phase reads the array of contexts, that of its module, and of that the phase.
std::optional<NginxRequests::PhasePlace> NginxRequests::find_phase(Address request) const {
  constexpr Address largest = 4096;  // an ngx_http_lua_ctx_t
  const std::vector<Load> loads = wanted_.loads_of ? wanted_.loads_of(get_phase, request) : std::vector<Load>();
  if (loads.size() < 3) return std::nullopt;
  const Load &all = loads[loads.size() - 3], &context = loads[loads.size() - 2], &phase = loads.back();
  if (all.at != request + contexts || context.at < all.value || phase.at <= context.value ||
      !plausible_pointer(context.value))
    return std::nullopt;
  const Address own = context.at - all.value, place = phase.at - context.value;
  if (own >= most_modules * sizeof(Address) || own % sizeof(Address) != 0 || place >= largest || phase.bytes > 4)
    return std::nullopt;
  return PhasePlace{static_cast<std::uint32_t>(own), static_cast<std::uint32_t>(place), phase.bytes};
}

std::optional<std::uint32_t> NginxRequests::phase_of(const Memory& memory, Address request) const {
  if (!places_.phase) return std::nullopt;
  const Address all = memory.get<Address>(request + contexts).value_or(0);
  const Address context = plausible_pointer(all) ? memory.get<Address>(all + places_.phase->context).value_or(0) : 0;
  std::uint32_t phase = 0;
  if (!plausible_pointer(context) ||
      !memory.read(context + places_.phase->phase,
                   std::as_writable_bytes(std::span(&phase, 1)).first(places_.phase->bytes)))
    return std::nullopt;
  return phase;
}

std::string NginxRequests::phase_text(const Memory& memory, Address request) const {
  const std::optional<std::uint32_t> phase = phase_of(memory, request);
  if (!phase || *phase == 0) return std::string(unknown_value);
  const auto bit = static_cast<std::size_t>(std::countr_zero(*phase));
  const bool is_known = std::has_single_bit(*phase) && bit < phases.size();
  return is_known ? std::string(phases[bit]) : fmt::format("phase {:#x}", *phase);
}

// A subrequest is a part of the request that the client has sent.
RequestIdentity NginxRequests::identity_of(const Memory& memory, Address request) const {
  const Address main = places_.main ? memory.get<Address>(request + *places_.main).value_or(0) : request;
  if (!plausible_pointer(main) || memory.get<std::uint32_t>(main) != signature) return {};
  constexpr std::uint64_t ms_per_s = 1000, year_3000 = 32'503'680'000;
  const auto words = memory.get<std::array<std::uint64_t, 2>>(main + *places_.request_line - start);
  if (!words) return {};
  const auto [sec, ms] = *words;
  const std::int64_t begun_ms = sec < year_3000 && ms < ms_per_s ? static_cast<std::int64_t>(sec * ms_per_s + ms) : 0;
  return {request_id(main, static_cast<std::uint64_t>(begun_ms)), begun_ms, main != request};
}

void NginxRequests::read_texts(const Memory& memory, Address request, Texts& texts) const {
  const Address line = request + *places_.request_line;
  const bool is_readable = texts.method.read(memory, line + method_name) && texts.path.read(memory, line + uri);
  const auto length = memory.get<std::uint64_t>(line);
  texts.is_made_up = is_readable && length == 0U && texts.path.length() == 0;
  texts.identity = identity_of(memory, request);
  texts.has_headers = wanted_.traces && places_.headers && read_traceparent(memory, request, texts.traceparent);
}

bool NginxRequests::read_traceparent(const Memory& memory, Address request, Text& text) const {
  constexpr int most_parts = 4;
  const auto list = memory.get<List>(request + *places_.headers);
  if (!list || std::ranges::find(header_sizes, list->element_size) == header_sizes.end()) return false;
  std::optional<Part> part = list->part;
  for (int i = 0; i < most_parts && part; ++i) {
    std::array<std::byte, headers_of_a_part * header_sizes.back()> elements;
    const std::uint64_t count = std::min(part->count, headers_of_a_part);
    const std::span<std::byte> all = std::span(elements).first(count * list->element_size);
    if (!memory.read(part->elements, all)) return false;
    for (std::uint64_t n = 0; n < count; ++n) {
      std::uint64_t length = 0;
      std::memcpy(&length, all.data() + n * list->element_size + header_key, sizeof length);
      if (length != traceparent_key.size()) continue;
      const Address header = part->elements + n * list->element_size;
      Text key;
      key.read(memory, header + header_key);
      const auto is_same = [](char a, char b) { return (a | 0x20) == b; };  // they are small letters, or it is none
      if (!std::ranges::equal(key.bytes(), traceparent_key, is_same)) continue;
      return text.read(memory, header + header_value) && !text.bytes().empty();
    }
    if (part->next == 0) return true;
    part = memory.get<Part>(part->next);
  }
  return false;
}

HostRequest NginxRequests::unknown_request() const {
  return {std::string(unknown_value),
          {},
          std::string(wanted_.traces ? unknown_value : ""),
          std::string(wanted_.phases ? unknown_value : "")};
}

HostRequest NginxRequests::request_with(const Texts& texts) const {
  if (texts.is_made_up) return {.text = std::string(no_request)};
  if (!is_method(texts.method.bytes()) || !texts.path.bytes().starts_with('/')) return unknown_request();
  std::string text(texts.method.bytes());
  text.append(" ").append(texts.path.bytes());
  HostRequest result = {printable(text, longest_text), texts.identity};
  if (wanted_.traces) result.trace = texts.has_headers ? span_in(texts.traceparent.bytes()) : unknown_value;
  return result;
}

void NginxRequests::touch(const Memory& memory, const Located& located) const {
  for (const ActiveState& state : located.active) {
    const auto known = has_exdata_.find(state.G);
    if (known == has_exdata_.end() || !known->second) continue;
    const Address request = request_of(memory, state.L);
    if (request == 0) continue;
    Texts texts;
    if (places_.request_line) read_texts(memory, request, texts);
    if (wanted_.phases) (void)phase_of(memory, request);
    return;
  }
}

bool NginxRequests::has_exdata(const Memory& memory, const Lua& lua, Address G) {
  const Address main = lua.main_thread(memory, G);
  return lua.kind() == LuaKind::luajit && main != 0 && G - main == state_size;
}

bool NginxRequests::may_have_requests(const ActiveState& state, const Memory& live) {
  if (const auto known = has_exdata_.find(state.G); known != has_exdata_.end()) return known->second;
  const bool has = has_exdata(live, *state.lua, state.G);
  new_has_exdata_[state.G] = has;
  has_learned_ = true;
  return has;
}

void NginxRequests::look_for_places(const Memory& live, Address request) {
  constexpr int most_tries = 1000, most_phase_tries = 16;  // each reads what a request has; or symbols
  if (lacks_places() && tries_ < most_tries) {
    ++tries_;
    const std::optional<PhasePlace> phase = new_places_.phase;
    new_places_ = find_places(live, request);
    new_places_.phase = phase;
  }
  if (wanted_.phases && !places_.phase && phase_tries_ < most_phase_tries) {
    ++phase_tries_;
    new_places_.phase = find_phase(request);
  }
  const bool is_more = (new_places_.request_line && new_places_ != places_) || (new_places_.phase && !places_.phase);
  has_learned_ |= is_more;
}

HostRequest NginxRequests::value(const Joined& joined, const Memory& stopped, const Memory& live) {
  for (const RunningState& running : joined.from.lua.on_thread()) {
    const ActiveState& state = running.activation;
    if (!may_have_requests(state, live)) continue;
    const bool is_new = !has_exdata_.contains(state.G);  // then the stop has not read it
    const Address request = request_of(is_new ? live : stopped, state.L);
    if (request == 0) continue;
    look_for_places(live, request);
    if (is_new || !places_.request_line) return unknown_request();
    Texts texts;
    read_texts(stopped, request, texts);
    HostRequest result = request_with(texts);
    if (wanted_.phases) result.phase = phase_text(stopped, request);
    return result;
  }
  return {};
}

HostRequest NginxRequests::of_suspended(const Memory& memory, const Lua& lua, Address G, Address L) const {
  if (!has_exdata(memory, lua, G)) return {};
  const Address request = request_of(memory, L);
  if (request == 0 || !knows(memory, request, L)) return {};
  if (!places_.request_line) return unknown_request();
  Texts texts;
  read_texts(memory, request, texts);
  return request_with(texts);
}

void NginxRequests::learn() {
  constexpr std::size_t most_states = 1 << 10;  // a program may make them without end
  if (has_exdata_.size() > most_states) has_exdata_.clear();
  has_exdata_.merge(new_has_exdata_);
  if (!places_.request_line) places_.request_line = new_places_.request_line;
  if (!places_.headers) places_.headers = new_places_.headers;
  if (!places_.main) places_.main = new_places_.main;
  if (!places_.phase) places_.phase = new_places_.phase;
  new_has_exdata_.clear();
  has_learned_ = false;
}

}  // namespace luaspy
