#include "system/request_server.h"

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "system/service_manager.h"

namespace luaspy::system {
namespace {

using namespace std::chrono_literals;

struct Served {
  std::string folder = (std::filesystem::temp_directory_path() / "luaspy-socket-XXXXXX").string();
  std::string path;
  std::unique_ptr<RequestServer> server;
  std::thread thread;

  Served() {
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    path = folder + "/socket";
    Result<FileDescriptor> listens = listen_at(path);
    REQUIRE(listens.has_value());
    std::vector<RequestServer::Door> doors;
    doors.push_back({std::move(*listens), "\n", [](const std::string& request) { return request + "!"; }, true});
    server = std::make_unique<RequestServer>(std::move(doors));
    thread = std::thread([this] { server->run(); });
  }
  ~Served() {
    server->stop();
    thread.join();
    std::filesystem::remove_all(folder);
  }
};

}  // namespace

TEST_CASE("one request, one answer", "[unit]") {
  const Served served;
  CHECK(ask(served.path, "hello\nmore", 10s).value() == "hello!");
  CHECK(ask(served.path, std::string(RequestServer::most_request - 1, 'x') + '\n', 10s)->size() ==
        RequestServer::most_request);
  // Too long: an end without an answer, or a connection that is reset.
  const Result<std::string> too_long = ask(served.path, std::string(2 * RequestServer::most_request, 'x') + '\n', 10s);
  CHECK((!too_long || too_long->empty()));
  CHECK(ask(served.path, "again\n", 10s).value() == "again!");
}

TEST_CASE("a socket belongs to its user, and nothing is removed for it but a dead one", "[unit]") {
  const Served served;
  struct stat status {};
  REQUIRE(::lstat(served.path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK_FALSE(listen_at(served.path).has_value());
  CHECK(ask(served.path, "still here\n", 10s).value() == "still here!");
  const std::string dead = served.folder + "/dead", link = served.folder + "/link";
  { const Result<FileDescriptor> unheard = listen_at(dead); }
  CHECK_FALSE(ask(dead, "x\n", 10s).has_value());
  std::filesystem::create_symlink(dead, link);
  CHECK_FALSE(listen_at(link).has_value());
  CHECK(listen_at(dead).has_value());
  CHECK_FALSE(listen_at(served.folder + std::string(200, 'x')).has_value());
  CHECK_FALSE(listen_on("localhost", 0).has_value());
  CHECK(port_of(listen_on("127.0.0.1", 0).value()) > 0);
}

}  // namespace luaspy::system
