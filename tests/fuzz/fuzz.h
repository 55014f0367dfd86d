#pragma once
// Shared by fuzz targets. One program has all of them: run.cpp runs files through a target,
// driver.cpp lets libFuzzer do it.

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/memory.h"

namespace luaspy::fuzz {

using Bytes = std::span<const std::byte>;

struct FuzzTarget {
  std::string_view name;
  void (*run)(Bytes input);
};
std::span<const FuzzTarget> targets();

// Reads what all inputs have in common, which takes longer than one input.
void prepare();
// Runs one input through one target: it may take `most_s` of processor time, including the sanitizers,
// and must end.
void run(const FuzzTarget& target, Bytes input, double most_s = 2);

// Ends the program if the claim does not hold: libFuzzer then keeps the input.
void expect(bool holds, const char* claim);
// Expects valid UTF-8 without control characters, of at most `most` bytes.
void expect_printable(std::string_view text, std::size_t most, const char* what);

// Expects lines of text that are harmless for a terminal and other programs.
void expect_plain(std::string_view text, const char* what);

// Takes values from the front of an input; after its end, they are 0.
class Input {
 public:
  explicit Input(Bytes bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  Bytes rest() const { return bytes_; }
  Bytes bytes(std::size_t most) {
    const Bytes taken = bytes_.first(std::min(most, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  template <typename T>
  T take() {
    T value{};
    const Bytes taken = bytes(sizeof value);
    if (!taken.empty()) std::memcpy(&value, taken.data(), taken.size());
    return value;
  }
  std::string_view text(std::size_t most) {
    const Bytes taken = bytes(most);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

 private:
  Bytes bytes_;
};

// The targets, by file.
void elf(Bytes input);
void call_frames(Bytes input);
void maps(Bytes input);
void objects(Bytes input);
void core(Bytes input);
void detect(Bytes input);
void puc(Bytes input);
void luajit(Bytes input);
void locals(Bytes input);
void heap(Bytes input);
void snapshots(Bytes input);
void bytecode(Bytes input);
void machine_code(Bytes input);
void raw(Bytes input);
void foreign(Bytes input);
void source(Bytes input);

}  // namespace luaspy::fuzz
