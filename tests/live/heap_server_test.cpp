// The leak of docs/heap.md: demo/server in an nginx with two workers, from the first look to the mended
// server.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <regex>

#include "live/server.h"
#include "support/harness.h"

namespace luaspy::live::heap_server_test {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  INFO(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

// demo/server, but with this limiter, at the socket `socket` of the folder, with the tests' nginx.
Words server(const Folder& folder, const std::string& limiter) {
  const std::string prepared = read_file(host("nginx").back());
  const auto prepared_line = [&](const std::string& start) {
    std::smatch match;
    REQUIRE(std::regex_search(prepared, match, std::regex(start + "[^\\n]*;")));
    return match[0].str();
  };
  std::string configuration = read_file(LUASPY_TESTS "/../demo/server/nginx.conf");
  for (const std::string module : {"ndk_http", "ngx_http_lua"})
    configuration = replaced(configuration, "load_module /usr/lib/nginx/modules/" + module + "_module.so;",
                             prepared_line("load_module [^\\n]*/" + module + "_module"));
  configuration = replaced(configuration, "worker_processes 2;", "worker_processes 2; user root;");
  configuration = replaced(configuration, "pid /tmp/luaspy-demo-server.pid;", "pid nginx.pid;");
  configuration = replaced(configuration, "listen 127.0.0.1:8080;", "listen unix:socket;");
  configuration = replaced(configuration, "http {",
                           "http { client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; "
                           "uwsgi_temp_path t; scgi_temp_path t;");
  configuration = replaced(configuration, "lua_package_path \"$prefix/?.lua;;\";", "");
  configuration = replaced(configuration, "access_log off;", "access_log off; " + prepared_line("lua_package_path"));
  configuration = replaced(configuration, "lua_package_path \"", "lua_package_path \"$prefix/?.lua;");
  const std::string file = folder.write("nginx.conf", configuration);
  folder.write("limiter.lua", limiter);
  Words command = {"/usr/bin/env", "-C", folder.path()};
  for (const std::string& each : host("nginx")) command.push_back(each == host("nginx").back() ? file : each);
  return command + Words{"-p", folder.path()};
}

// A request of each of these clients.
void visit(Running& nginx, const std::string& socket, int first, int count) {
  constexpr int of_a_connection = 200;
  for (int i = first; i < first + count; i += of_a_connection) {
    std::string requests;
    for (int client = i; client < i + of_a_connection; ++client)
      requests += fmt::format("GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: a/{}\r\nX-Forwarded-For: 10.0.{}.{}\r\n{}\r\n",
                              client % 7, client / 256, client % 256,
                              client + 1 == i + of_a_connection ? "Connection: close\r\n" : "");
    const Connection connection(nginx, socket);
    connection.send(requests);
    CHECK(connection.rest().ends_with("0\r\n\r\n"));  // the end of the last response
  }
}

std::string demo_limiter() { return read_file(LUASPY_TESTS "/../demo/server/limiter.lua"); }

// Both functions of the module lead to the table.
constexpr const char* clients =
    "package.loaded.limiter.(check → upvalue client_of of check|start → upvalue forget_old of start) "
    "\\(.*/limiter.lua:[0-9]+\\) → upvalue clients of (client_of|forget_old) \\(.*/limiter.lua:[0-9]+\\)";
constexpr const char* client = "{address, agents, requests, started}";

}  // namespace

TEST_CASE("the leak of a server under load is named first, with what holds it", "[heap_server]") {
  const Folder folder;
  Running nginx(server(folder, demo_limiter()));
  const WithChildren ends_workers{nginx};
  visit(nginx, folder.path("socket"), 0, 4000);
  const std::string pid = std::to_string(nginx.pid());

  const Finished looked = luaspy({"heap", "-s", "--pid", pid});
  INFO(looked.out << looked.err);
  CHECK(looked.status == 0);
  CHECK(looked.out.starts_with("Process " + pid + ": nginx: master process "));
  CHECK(looked.out.find("nginx: worker process") != std::string::npos);
  CHECK(std::regex_search(looked.out, std::regex(std::string("[0-9]+ % \\(.*\\) is held by ") + clients +
                                                 ": [0-9,]+ tables \\{address, agents, requests, started\\}")));

  // nginx's own C functions are in no table of Lua's libraries, and its symbols are stripped. A snapshot
  // for Chrome names each function.
  const std::string file = folder.path("master.luaheap"), live = folder.path("live.heapsnapshot"),
                    again = folder.path("again.heapsnapshot");
  CHECK(luaspy({"heap", "--pid", pid, "-o", live}).status == 0);
  CHECK(luaspy({"heap", "--pid", pid, "-o", file}).status == 0);
  CHECK(luaspy({"heap", file, "-o", again}).status == 0);
  for (const std::string& snapshot : {live, again})
    CHECK(read_file(snapshot).find("C function ngx_http_lua_module.so+0x") != std::string::npos);

  Running watching({luaspy_program, "heap", "-s", "--pid", pid, "--every", "0.5", "--count", "3"});
  for (int i = 4000; watching.alive() && i < 60000; i += 200) visit(nginx, folder.path("socket"), i, 200);
  const std::string grown = watching.rest();
  INFO(grown);
  CHECK(watching.wait() == 0);
  // Both workers get requests, but not evenly.
  const std::regex leak("(^|\n)" + std::string(clients) +
                        " got \\+[0-9,]+ \\{address, agents, requests, started\\} \\(table\\): \\+");
  CHECK(std::regex_search(grown, leak));
}

TEST_CASE("the mended server forgets its clients", "[heap_server]") {
  const Folder folder;
  std::string limiter = replaced(demo_limiter(), "for i, client in ipairs(clients) do",
                                 "for i, client in pairs(clients) do");
  limiter = replaced(limiter, "table.remove(clients, i)", "clients[i] = nil");
  limiter = replaced(limiter, "local limit, window = 600, 60", "local limit, window = 600, 0.05");
  Running nginx(server(folder, limiter));
  const WithChildren ends_workers{nginx};
  visit(nginx, folder.path("socket"), 0, 2000);
  nginx.await("no client is left", [&] {
    const Finished looked = luaspy({"heap", "-s", "--pid", std::to_string(nginx.pid()), "--class", client});
    return looked.status == 2 && looked.err.find("no class of that name") != std::string::npos;
  });
}

}  // namespace luaspy::live::heap_server_test
