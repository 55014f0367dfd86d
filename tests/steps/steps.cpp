// Is the result of a tick right at every instruction? Real Luas run steps.lua one machine
// instruction at a time; after each, the same components as in Sampler read registers and memory,
// and judge.cpp compares the stack with the one before.
//
//   steps [STEPS] [NAME...] [--no-jit] [--verbose]
//
// Runs STEPS (6000) instructions of each prepared Lua whose name contains one of the NAMEs; without
// names, of one of each version. The phases of the script share them evenly; the rest of a phase
// follows in its next round. Prints a line for each Lua; status 1 if a figure is above its bound.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "judge.h"
#include "stepped.h"
#include "support/target_table.h"

namespace luaspy::steps {
namespace {

// One of each version, as built by distributions or by its authors; all of them are stripped.
const std::vector<std::string> usual = {
    "debian-lua5.1-bookworm", "debian-lua5.2-bookworm", "debian-lua5.3-bookworm",
    "lua-5.4.2-O2",           "debian-lua5.4-bookworm", "debian-lua5.4-sid",
    "debian-lua5.5-sid",      "debian-luajit-bookworm", "debian-luajit-experimental"};

constexpr int cold_rate = 64;  // one in so many looks does not know previous looks

// The known remaining errors in 100,000 steps of this script.
struct Known {
  std::string_view version;
  int wrong, impossible;
};
constexpr Known known[] = {
    // A debug hook's call is linked before its function is written, and the caller's instruction
    // does not show it; __call in a tail call.
    {"5.1", 4, 4},
    {"5.2", 0, 6},
    {"5.3", 0, 6},
    // CIST_TAIL belongs to the CallInfo's last call until luaV_execute clears it (lvm.c up to
    // 5.4.2, OP_CALL).
    {"5.4.0", 8, 8},
    {"5.4.1", 8, 8},
    {"5.4.2", 8, 8},
    {"5.4", 0, 0},
    {"5.5", 0, 0},
    // The stack is being moved; or a C function has returned another one, which is in its slot
    // before BASE is set to the caller's.
    {"LuaJIT", 6, 12},
};
// Whether a version is that of the row, or of the row's series.
constexpr bool is_of(std::string_view version, std::string_view row) {
  return version.starts_with(row) && (version.size() == row.size() || row == "LuaJIT" || version[row.size()] == '.');
}
static_assert(is_of("5.4.1", "5.4.1") && !is_of("5.4.10", "5.4.1") && is_of("5.4.10", "5.4") && !is_of("5.41", "5.4"));
static_assert(is_of("LuaJIT 2.1.1700008891", "LuaJIT") && !is_of("5.4", "5.4.1"));

bool passes(const Counts& counts, const std::string& version) {
  const auto* const row = std::ranges::find_if(known, [&](const Known& each) { return is_of(version, each.version); });
  const auto allowed = [&](std::int64_t figure) {
    return figure * std::max<std::int64_t>(counts.tried, 100'000) / 100'000;
  };
  return row != std::end(known) && counts.tried != 0 && counts.wrong <= allowed(row->wrong) &&
         counts.impossible <= allowed(row->impossible) && counts.lost <= 20 + counts.tried / 2000 &&
         counts.cold_differs <= 2 + counts.tried / cold_rate / 200;
}

struct Options {
  std::int64_t steps = 6'000;
  bool jit = true;
  bool verbose = false;
  std::vector<std::string> names;
};

// What a tick does at the instant at which the program is stopped.
class Looker {
 public:
  explicit Looker(Stepped& program)
      : program_(program), reader_(program.process(), program.memory(), stacks_, {}, {}) {}

  // nullptr: there is no stack to read.
  const StackReader::Finished* look() {
    const StackReader::Finished* finished = nullptr;
    while (finished == nullptr) {
      const bool is_there = reader_.read(look_, program_.registers(), predicted_, true);
      look_.snapshot.close();
      if (!is_there) return nullptr;
      finished = reader_.finish(look_, predicted_);
    }
    reader_.refresh_if_stale();
    return finished;
  }
  const StackReader::Finished* look_cold() { return reader_.look(program_.registers()); }
  StackReader& reader() { return reader_; }

 private:
  Stepped& program_;
  StackTable stacks_;
  StackReader reader_;
  StackReader::Look look_{program_.memory()};
  StackReader::Prediction predicted_;
};

class Campaign {
 public:
  Campaign(const Spec& spec, const Options& options, const Scripts& scripts)
      : options_(options),
        program_(words_of(spec, options.jit)),
        looker_(program_),
        judge_(scripts, spec.version.starts_with("LuaJIT")) {}

  static std::vector<std::string> words_of(const Spec& spec, bool jit) {
    std::vector<std::string> words = spec.command;
    if (!jit && spec.version.starts_with("LuaJIT")) words.push_back("-joff");
    words.push_back(LUASPY_TESTS "/steps/steps.lua");
    return words;
  }

  bool run() {
    std::map<std::string, std::int64_t> offsets;  // into each phase: where its next round continues
    while (counts().tried < options_.steps) {
      phase_ = program_.run_to_write();
      if (phase_.empty()) return false;
      if (phase_ == "end") continue;
      phases_.insert(phase_);
      if (!step_phase(offsets[phase_])) return false;
    }
    return true;
  }

  const Counts& counts() const { return judge_.counts(); }
  std::size_t phases() const { return phases_.size(); }
  std::int64_t whole_phases() const { return whole_phases_; }
  void print_reports() const {
    for (const auto& [text, report] : reports_)
      fmt::print("    {:>5} × {}\n              in {}\n", report.count, text, report.first);
  }

 private:
  // Runs some steps of a phase from `offset` on.
  bool step_phase(std::int64_t& offset) {
    const std::int64_t window = std::clamp<std::int64_t>(options_.steps / 24, 200, 2000);
    std::string written;
    judge_.forget();
    for (std::int64_t i = 0; i < offset; ++i) {
      if (!program_.step(written)) return false;
      if (!written.empty()) return offset = 0, ++whole_phases_, true;
    }
    for (std::int64_t i = 0; i < window && counts().tried < options_.steps; ++i, ++offset) {
      if (!program_.step(written)) return false;
      if (!written.empty()) return offset = 0, ++whole_phases_, true;
      look();
    }
    return true;
  }

  void look() {
    finished_ = looker_.look();
    const Look now = look_of(looker_.reader(), finished_, "libc");
    const ShownStack before = previous_;
    const Judge::Verdict verdict = judge_.judge(now);
    if (!now.lost) previous_ = now.stack;
    if (!verdict.wrong.empty())
      report(fmt::format("{}: {}: {}\n            → {}", phase_, verdict.wrong, text_of(before), text_of(now.stack)));
    if (!verdict.impossible.empty()) report(fmt::format("{}: {}: {}", phase_, verdict.impossible, text_of(now.stack)));
    if (now.lost) report(fmt::format("{}: lost: {}", phase_, text_of(now.stack)));
    if (now.native_incomplete) report(fmt::format("{}: native part incomplete: {}", phase_, text_of(now.stack)));
    if (counts().tried % cold_rate != 0) return;
    finished_ = looker_.look_cold();
    const Look cold = look_of(looker_.reader(), finished_, "libc");
    if (cold.stack == now.stack && cold.lost == now.lost) return;
    ++judge_.counts().cold_differs;
    report(fmt::format("{}: cold differs: {}\n            → {}", phase_, text_of(now.stack), text_of(cold.stack)));
  }

  // Reports each text once, with the place where it occurred first.
  void report(const std::string& text) {
    if (!options_.verbose) return;
    Report& report = reports_[text];
    if (report.count++ != 0) return;
    for (std::size_t i = 0; finished_ != nullptr && i < std::min<std::size_t>(finished_->natives().size(), 4); ++i) {
      const NativeFrame& native = finished_->natives()[i];
      const Frame& frame = looker_.reader().native_code().describe(native);
      report.first += fmt::format("{}{}+{:#x}", i == 0 ? "" : " < ", frame.name, native.pc - native.function);
    }
  }

  const Options& options_;
  Stepped program_;
  Looker looker_;
  const StackReader::Finished* finished_ = nullptr;  // of the last look
  Judge judge_;
  std::string phase_;
  std::set<std::string> phases_;
  std::int64_t whole_phases_ = 0;
  ShownStack previous_;
  struct Report {
    int count = 0;
    std::string first;
  };
  std::map<std::string, Report> reports_;
};

bool measure(const Spec& spec, const Options& options) {
  const Scripts scripts({LUASPY_TESTS "/steps/steps.lua", LUASPY_TESTS "/steps/steps_module.lua",
                         LUASPY_TESTS "/steps/steps_close.lua", LUASPY_TESTS "/steps/steps_jit.lua"});
  Campaign campaign(spec, options, scripts);
  if (!campaign.run()) return fmt::print("{}: ended\n", spec.name), false;
  const Counts& counts = campaign.counts();
  std::string allowed;
  for (const auto& [event, count] : counts.allowed) allowed += fmt::format(" {} {}", event, count);
  fmt::print("{:<28} {:>8} {:>6} {:>6} {:>10} {:>6} {:>6} {:>6} {}\n", spec.name, counts.tried, campaign.whole_phases(),
             counts.wrong, counts.impossible, counts.lost, counts.native_incomplete, counts.cold_differs, allowed);
  campaign.print_reports();
  std::fflush(stdout);
  const bool good = passes(counts, spec.version);
  if (!good) fmt::print("  FAILED: above its bound; --verbose tells what and where\n");
  return good;
}

int run(const std::vector<std::string>& words) {
  Options options;
  for (const std::string& word : words) {
    if (word == "--verbose") options.verbose = true;
    else if (word == "--no-jit") options.jit = false;
    else if (std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; })) options.steps = std::stoll(word);
    else options.names.push_back(word);
  }
  std::vector<Spec> specs = read_specs(LUASPY_TARGETS "/targets.tsv");
  for (Spec& spec : read_specs(LUASPY_TARGETS "/luajits.tsv")) specs.push_back(std::move(spec));
  bool good = true;
  fmt::print("{:<28} {:>8} {:>6} {:>6} {:>10} {:>6} {:>6} {:>6}  allowed\n", "", "steps", "phases", "wrong",
             "impossible", "lost", "native", "cold");
  for (const Spec& spec : specs) {
    const bool wanted = options.names.empty() ? std::ranges::find(usual, spec.name) != usual.end()
                                              : std::ranges::any_of(options.names, [&](const std::string& name) {
                                                  return spec.name.find(name) != std::string::npos;
                                                });
    if (wanted) good &= measure(spec, options);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace luaspy::steps

int main(int argc, char** argv) { return luaspy::steps::run({argv + 1, argv + argc}); }
