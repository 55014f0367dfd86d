#include "fuzz.h"

#include <time.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "support/fake_memory.h"

namespace luaspy::fuzz {
namespace {

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

constexpr FuzzTarget all_targets[] = {{"bytecode", bytecode},
                                      {"call_frames", call_frames},
                                      {"core", core},
                                      {"detect", detect},
                                      {"elf", elf},
                                      {"foreign", foreign},
                                      {"heap", heap},
                                      {"locals", locals},
                                      {"luajit", luajit},
                                      {"machine_code", machine_code},
                                      {"maps", maps},
                                      {"objects", objects},
                                      {"puc", puc},
                                      {"raw", raw},
                                      {"snapshots", snapshots},
                                      {"source", source}};

}  // namespace

std::span<const FuzzTarget> targets() { return all_targets; }

void prepare() { (void)images(); }

void run(const FuzzTarget& target, Bytes input, double most_s) {
  const double start = processor_seconds();
  target.run(input);
  expect(processor_seconds() - start < most_s, "an input takes no longer than it may");
}

void expect(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "FAILED: %s\n", claim);
  std::abort();
}

void expect_printable(std::string_view text, std::size_t most, const char* what) {
  if (text.size() <= most && printable(text, text.size()) == text) return;
  std::fprintf(stderr, "%s, %zu bytes: %s\n", what, text.size(), printable(text, 1000).c_str());
  expect(false, "text is printable, and of bounded length");
}

void expect_plain(std::string_view text, const char* what) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t'; };
  expect(std::ranges::none_of(text, is_control), what);
  std::string one_line(text);
  std::ranges::replace(one_line, '\n', ' ');
  std::ranges::replace(one_line, '\t', ' ');
  expect_printable(one_line, one_line.size(), what);
}

}  // namespace luaspy::fuzz
