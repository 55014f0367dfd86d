#include "stack/nginx_request.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "stack/label_values.h"

namespace luaspy {
namespace {

constexpr std::string_view no_request = "(no request)";
// With 64-bit references: the global_State lies behind the main thread (lj_dispatch.h, GG_State), which ends with
// these two if LuaJIT is OpenResty's.
constexpr Address state_size = 112, exdata = 96;
constexpr std::uint32_t signature = 0x50545448;  // ngx_http_config.h, NGX_HTTP_MODULE: "HTTP"
constexpr std::size_t request_size = 2048;       // bytes that are searched
constexpr std::size_t longest_text = 200;        // bytes of a path
// ngx_str_t is a length and a pointer; these are how far behind request_line.
constexpr Address str_size = 16, uri = str_size, method_name = 5 * str_size, http_protocol = 6 * str_size;

bool is_method(std::string_view text) {
  return !text.empty() && text.size() <= 20 &&
         std::ranges::all_of(text, [](char c) { return (c >= 'A' && c <= 'Z') || c == '_' || c == '-'; });
}

}  // namespace

std::optional<NginxRequests::Text> NginxRequests::text_at(const Memory& memory, Address place) {
  const auto words = memory.get<std::array<std::uint64_t, 2>>(place);
  if (!words) return std::nullopt;
  return Text{(*words)[0], (*words)[1]};
}

std::optional<std::string> NginxRequests::read(const Memory& memory, const Text& text) {
  constexpr std::uint64_t most = 1 << 20;  // more is no length
  if (text.size == 0 || text.size > most || !plausible_pointer(text.at, 1)) return std::nullopt;
  std::string result(std::min<std::uint64_t>(text.size, longest_text + 1), '\0');
  if (!memory.read(text.at, std::as_writable_bytes(std::span(result)))) return std::nullopt;
  return result;
}

// 0: none.
Address NginxRequests::request_of(const Memory& memory, Address L) {
  const Address request = memory.get<Address>(L + exdata).value_or(0);
  return plausible_pointer(request) && memory.get<std::uint32_t>(request) == signature ? request : 0;
}

bool NginxRequests::is_request_line(const Memory& memory, Address place) {
  const auto part = [&](Address offset) {
    const std::optional<Text> text = text_at(memory, place + offset);
    return text ? read(memory, *text) : std::nullopt;
  };
  const std::optional<std::string> line = part(0);
  if (!line) return false;
  const std::string method = line->substr(0, line->find(' '));
  if (!is_method(method) || part(method_name) != method) return false;
  const std::optional<std::string> path = part(uri), protocol = part(http_protocol);
  return path && path->starts_with('/') && protocol && protocol->starts_with("HTTP/");
}

std::optional<std::uint32_t> NginxRequests::find_request_line(const Memory& memory, Address request) {
  for (std::uint32_t offset = 0; offset < request_size; offset += sizeof(Address)) {
    if (is_request_line(memory, request + offset)) return offset;
  }
  return std::nullopt;
}

NginxRequests::Texts NginxRequests::texts_of(const Memory& memory, Address request) const {
  const Address line = request + *request_line_;
  const std::optional<Text> first = text_at(memory, line), method = text_at(memory, line + method_name),
                            path = text_at(memory, line + uri);
  if (!first || !method || !path) return {};
  if (first->size == 0 && path->size == 0) return {.is_made_up = true};
  return {false, read(memory, *method), read(memory, *path)};
}

std::string NginxRequests::text_of(const Texts& texts) {
  if (texts.is_made_up) return std::string(no_request);
  if (!texts.method || !texts.path || !is_method(*texts.method) || !texts.path->starts_with('/'))
    return std::string(unknown_value);
  return printable(*texts.method + " " + *texts.path, longest_text);
}

void NginxRequests::touch(const Memory& memory, const Located& located) const {
  for (const ActiveState& state : located.active) {
    const auto known = has_exdata_.find(state.G);
    if (known == has_exdata_.end() || !known->second) continue;
    const Address request = request_of(memory, state.L);
    if (request == 0) continue;
    if (request_line_) (void)texts_of(memory, request);
    return;
  }
}

bool NginxRequests::may_have_requests(const ActiveState& state, const Memory& live) {
  if (const auto known = has_exdata_.find(state.G); known != has_exdata_.end()) return known->second;
  const Address main = state.lua->main_thread(live, state.G);
  const bool has = state.lua->kind() == LuaKind::luajit && main != 0 && state.G - main == state_size;
  new_has_exdata_[state.G] = has;
  has_learned_ = true;
  return has;
}

std::string NginxRequests::value(const Joined& joined, const Memory& stopped, const Memory& live) {
  for (const RunningState& running : joined.from.lua.on_thread()) {
    const ActiveState& state = running.activation;
    if (!may_have_requests(state, live)) continue;
    const bool is_new = !has_exdata_.contains(state.G);  // then the stop has not read it
    const Address request = request_of(is_new ? live : stopped, state.L);
    if (request == 0) continue;
    if (!is_new && request_line_) return text_of(texts_of(stopped, request));
    if (!request_line_) new_request_line_ = find_request_line(live, request);
    has_learned_ |= new_request_line_.has_value();
    return std::string(unknown_value);
  }
  return {};
}

void NginxRequests::learn() {
  constexpr std::size_t most_states = 1 << 10;  // a program may make them without end
  if (has_exdata_.size() > most_states) has_exdata_.clear();
  has_exdata_.merge(new_has_exdata_);
  if (!request_line_) request_line_ = new_request_line_;
  new_has_exdata_.clear();
  has_learned_ = false;
}

void NginxRequests::forget() { *this = {}; }

}  // namespace luaspy
