#pragma once
// Sockets by their inodes: /proc/PID/net lists all that are in the network namespace of a process
// (proc(5)).

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace luaspy {

struct Socket {
  enum class Kind { listening, connection, other } kind = Kind::other;
  std::string text;  // "tcp 127.0.0.1:6379 listening", "unix /run/app.sock"; printable
};

// The address in a sockaddr ("127.0.0.1:6379", "[::1]:53", "/run/app.sock"); empty if it is of
// another family or too short.
std::string describe_address(std::span<const std::byte> sockaddr);

class Sockets {
 public:
  enum class Table { tcp, tcp6, udp, udp6, unix_, netlink };

  // The tables are read once, when the first socket is looked up.
  explicit Sockets(pid_t pid) : pid_(pid) {}

  // nullopt: a socket of another kind, or in another namespace.
  std::optional<Socket> find(std::uint64_t inode);
  // Adds the text of a table. Malformed lines are skipped.
  void add(Table table, std::string text);

 private:
  struct Line {
    Table table;
    std::string_view text;
  };
  void read_tables();

  pid_t pid_;
  bool read_ = false;
  std::vector<std::vector<char>> texts_;  // the text that the lines point into
  std::unordered_map<std::uint64_t, Line> lines_;
};

}  // namespace luaspy
