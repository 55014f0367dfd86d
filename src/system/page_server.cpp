#include "system/page_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <random>
#include <string_view>
#include <utility>

#include "system/calls.h"
#include "system/signals.h"

namespace luaspy::system {
namespace {

constexpr std::size_t most_head = 8192;      // bytes of a request
constexpr std::chrono::seconds patience(2);  // until a reader takes the next bytes of an answer
constexpr std::chrono::seconds most_for_head(2);

std::string token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

Error cannot_serve(const std::string& what) {
  return {Cause::output, fmt::format("Cannot serve the page: {}: {}.", what, Failure{errno}.text())};
}

bool send_all(const FileDescriptor& connection, std::string_view bytes) {
  Clock::time_point deadline = Clock::now() + patience;
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR && end_requested() == 0 && Clock::now() < deadline) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
    deadline = Clock::now() + patience;
  }
  return true;
}

// The head of a request, up to its empty line; "" if none comes.
std::string head_of(const FileDescriptor& connection) {
  const Clock::time_point deadline = Clock::now() + most_for_head;
  std::string head;
  std::array<char, 1024> bytes;
  while (head.size() < most_head && Clock::now() < deadline && end_requested() == 0) {
    const ssize_t count = ::recv(connection.number(), bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    head.append(bytes.data(), static_cast<std::size_t>(count));
    if (head.find("\r\n\r\n") != std::string::npos) return head;
  }
  return {};
}

}  // namespace

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

Result<PageServer> PageServer::open(ServedFile served, int port) {
  PageServer server;
  server.listens_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!server.listens_) return cannot_serve("socket");
  const int yes = 1;
  (void)::setsockopt(server.listens_.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof address;
  auto* const bound = reinterpret_cast<sockaddr*>(&address);
  if (::bind(server.listens_.number(), bound, size) != 0) return cannot_serve(fmt::format("port {}", port));
  constexpr int most_waiting = 16;
  if (::listen(server.listens_.number(), most_waiting) != 0) return cannot_serve("listen");
  if (::getsockname(server.listens_.number(), bound, &size) != 0) return cannot_serve("getsockname");
  server.port_ = ntohs(address.sin_port);
  server.path_ = fmt::format("/{}/{}", token(), served.name);
  server.served_ = std::move(served);
  return server;
}

void PageServer::run() const {
  while (end_requested() == 0) {
    const FileDescriptor connection(::accept4(listens_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection) answer(connection);
    else if (errno != EINTR) (void)sleep_until(Clock::now() + std::chrono::milliseconds(100));  // too many open files
  }
}

void PageServer::answer(const FileDescriptor& connection) const {
  const std::string request = head_of(connection);  // a wait ends with the next SIGALRM (watch_signals())
  if (request.empty()) return;
  bool with_file = false;
  if (!send_all(connection, head_for(request, with_file)) || !with_file) return;
  std::array<char, 1 << 16> bytes;
  for (off_t at = 0;;) {
    const ssize_t count = ::pread(served_.file.number(), bytes.data(), bytes.size(), at);
    if (count <= 0 || !send_all(connection, {bytes.data(), static_cast<std::size_t>(count)})) return;
    at += count;
  }
}

// Of the request its first line counts: "GET /TOKEN/NAME HTTP/1.1". Whoever does not know the path learns nothing.
std::string PageServer::head_for(const std::string& request, bool& with_file) const {
  const std::string line = request.substr(0, request.find("\r\n"));
  const std::size_t begin = line.find(' '), end = line.find_first_of(" ?", begin + 1);
  const std::string method = line.substr(0, begin);
  const bool is_known = begin != std::string::npos && line.substr(begin + 1, end - begin - 1) == path_;
  const std::string rest = "Connection: close\r\nContent-Length: 0\r\n\r\n";
  if (!is_known) return "HTTP/1.1 404 Not Found\r\n" + rest;
  std::string allowed;
  if (!served_.origin.empty())
    allowed = fmt::format("Access-Control-Allow-Origin: {}\r\nAccess-Control-Allow-Private-Network: true\r\n",
                          served_.origin);
  if (method == "OPTIONS" && !allowed.empty())
    return "HTTP/1.1 204 No Content\r\n" + allowed + "Connection: close\r\n\r\n";
  if (method != "GET" && method != "HEAD") return "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\n" + rest;
  struct stat status {};
  if (::fstat(served_.file.number(), &status) != 0) return "HTTP/1.1 500 Internal Server Error\r\n" + rest;
  with_file = method == "GET";
  return fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Cache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
      served_.type, status.st_size, allowed);
}

}  // namespace luaspy::system
