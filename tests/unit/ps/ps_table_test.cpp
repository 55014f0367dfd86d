#include <catch2/catch.hpp>
#include <sstream>

#include "base/display_text.h"
#include "ps/lua_processes.h"

namespace luaspy::ps_table_test {

TEST_CASE("the table of ps fits a narrow window, and leaves out what says least", "[unit]") {
  LuaProcess process;
  process.pid = 12345;
  process.user = "www-data";
  process.command = "nginx: worker process";
  process.executable = process.program = "/usr/sbin/nginx";
  process.threads = 33;
  LuaImage image;
  image.path = "/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2.1.0";
  image.version = "5.4.4";
  image.certain = true;
  process.images = {image};
  const std::string whole = table_of({process}, 0), narrow = table_of({process}, 40);
  CHECK(whole.find("THREADS") != std::string::npos);
  CHECK(whole.find("libluajit-5.1.so.2.1.0") != std::string::npos);
  INFO(narrow);
  std::istringstream lines(narrow);
  for (std::string line; std::getline(lines, line);) CHECK(columns(line) <= 40);
  CHECK(narrow.find("12345") != std::string::npos);
  CHECK(narrow.find("Lua 5.4.4") != std::string::npos);
  CHECK(narrow.find("nginx") != std::string::npos);
  CHECK(narrow.find("THREADS") == std::string::npos);
}

}  // namespace luaspy::ps_table_test
