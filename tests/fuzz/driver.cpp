// libFuzzer's side: fuzz TARGET [options of libFuzzer] CORPUS…

#include <cstdio>
#include <cstdlib>

#include "fuzz.h"

namespace {

const luaspy::fuzz::FuzzTarget* chosen = nullptr;

void choose(std::string_view name) {
  for (const luaspy::fuzz::FuzzTarget& target : luaspy::fuzz::targets()) {
    if (target.name == name) chosen = &target;
  }
}

}  // namespace

// Processes that libFuzzer starts have the arguments without the target, and this process's
// environment.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  constexpr const char* variable = "LUASPY_FUZZ_TARGET";
  if (*count > 1) choose((*arguments)[1]);
  if (chosen != nullptr) {
    ::setenv(variable, (*arguments)[1], 1);
    for (int i = 1; i < *count; ++i) (*arguments)[i] = (*arguments)[i + 1];
    --*count;
  } else if (const char* const name = std::getenv(variable); name != nullptr) {
    choose(name);
  }
  if (chosen != nullptr) return luaspy::fuzz::prepare(), 0;
  std::fprintf(stderr, "fuzz TARGET [options] CORPUS…; targets:");
  for (const luaspy::fuzz::FuzzTarget& target : luaspy::fuzz::targets())
    std::fprintf(stderr, " %s", std::string(target.name).c_str());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  luaspy::fuzz::run(*chosen, std::as_bytes(std::span(data, size)));
  return 0;
}
