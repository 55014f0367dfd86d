#include "system/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace luaspy::system {
namespace {

std::optional<std::int64_t> number_in(const char* name) {
  const char* const value = std::getenv(name);
  const std::string_view text = value != nullptr ? value : "";
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

void notify_service_manager(const std::string& lines) {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  const std::string_view path = name != nullptr ? name : "";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() < 2 || path.size() >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) return;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';  // unix(7): an abstract socket, without a file
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (socket)
    (void)::sendto(socket.number(), lines.data(), lines.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                   reinterpret_cast<const sockaddr*>(&address), size);
}

std::optional<Clock::duration> watchdog_time() {
  const std::optional<std::int64_t> us = number_in("WATCHDOG_USEC"), pid = number_in("WATCHDOG_PID");
  if (!us || *us <= 0 || (pid && *pid != ::getpid())) return std::nullopt;
  return std::chrono::microseconds(*us);
}

}  // namespace luaspy::system
