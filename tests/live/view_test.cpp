// luaspy view: a page in the browser, or served to this machine alone; and record --open, which becomes it.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <array>
#include <catch2/catch.hpp>
#include <regex>
#include <sstream>

#include "base/file_descriptor.h"
#include "support/harness.h"

namespace luaspy::live::view_test {
namespace {

// What comes back for bytes that are sent to a port of 127.0.0.1, until the other end closes it.
std::string answer(int port, const std::string& request) {
  const FileDescriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  REQUIRE(::connect(client.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  (void)!::send(client.number(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string text;
  std::array<char, 65536> bytes;
  for (ssize_t count = 0; (count = ::recv(client.number(), bytes.data(), bytes.size(), 0)) > 0;)
    text.append(bytes.data(), static_cast<std::size_t>(count));
  return text;
}

struct Served {
  int port = 0;
  std::string path;
};

Served served_by(const std::string& address) {
  std::smatch found;
  INFO(address);
  REQUIRE(std::regex_match(address, found, std::regex("http://127\\.0\\.0\\.1:(\\d+)(/[0-9a-f]{32}/[\\w.-]+)")));
  return {std::stoi(found[1]), found[2]};
}

// A folder with a program in the place of xdg-open, which notes what it is to open.
std::string desktop(const Folder& folder, int status) {
  return folder.write("xdg-open", fmt::format("#!/bin/sh\necho \"$1\" > {}\nexit {}\n", folder.path("opened"), status),
                      0755);
}
Words with_desktop(const Folder& folder) {
  return {"env", "DISPLAY=:9", fmt::format("PATH={}:/usr/bin:/bin", folder.path())};
}

}  // namespace

TEST_CASE("view serves a page to those on this machine who know its address", "[commands][smoke]") {
  const Folder folder;
  const std::string text = "<html>" + std::string(300'000, 'x') + "</html>";
  const std::string page = folder.write("my page.html", text);
  Running view(with_errors(folder.path("errors"),
                           {"env", "-u", "DISPLAY", "-u", "WAYLAND_DISPLAY", luaspy_program, "view", page}));
  const Served served = served_by(view.read_line());
  CHECK(served.path.ends_with("/my_page.html"));
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 300013\r\n";
  const std::string got = answer(served.port, fmt::format("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", served.path));
  CHECK(got.starts_with(head));
  CHECK(got.substr(got.find("\r\n\r\n") + 4) == text);
  const std::string only_head = answer(served.port, fmt::format("HEAD {} HTTP/1.1\r\n\r\n", served.path));
  CHECK(only_head.starts_with(head));
  CHECK(only_head.ends_with("\r\n\r\n"));
  for (const std::string& path : {std::string("/"), std::string("/my_page.html"), served.path + "x",
                                  served.path.substr(0, served.path.size() - 1), "/.." + served.path}) {
    const std::string other = answer(served.port, fmt::format("GET {} HTTP/1.1\r\n\r\n", path));
    INFO(path);
    CHECK(other.starts_with("HTTP/1.1 404 "));
    CHECK(other.find(served.path) == std::string::npos);
  }
  CHECK(answer(served.port, fmt::format("POST {} HTTP/1.1\r\n\r\n", served.path)).starts_with("HTTP/1.1 405 "));
  CHECK(answer(served.port, "GET\r\n\r\n").starts_with("HTTP/1.1 404 "));
  CHECK(answer(served.port, std::string(100'000, 'a')).empty());  // a head without an end
  CHECK(answer(served.port, "GET / HTTP/1.1\r\n").empty());       // and one that does not go on: given up after a while
  // Only on 127.0.0.1: /proc/net/tcp has addresses as they lie in memory (proc(5)).
  std::istringstream sockets(read_file(fmt::format("/proc/{}/net/tcp", view.pid())));
  const std::string port = fmt::format(":{:04X} ", served.port);
  int listening = 0;
  for (std::string line; std::getline(sockets, line);) {
    if (line.find(port + "00000000:0000 0A") == std::string::npos) continue;
    ++listening;
    CHECK(line.find(" 0100007F" + port) != std::string::npos);
  }
  CHECK(listening == 1);
  const std::string said = read_file(folder.path("errors"));
  CHECK(std::regex_search(said, std::regex(fmt::format("ssh -N -L {0}:127.0.0.1:{0} \\S+\n", served.port))));
  ::kill(view.pid(), SIGINT);
  CHECK(view.wait() == 0);
}

TEST_CASE("view opens a page where there is a display", "[commands]") {
  const Folder folder;
  desktop(folder, 0);
  const std::string page = folder.write("a.html", "<html></html>");
  CHECK(run(with_desktop(folder) + Words{luaspy_program, "view", page}).status == 0);
  CHECK(read_file(folder.path("opened")) == page + "\n");
  // What fails there is served.
  desktop(folder, 3);
  Running view(with_desktop(folder) + Words{luaspy_program, "view", page});
  const Served served = served_by(view.read_line());
  CHECK(answer(served.port, fmt::format("GET {} HTTP/1.1\r\n\r\n", served.path)).ends_with("<html></html>"));
  ::kill(view.pid(), SIGTERM);
  CHECK(view.wait() == 0);
}

TEST_CASE("view gives a file to the page that shows such files, and to no other", "[commands]") {
  const Folder folder;
  const std::string file = folder.write("a.firefox.json", "{}");
  Running view({luaspy_program, "view", file});
  const std::string address = view.read_line();
  std::smatch found;
  INFO(address);
  REQUIRE(std::regex_match(address, found,
                           std::regex("https://profiler\\.firefox\\.com/from-url/"
                                      "http%3A%2F%2F127\\.0\\.0\\.1%3A(\\d+)%2F([0-9a-f]{32})%2Fa\\.firefox\\.json")));
  const std::string path = fmt::format("/{}/a.firefox.json", found[2].str());
  const std::string allows = "\r\nAccess-Control-Allow-Origin: https://profiler.firefox.com\r\n";
  const std::string got = answer(std::stoi(found[1]), fmt::format("GET {} HTTP/1.1\r\n\r\n", path));
  CHECK(got.find(allows) != std::string::npos);
  CHECK(got.ends_with("\r\n\r\n{}"));
  CHECK(answer(std::stoi(found[1]), fmt::format("OPTIONS {} HTTP/1.1\r\n\r\n", path)).find(allows) !=
        std::string::npos);
  ::kill(view.pid(), SIGINT);
  CHECK(view.wait() == 0);
}

TEST_CASE("what view cannot show it says", "[commands]") {
  const Folder folder;
  const Finished raw = luaspy({"view", folder.write("a.luaspy", "x")});
  CHECK(raw.status == 2);
  CHECK(raw.err.find("a.luaspy is nothing that a browser shows. A recording becomes a page with: luaspy report ") !=
        std::string::npos);
  CHECK(luaspy({"view", folder.path("none.html")}).err.find("none.html: No such file or directory.") !=
        std::string::npos);
  CHECK(luaspy({"view"}).err == "luaspy: say which file to show (luaspy view --help)\n");
}

TEST_CASE("record --open shows the page", "[commands]") {
  const Folder folder;
  desktop(folder, 0);
  const std::string page = folder.path("a.html");
  const Words work = lua({"-e", "local t = os.clock() while os.clock() - t < 0.5 do end os.exit(3)"});
  const Finished shown = run(with_desktop(folder) + Words{luaspy_program, "record", "--open", "-o", page, "--"} + work);
  INFO(shown.err);
  CHECK(shown.status == 0);
  CHECK(read_file(folder.path("opened")) == page + "\n");
  CHECK(luaspy({"record", "--open", "-o", folder.path("a.luaspy"), "--", "true"}).err ==
        "luaspy: --open shows a page or a picture: name one, such as -o profile.html.\n");
}

}  // namespace luaspy::live::view_test
