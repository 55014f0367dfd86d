#include "attach/waits/waiting.h"

#include <netinet/in.h>
#include <signal.h>

#include <catch2/catch.hpp>
#include <cstring>

namespace luaspy::attach_waiting_test {

using namespace std::chrono_literals;

TEST_CASE("times as people say them", "[unit]") {
  CHECK(human_time(0ns) == "0 us");
  CHECK(human_time(1500us) == "1.5 ms");
  CHECK(human_time(999ms) == "999 ms");
  CHECK(human_time(2s) == "2 s");
  CHECK(human_time(90s) == "1 min 30 s");
  CHECK(human_time(1h) == "1 h");
  CHECK(human_time(1h + 5s) == "1 h");
  CHECK(human_time(25h + 59s) == "1 d 1 h");
  CHECK(human_time(-5s) == "0 us");
}

TEST_CASE("sockets from the kernel's tables", "[unit]") {
  Sockets sockets(0);  // of no process: these are the only tables
  sockets.add(Sockets::Table::tcp,
              "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
              "   0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 0 100 "
              "0 0 10 0\n"
              "   1: 0100007F:C000 0200000A:0050 02 00000000:00000000 00:00000000 00000000     0        0 102 1 0\n"
              "   2: garbage\n\n   3:\n");
  sockets.add(
      Sockets::Table::tcp6,
      "heading\n   0: 00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 "
      "103 1 0\n"
      "   1: 0000000000000000FFFF00000100007F:0050 0000000000000000FFFF00000200007F:C001 08 0:0 00:0 0 0 0 104 1 0\n");
  sockets.add(Sockets::Table::udp, "heading\n  1: 00000000:0035 00000000:0000 07 0:0 00:0 0 0 0 105 2 0\n");
  sockets.add(Sockets::Table::unix_,
              "Num       RefCount Protocol Flags    Type St Inode Path\n"
              "0: 00000002 00000000 00010000 0001 01 106 /run/a b.sock\n0: 00000003 00000000 00000000 0001 03 107\n0: "
              "00000002 00000000 00000000 0002 01 108 @x\x1b[31m\n");
  const auto text = [&](std::uint64_t inode) {
    const std::optional<Socket> socket = sockets.find(inode);
    return socket ? socket->text : "none";
  };
  CHECK(text(101) == "tcp 127.0.0.1:6379 listening");
  CHECK(text(102) == "tcp 127.0.0.1:49152 -> 10.0.0.2:80 (connecting)");
  CHECK(text(103) == "tcp [::1]:53 listening");
  CHECK(text(104) == "tcp 127.0.0.1:80 -> 127.0.0.2:49153 (closed by the other side)");
  CHECK(text(105) == "udp 0.0.0.0:53");
  CHECK(text(106) == "unix /run/a b.sock listening");
  CHECK(text(107) == "unix socket");
  CHECK(text(108) == "unix @x\\x1b[31m");
  CHECK(text(109) == "none");
  CHECK(sockets.find(107)->kind == Socket::Kind::connection);
}

TEST_CASE("addresses that a target passes to the kernel", "[unit]") {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(80);
  std::array<std::byte, sizeof address> bytes{};
  std::memcpy(bytes.data(), &address, sizeof address);
  CHECK(describe_address(bytes) == "0.0.0.0:80");
  CHECK(describe_address(std::span(bytes).first(3)).empty());
  CHECK(describe_address({}).empty());
  const std::array<std::byte, 2> unix_only = {std::byte{1}, std::byte{0}};
  CHECK(describe_address(unix_only).empty());
}

TEST_CASE("rings of threads that wait for each other", "[unit]") {
  const std::vector<std::pair<pid_t, pid_t>> owners = {{1, 2}, {2, 3}, {3, 1}, {4, 1}, {5, 5}, {6, 7}};
  CHECK(deadlocks(owners) == std::vector<std::vector<pid_t>>{{1, 2, 3}, {5}});
  CHECK(deadlocks({}).empty());
}

TEST_CASE("many files in one line", "[unit]") {
  using Kind = OpenFile::Kind;
  CHECK(summary({}, 0) == "nothing");
  CHECK(summary({}, 3) == "3 more");
  const std::vector<OpenFile> files = {{Kind::other, 1, "eventfd"},
                                       {Kind::listening, 2, "tcp 0.0.0.0:80 listening"},
                                       {Kind::connection, 3, "a"},
                                       {Kind::connection, 4, "b"}};
  CHECK(summary(files, 0) == "tcp 0.0.0.0:80 listening, eventfd, 2 connections");
  CHECK(summary(std::span(files).first(3), 2) == "tcp 0.0.0.0:80 listening, eventfd, a, 2 more");
}

TEST_CASE("why a thread stands still", "[unit]") {
  using Kind = Halt::Kind;
  const auto of = [](char state, const char* wchan, int signal = 0, pid_t tracer = 0, bool frozen = false) {
    return halt_of(HaltFacts{state, wchan, signal, tracer, frozen});
  };
  CHECK(halt_text(of('T', "do_signal_stop", SIGSTOP), 42) ==
        "stopped by a signal (SIGSTOP; continue it with kill -CONT 42)");
  CHECK(halt_text(of('T', ""), 42) == "stopped by a signal (continue it with kill -CONT 42)");
  CHECK(halt_text(of('T', "", SIGTTIN), 42) ==
        "stopped by a signal (SIGTTIN: it reads from a terminal in the background; continue it with kill -CONT 42)");
  Halt traced = of('t', "ptrace_stop", 0, 7);
  traced.tracer_name = "gdb";
  CHECK(halt_text(traced, 42) == "traced by 7 (gdb)");
  CHECK(of('T', "", SIGSTOP, 7).kind == Kind::traced);
  CHECK(halt_text(of('D', "__refrigerator"), 42) == "frozen by its cgroup freezer");
  CHECK(of('D', "do_epoll_wait", 0, 0, true).kind == Kind::frozen);
  CHECK(of('S', "get_signal").kind == Kind::frozen);
  CHECK(of('S', "do_freezer_trap").kind == Kind::frozen);
  CHECK(of('D', "do_epoll_wait").kind == Kind::none);
  CHECK(of('S', "do_epoll_wait").kind == Kind::none);
  CHECK(of('R', "get_signal").kind == Kind::none);
  CHECK(halt_text({}, 42).empty());
}

}  // namespace luaspy::attach_waiting_test
