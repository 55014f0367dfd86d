#include "system/request_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace luaspy::system {
namespace {

constexpr int most_waiting = 16;

Error cannot_listen(const std::string& where, int error) {
  return {Cause::output, fmt::format("Cannot listen at {}: {}.", where, Failure{error}.text())};
}

// nullopt: the path is too long for a socket (unix(7)).
std::optional<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

FileDescriptor connect_to(const sockaddr_un& address, int& error) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool connected = socket &&
                         ::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  error = connected ? 0 : errno;
  return connected ? std::move(socket) : FileDescriptor();
}

// Of the one at the other end of a Unix socket.
bool is_same_user(const FileDescriptor& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

}  // namespace

Result<FileDescriptor> listen_at(const std::string& path) {
  const std::optional<sockaddr_un> address = address_of(path);
  if (!address) return cannot_listen(path, ENAMETOOLONG);
  FileDescriptor listens(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listens) return cannot_listen(path, errno);
  // The file gets the mode of the socket (net/unix/af_unix.c, unix_bind_bsd()), so that it never has another one.
  if (::fchmod(listens.number(), S_IRUSR | S_IWUSR) != 0) return cannot_listen(path, errno);
  const auto bind = [&] {
    const int done = ::bind(listens.number(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
    return done == 0 ? 0 : errno;
  };
  int error = bind();
  struct stat status {};
  if (error == EADDRINUSE && ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
    int refused = 0;
    (void)connect_to(*address, refused);
    if (refused == ECONNREFUSED && ::unlink(path.c_str()) == 0) error = bind();
  }
  if (error != 0) return cannot_listen(path, error);
  if (::listen(listens.number(), most_waiting) != 0) return cannot_listen(path, errno);
  return listens;
}

Result<FileDescriptor> listen_on(const std::string& address, int port) {
  sockaddr_in four{};
  sockaddr_in6 six{};
  four.sin_family = AF_INET, six.sin6_family = AF_INET6;
  four.sin_port = six.sin6_port = htons(static_cast<std::uint16_t>(port));
  const bool is_four = ::inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1;
  const std::string where = fmt::format("{}, port {}", address, port);
  if (!is_four && ::inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) != 1) return cannot_listen(where, EINVAL);
  FileDescriptor listens(::socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listens) return cannot_listen(where, errno);
  const int yes = 1;
  (void)::setsockopt(listens.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const auto* const bound = is_four ? reinterpret_cast<const sockaddr*>(&four)
                                    : reinterpret_cast<const sockaddr*>(&six);
  if (::bind(listens.number(), bound, is_four ? sizeof four : sizeof six) != 0) return cannot_listen(where, errno);
  if (::listen(listens.number(), most_waiting) != 0) return cannot_listen(where, errno);
  return listens;
}

int port_of(const FileDescriptor& listens) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(listens.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

Result<std::string> ask(const std::string& path, const std::string& request, Clock::duration patience) {
  const std::optional<sockaddr_un> address = address_of(path);
  int error = ENAMETOOLONG;
  const FileDescriptor socket = address ? connect_to(*address, error) : FileDescriptor();
  if (!socket) return Error{Cause::output, fmt::format("Nobody answers at {}: {}.", path, Failure{error}.text())};
  if (!is_same_user(socket) && ::geteuid() != 0)
    return Error{Cause::permission, fmt::format("Another user listens at {}: that is not believed.", path)};
  const Clock::time_point end = Clock::now() + patience;
  std::string answer;
  if (::send(socket.number(), request.data(), request.size(), MSG_NOSIGNAL) != std::ssize(request))
    return Error{Cause::output, fmt::format("The one at {} has hung up.", path)};
  for (std::array<char, 4096> bytes{};;) {
    std::array files = {pollfd{socket.number(), POLLIN, 0}};
    const std::int64_t left = to_ns(end - Clock::now());
    if (left <= 0) return Error{Cause::output, fmt::format("No answer from {}.", path)};
    wait_for_files(files, left);
    if (files[0].revents == 0) continue;
    const ssize_t count = ::recv(socket.number(), bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return answer;
    answer.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

RequestServer::RequestServer(std::vector<Door> doors)
    : doors_(std::move(doors)), wakes_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void RequestServer::stop() {
  const std::uint64_t one = 1;
  (void)write_all(wakes_.number(), {reinterpret_cast<const char*>(&one), sizeof one});
}

bool RequestServer::has_room(const Door& door) const {
  const auto open = std::ranges::count_if(connections_, [&](const Connection& each) { return each.door == &door; });
  return static_cast<std::size_t>(open) < most_connections;
}

std::int64_t RequestServer::wait_ns() const {
  Clock::time_point first = Clock::now() + std::chrono::hours(1);
  for (const Connection& each : connections_) first = std::min(first, each.ends_at);
  return std::max<std::int64_t>(to_ns(first - Clock::now()), 0);
}

void RequestServer::accept(const Door& door) {
  FileDescriptor socket(::accept4(door.listens.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    // Without a file descriptor for it, it stays in the queue, and poll() returns at once again.
    if (errno == EMFILE || errno == ENFILE) (void)sleep_until(Clock::now() + std::chrono::milliseconds(100));
    return;
  }
  if (door.same_user && !is_same_user(socket)) return;
  connections_.push_back({std::move(socket), &door, {}, {}, false, Clock::now() + most_time});
}

// False: it is over.
bool RequestServer::goes_on(Connection& connection) {
  std::array<char, 1024> bytes{};
  while (!connection.has_answer) {
    const ssize_t count = ::recv(connection.socket.number(), bytes.data(), bytes.size(), 0);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    std::string& request = connection.request;
    request.append(bytes.data(), static_cast<std::size_t>(count));
    if (request.size() > most_request) return false;
    const std::size_t end = request.find(connection.door->end);
    if (end == std::string::npos) continue;
    connection.answer = connection.door->answer(request.substr(0, end));
    connection.has_answer = true;
    connection.ends_at = Clock::now() + most_time;
  }
  while (!connection.answer.empty()) {
    const ssize_t count = ::send(connection.socket.number(), connection.answer.data(), connection.answer.size(),
                                 MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    connection.answer.erase(0, static_cast<std::size_t>(count));
  }
  // What the client has sent besides would make the kernel reset the connection, and drop what was not read of the
  // answer. Its own end of it, or the time, closes it.
  if (::shutdown(connection.socket.number(), SHUT_WR) != 0 && errno != ENOTCONN) return false;
  const ssize_t more = ::recv(connection.socket.number(), bytes.data(), bytes.size(), 0);
  return more > 0 || (more < 0 && (errno == EAGAIN || errno == EINTR));
}

void RequestServer::run() {
  for (;;) {
    std::vector<pollfd> files = {{wakes_.number(), POLLIN, 0}};
    for (const Door& door : doors_) files.push_back({has_room(door) ? door.listens.number() : -1, POLLIN, 0});
    for (const Connection& each : connections_) {
      const bool sends = each.has_answer && !each.answer.empty();
      files.push_back({each.socket.number(), static_cast<short>(sends ? POLLOUT : POLLIN), 0});
    }
    wait_for_files(files, wait_ns());
    if (files[0].revents != 0) return;
    const auto of_connections = files.begin() + 1 + std::ssize(doors_);
    auto file = of_connections;
    for (auto each = connections_.begin(); each != connections_.end(); ++file) {
      const bool stays = (file->revents == 0 || goes_on(*each)) && Clock::now() < each->ends_at;
      each = stays ? std::next(each) : connections_.erase(each);
    }
    for (std::size_t i = 0; i < doors_.size(); ++i) {
      if (files[i + 1].revents != 0) accept(doors_[i]);
    }
  }
}

}  // namespace luaspy::system
