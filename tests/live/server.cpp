#include "live/server.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <sstream>

namespace luaspy::live {

Connection::Connection(Running& server, const std::string& path)
    : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  REQUIRE(socket_ >= 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  server.await("it listens at " + path,
               [&] { return ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0; });
}

Connection::~Connection() { ::close(socket_); }

void Connection::send(const std::string& text) const {
  REQUIRE(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
}

std::string resp(const Words& words) {
  std::string text = fmt::format("*{}\r\n", words.size());
  for (const std::string& word : words) text += fmt::format("${}\r\n{}\r\n", word.size(), word);
  return text;
}

Words nginx_with(const std::string& workload, const Folder& folder) {
  Words command = {"/usr/bin/env", "-C", folder.path()};
  for (const std::string& word : host("nginx")) command.push_back(word);
  std::string& configuration = command.back();
  std::string text = read_file(configuration);
  const std::string before = "host-nginx";
  for (std::size_t at = 0; (at = text.find(before, at)) != std::string::npos;)
    text.replace(at, before.size(), workload);
  configuration = folder.write("nginx.conf", text);
  command.insert(command.end(), {"-p", folder.path()});
  return command;
}

std::string Connection::rest() const {
  std::string all;
  std::array<char, 1 << 16> piece{};
  for (ssize_t got = 0; (got = ::recv(socket_, piece.data(), piece.size(), 0)) > 0;)
    all.append(piece.data(), static_cast<std::size_t>(got));
  return all;
}

WithChildren::~WithChildren() {
  ::kill(running.pid(), SIGSTOP);  // it would start new ones
  std::istringstream children(read_file(fmt::format("/proc/{0}/task/{0}/children", running.pid())));
  for (pid_t child = 0; children >> child;) ::kill(child, SIGKILL);
}

}  // namespace luaspy::live
