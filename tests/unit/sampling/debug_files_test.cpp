#include "sampling/debug_files.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>

namespace luaspy::debug_files_test {

TEST_CASE("a file that is not there yet is waited for before a recording, and never during it", "[debug_files]") {
  std::promise<void> answers;
  const std::shared_future<void> answered = answers.get_future().share();
  std::atomic<int> asked = 0;
  // Never destroyed, as its thread is not waited for.
  DebugFiles& files = *new DebugFiles([&asked, answered](const std::string& id) -> std::string {
    ++asked;
    if (id == "slow") answered.wait();
    return id == "none" ? "" : "/cache/" + id;
  });
  CHECK(files.path_of("first") == "/cache/first");
  CHECK(files.path_of("none").empty());
  files.fetch_later();
  CHECK(files.path_of("first") == "/cache/first");
  CHECK(files.path_of("slow").empty());
  CHECK(files.path_of("slow").empty());
  CHECK(files.come() == 0);
  answers.set_value();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (files.come() == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  CHECK(files.come() == 1);
  CHECK(files.path_of("slow") == "/cache/slow");
  CHECK(asked == 3);
}

}  // namespace luaspy::debug_files_test
