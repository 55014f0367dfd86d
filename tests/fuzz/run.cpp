// Runs inputs through their targets, without a fuzzer: fuzz_corpora DIRECTORY [TARGET], where
// DIRECTORY/TARGET/… are a target's inputs. A target without inputs is a failure. Each input is
// also run truncated and with parts missing, so that coverage survives small changes of the input's
// form. `shrink FROM TO` makes a copied heap for objects (heaps.h).

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz.h"
#include "heaps.h"

namespace luaspy::fuzz {
namespace {

constexpr double most_s = 2;

int run_all(const std::filesystem::path& corpus, std::string_view only) {
  prepare();
  for (const FuzzTarget& target : targets()) {
    if (!only.empty() && target.name != only) continue;
    int inputs = 0;
    run(target, {}, most_s);
    for (const auto& entry : std::filesystem::directory_iterator(corpus / target.name)) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      const Bytes bytes = std::as_bytes(std::span(text));
      run(target, bytes, most_s);
      run(target, bytes.first(bytes.size() / 2), most_s);
      ++inputs;
    }
    std::printf("%s: %d inputs\n", std::string(target.name).c_str(), inputs), std::fflush(stdout);
    expect(inputs > 0, "there are inputs");
  }
  return 0;
}

}  // namespace
}  // namespace luaspy::fuzz

int main(int count, char** arguments) {
  if (count < 2) return 2;
  if (count == 4 && std::string_view(arguments[1]) == "shrink")
    return luaspy::fuzz::shrink_heap(arguments[2], arguments[3]);
  return luaspy::fuzz::run_all(arguments[1], count > 2 ? arguments[2] : "");
}
