// How accurate the stacks are, compared with what the target itself knows. Real Luas, built by
// truth.sh, report which coroutine they run and which instruction they fetched last; they run
// mix.lua, and are stopped at random. In every stop the same components run in the same order as in
// Sampler, and their result is compared with what the target reports (truth.h).
//
//   accuracy [--samples N] [--bursts N] [--verbose] DIRECTORY VERSION-SHAPE...
//
// Prints a line for each build; status 1 if one of them misses a bound of `figures`.

#include <fmt/format.h>
#include <sys/ptrace.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "luastate/puc/puc_lua.h"
#include "stopping.h"
#include "truth.h"

namespace luaspy {
namespace {

// Between the first step of fetching an instruction (pc is incremented, the word is loaded) and the
// report of it there are at most this many machine instructions, by the disassembly. In a stop
// there, either instruction is right: the target is stepped on to see whether it is about to
// report.
constexpr int steps_to_telling = 3, steps_to_telling_unoptimised = 9;
constexpr int burst_length = 200;
constexpr int longest_pause_us = 6000;

struct Figures {
  std::int64_t samples = 0, failed_stops = 0, looks_again = 0;
  std::int64_t cold_wrong = 0, warm_wrong = 0, resuming = 0;  // resuming: the resumer, in lua_resume outside of its
                                                              // protected call
  std::int64_t incomplete = 0, unusable = 0, half_built = 0, broken = 0;
  std::int64_t inside = 0, inside_wrong = 0;          // pc in luaV_execute
  std::int64_t below = 0, below_wrong = 0;            // pc in what it calls, a Lua function innermost
  std::int64_t collecting = 0, collecting_wrong = 0;  // the collector works; shown although it does not, or not shown
                                                      // although it does
  std::int64_t unknown = 0;                           // the target could not be asked: a call was just being moved
};

struct Line {
  Address proto = 0;
  int line = 0;
  bool operator==(const Line&) const = default;
};

// The address of `luaspy_truth` in the target: the dynamic symbol of `file`, relocated to where the
// file is mapped.
Address find_truth(const std::string& file, const AddressSpace& space) {
  Address value = 0;
  if (FILE* const nm = popen(("nm -D '" + file + "'").c_str(), "r")) {
    char line[512];
    while (fgets(line, sizeof line, nm) != nullptr) {
      if (std::string_view(line).find(" luaspy_truth") != std::string_view::npos) value = strtoull(line, nullptr, 16);
    }
    pclose(nm);
  }
  for (const Mapping& mapping : space.mappings()) {
    if (mapping.path == file && mapping.offset == 0) return value != 0 ? mapping.start + value : 0;
  }
  return 0;
}

// What the target reports, read while it is stopped.
class Witness {
 public:
  Witness(const Memory& memory, Address truth) : memory_(memory), at_(truth) { hear(); }

  void hear() { truth_ = memory_.get<luaspy_truth>(at_).value_or(luaspy_truth{}); }
  Address running() const { return address(truth_.resumed != nullptr ? truth_.resumed : truth_.main); }
  Address guarded() const { return address(truth_.guarded); }
  const luaspy_truth& said() const { return truth_; }

  // The lines that are right for the innermost Lua function of the running coroutine.
  //  - The innermost call fetched last: the line of that instruction.
  //  - Another one fetched last, and no call is being set up: a callee has returned, and the
  //    innermost call has not continued yet. It is at the instruction that called, and it saved
  //    the pc of that before the call.
  //  - A call is being set up, and L->ci may be linked already: the caller's line, or the callee's
  //    first line.
  std::vector<Line> lines(const Layout& row) const {
    std::vector<Line> lines;
    const Address L = running();
    const Address ci = memory_.get<Address>(L + row.L_ci).value_or(0);
    const Address teller = address(truth_.ci), pc = address(truth_.pc);
    const auto add = [&](Address proto, Address next, bool entry) {
      const std::optional<Prototype> known = proto != 0 ? puc_lua(row).prototype(memory_, proto) : std::nullopt;
      if (!known) return;
      const Address end = known->code_address + 4 * known->code.size();
      if (entry) lines.push_back({proto, known->line(0)});
      else if (next >= known->code_address && next <= end)
        lines.push_back({proto, known->line(static_cast<int>((next - known->code_address) / 4) - 1)});
    };
    const Address proto = proto_of(row, L, ci);
    if (ci == teller) add(proto, pc, false);
    if (truth_.entering != 0) {
      add(proto, 0, true);
      if (ci != teller) add(proto_of(row, L, teller), pc, false);
    } else if (ci != teller) {
      add(proto, memory_.get<Address>(ci + row.ci_savedpc).value_or(0), false);
    }
    return lines;
  }

 private:
  static Address address(const void* pointer) { return reinterpret_cast<Address>(pointer); }

  Address proto_of(const Layout& row, Address L, Address ci) const {
    if (ci == 0) return 0;
    Address func = memory_.get<Address>(ci + row.ci_func).value_or(0);
    if (func < (1 << 25))
      func += memory_.get<Address>(L + row.L_stack).value_or(0);  // LUAI_STRICT_ADDRESS: offsets while the stack moves
    const std::uint32_t tag = row.tt_size == 1 ? memory_.get<std::uint8_t>(func + 8).value_or(0)
                                               : memory_.get<std::uint32_t>(func + 8).value_or(0);
    const Address closure = memory_.get<Address>(func).value_or(0);
    if (tag != row.tag_lclosure) return 0;
    if (row.closure_isC != no_field && memory_.get<std::uint8_t>(closure + row.closure_isC).value_or(1) != 0) return 0;
    return memory_.get<Address>(closure + row.lclosure_p).value_or(0);
  }

  const Memory& memory_;
  Address at_;
  luaspy_truth truth_{};
};

class Judge {
 public:
  Judge(Target& target, Address truth, int steps, bool verbose)
      : target_(target), pieces_(target), truth_(truth), steps_(steps), verbose_(verbose) {}

  const Figures& figures() const { return figures_; }
  const Agreement& agreement() const { return pieces_.agreement(); }
  void forget_figures() { figures_ = {}; }

  void sample(pid_t tid) {
    Target::Stop stop(target_, tid);
    if (stop.outcome() != Target::Stop::Outcome::stopped || !pieces_.read(stop.registers())) {
      ++figures_.failed_stops;
      return;
    }
    Witness witness(target_.memory(), truth_);
    const std::optional<std::vector<Line>> now = ask(witness);
    std::vector<Line> soon;
    if (now) {
      for (int i = 0; i < steps_ && step(tid); ++i) {
        Witness next(target_.memory(), truth_);
        if (next.said().pc == witness.said().pc && next.said().ci == witness.said().ci) continue;
        if (const auto lines = ask(next)) soon = *lines;
        break;
      }
    }
    stop.resume();
    if (!pieces_.finish()) {
      ++figures_.looks_again;
      return;
    }
    judge(stop.registers(), witness, now, soon);
  }

  // A burst of single steps: it judges each instruction of luaV_execute, not random instants.
  void burst(pid_t tid) {
    Target::Stop stop(target_, tid);
    if (stop.outcome() != Target::Stop::Outcome::stopped) return;
    Registers registers = stop.registers();
    // luaspy's results for the last steps, until the target has reported the instruction that they
    // may already be in.
    for (int i = 0; i < burst_length; ++i) {
      if (!pieces_.read(registers)) return;
      Witness witness(target_.memory(), truth_);
      const std::optional<std::vector<Line>> now = ask(witness);
      if (!pieces_.finish()) continue;
      resolve(witness, now, false);
      judge_later(registers, witness, now);
      if (!step(tid) || system::read_registers(tid, registers)) break;
    }
    resolve({target_.memory(), truth_}, std::nullopt, true);
  }

 private:
  static bool step(pid_t tid) {
    int status = 0;
    return ptrace(PTRACE_SINGLESTEP, tid, 0, 0) == 0 && waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status) &&
           WSTOPSIG(status) == SIGTRAP;
  }

  // nullopt: not even the layout row is known.
  std::optional<std::vector<Line>> ask(const Witness& witness) const {
    for (const ActiveState& activation : pieces_.active()) {
      if (const Layout* const row = puc_layout(*activation.lua)) return witness.lines(*row);
    }
    return std::nullopt;
  }

  // The innermost Lua function according to luaspy.
  const Frame* innermost() const {
    const Stack stack = pieces_.stack();
    for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) {
      if (frame->kind == Frame::Kind::lua || frame->kind == Frame::Kind::c) return &*frame;
    }
    return nullptr;
  }

  enum class Place { inside, below, elsewhere };
  Place place() const {
    const std::vector<Segment> segments = pieces_.segments();
    if (segments.empty() || segments[0].walk->calls.empty()) return Place::elsewhere;
    const LuaWalk& walk = *segments[0].walk;
    if (walk.innermost_dropped != 0 || !walk.calls[0].is_lua() || pieces_.natives().empty() || !shows_innermost())
      return Place::elsewhere;
    return pieces_.executes(pieces_.natives()[0]) ? Place::inside : Place::below;
  }

  // False for a call that is being set up, or that an error has ended: steps/ tests these.
  bool shows_innermost() const {
    const auto& labelled = pieces_.joined().calls;
    const auto last = std::find_if(labelled.rbegin(), labelled.rend(),
                                   [](const StackCall& frame) { return frame.state != nullptr; });
    return last != labelled.rend() && last->state->L == pieces_.active()[0].L && last->call == 0;
  }

  bool agrees(const std::vector<Line>& lines) const {
    const LuaCall& call = pieces_.segments()[0].walk->calls[0];
    const Frame* const frame = innermost();
    return frame != nullptr && frame->kind == Frame::Kind::lua &&
           std::ranges::find(lines, Line{call.proto, frame->line}) != lines.end();
  }

  bool judge_state(const Witness& witness) {
    const auto right = [&](const std::vector<ActiveState>& active, std::int64_t* edge) {
      const Address L = active.empty() ? 0 : active[0].L;
      if (L == witness.running()) return true;
      const bool at_edge = L != 0 && witness.guarded() != witness.running() && L == witness.guarded();
      if (at_edge && edge != nullptr) ++*edge;
      return at_edge;
    };
    ++figures_.samples;
    const bool cold = right(pieces_.cold_active, nullptr), warm = right(pieces_.active(), &figures_.resuming);
    figures_.cold_wrong += !cold;
    figures_.warm_wrong += !warm;
    if (!cold || !warm) {
      const auto name = [](const std::vector<ActiveState>& active) {
        return active.empty() ? Address{0} : active[0].L;
      };
      report(fmt::format("wrong L: cold {:#x}, warm {:#x}, runs {:#x}, guarded {:#x}", name(pieces_.cold_active),
                         name(pieces_.active()), witness.running(), witness.guarded()) +
             where_it_is());
    }
    const bool collects = pieces_.sample.vm_state == VmState::collecting, collecting = witness.said().collecting != 0;
    figures_.collecting += collecting;
    figures_.collecting_wrong += collects != collecting;
    if (collects != collecting) report((collects ? "said to collect" : "collects") + where_it_is());
    const Quality& quality = pieces_.sample.quality;
    figures_.incomplete += quality.native_complete == 0;
    figures_.unusable += quality.lua_unusable != 0 || quality.with_lua == 0;
    figures_.half_built += quality.half_built != 0;
    figures_.broken += quality.lua_broken != 0;
    if (quality.native_complete == 0) report("native part incomplete" + where_it_is());
    if (quality.half_built != 0) report("half-built" + where_it_is());
    if (quality.lua_unusable != 0 || quality.with_lua == 0) report("no Lua call could be read" + where_it_is());
    return warm && !pieces_.active().empty() && pieces_.active()[0].L == witness.running();
  }

  // Judges the state. Returns where the line is to be judged, or `elsewhere` if it is not.
  Place place_to_judge(const Witness& witness, const std::optional<std::vector<Line>>& now) {
    if (!judge_state(witness) || !now || place() == Place::elsewhere) return Place::elsewhere;
    if (!now->empty()) return place();
    ++figures_.unknown;
    return Place::elsewhere;
  }

  void judge(const Registers& registers, const Witness& witness, const std::optional<std::vector<Line>>& now,
             const std::vector<Line>& soon) {
    const Place where = place_to_judge(witness, now);
    if (where == Place::elsewhere) return;
    count(where, agrees(*now) || agrees(soon), describe(registers, witness, *now));
  }

  void count(Place where, bool right, const std::string& text) {
    (where == Place::inside ? figures_.inside : figures_.below) += 1;
    if (right) return;
    (where == Place::inside ? figures_.inside_wrong : figures_.below_wrong) += 1;
    report((where == Place::inside ? "wrong line inside: " : "wrong line below: ") + text);
  }

  struct Pending {
    Place where;
    Line said;
    const void* told;
    int steps = 0;
    std::string text;
  };

  void judge_later(const Registers& registers, const Witness& witness, const std::optional<std::vector<Line>>& now) {
    const Place where = place_to_judge(witness, now);
    if (where == Place::elsewhere) return;
    if (agrees(*now)) return count(where, true, {});
    const Frame* const frame = innermost();
    pending_.push_back({where,
                        {pieces_.segments()[0].walk->calls[0].proto, frame != nullptr ? frame->line : 0},
                        witness.said().pc,
                        0,
                        describe(registers, witness, *now)});
  }

  // A result that was too early is right if the target reports the same within a few steps.
  void resolve(const Witness& witness, const std::optional<std::vector<Line>>& now, bool all) {
    std::erase_if(pending_, [&](Pending& pending) {
      const bool told = witness.said().pc != pending.told;
      if (told && now && std::ranges::find(*now, pending.said) != now->end())
        return count(pending.where, true, {}), true;
      if (!told && ++pending.steps < steps_ && !all) return false;
      return count(pending.where, false, pending.text), true;
    });
  }

  std::string where_it_is() const {
    std::string text = pieces_.sample.quality.relocated != 0 ? " (relocated);" : ";";
    for (std::size_t i = 0; i < std::min<std::size_t>(pieces_.natives().size(), 6); ++i) {
      const NativeFrame& native = pieces_.natives()[i];
      text += fmt::format(" {}{}+{:#x}", pieces_.describe(native).name, pieces_.executes(native) ? "(execute)" : "",
                          native.pc - native.function);
    }
    return text;
  }

  std::string describe(const Registers& registers, const Witness& witness, const std::vector<Line>& now) const {
    const Frame* const frame = innermost();
    const LuaCall& call = pieces_.segments()[0].walk->calls[0];
    std::string text = fmt::format("said {}:{} proto {:#x}", frame != nullptr ? frame->name : "nothing",
                                   frame != nullptr ? frame->line : 0, call.proto);
    text += fmt::format(", is");
    for (const Line& line : now)
      text += fmt::format(" {}{}", line.line, line.proto == call.proto ? "" : fmt::format(" of {:#x}", line.proto));
    const auto index = [&](Address pc) { return static_cast<std::int64_t>(pc - call.code) / 4 - 1; };
    text += fmt::format("; saved index {}, told {}{}{}, size {}, ci {:#x}; in", index(call.saved_pc),
                        index(reinterpret_cast<Address>(witness.said().pc)),
                        reinterpret_cast<Address>(witness.said().ci) == call.ci ? "" : " (another ci)",
                        witness.said().entering != 0 ? " (entering)" : "", call.size_code, call.ci);
    for (std::size_t i = 0; i < std::min<std::size_t>(pieces_.natives().size(), 5); ++i) {
      const NativeFrame& native = pieces_.natives()[i];
      text += fmt::format(" {}{}", pieces_.describe(native).name, pieces_.executes(native) ? "(execute)" : "");
    }
    text += fmt::format("; rip {:#x}", registers.pc());
    for (const NativeFrame& native : pieces_.natives()) {
      if (!pieces_.executes(native)) continue;
      text += fmt::format(" execute+{:#x}", native.pc - native.function);
      for (const unsigned number : own_machine().callee_saved) {
        if (call.has_pc(native.registers[number]))
          text += fmt::format(" reg{}={}", number, index(native.registers[number]));
      }
      break;
    }
    return text;
  }

  void report(const std::string& text) {
    if (verbose_) fmt::print("    {}\n", text);
  }

  Target& target_;
  Pieces pieces_;
  Address truth_;
  int steps_;
  bool verbose_;
  Figures figures_;
  std::vector<Pending> pending_;
};

// How many of n may be wrong if a share of `allowed` is wrong: what chance gives in 99 of 100 runs.
std::int64_t tolerance(std::int64_t n, double allowed) {
  const double mean = static_cast<double>(n) * allowed;
  double term = std::exp(-mean), sum = term;
  std::int64_t k = 0;
  while (sum < 0.99) sum += term *= mean / static_cast<double>(++k);
  return k;
}

double percent(std::int64_t wrong, std::int64_t of) {
  return of != 0 ? 100.0 - 100.0 * static_cast<double>(wrong) / static_cast<double>(of) : 0;
}

bool passes(const Figures& figures) {
  struct Limit {
    std::int64_t wrong, of;
    double allowed;
    const char* what;
  };
  const Limit limits[] = {{figures.cold_wrong, figures.samples, 0.001, "running L, cold"},
                          {figures.warm_wrong, figures.samples, 0.001, "running L, warm"},
                          {figures.incomplete, figures.samples, 0.001, "native part"},
                          {figures.unusable, figures.samples, 0.0005, "unusable stacks"},
                          {figures.collecting_wrong, figures.samples, 0.003, "collector"},
                          {figures.half_built, figures.samples, 0.01, "half-built calls"},
                          {figures.inside_wrong, figures.inside, 0.015, "line inside luaV_execute"},
                          {figures.below_wrong, figures.below, 0.001, "line below it"},
                          {figures.failed_stops + figures.unknown, figures.samples, 0.01, "stops that tell nothing"},
                          {figures.looks_again, figures.samples, 0.05, "wrong predictions"}};
  bool good = figures.samples != 0 && figures.inside != 0 && figures.below != 0 && figures.collecting != 0;
  if (!good) fmt::print("  no figures\n");
  for (const Limit& limit : limits) {
    if (limit.wrong <= tolerance(limit.of, limit.allowed)) continue;
    fmt::print("  FAILED: {}: {} of {} wrong\n", limit.what, limit.wrong, limit.of);
    good = false;
  }
  return good;
}

void print(const std::string& name, const Figures& figures) {
  fmt::print(
      "{:<16} {:>7} {:>8.3f} {:>8.3f} {:>5} {:>8.3f} {:>8.3f} {:>8.3f} {:>7} {:>7.2f} {:>7} {:>7.2f} {:>7} {:>7.2f} "
      "{:>5}\n",
      name, figures.samples, percent(figures.cold_wrong, figures.samples), percent(figures.warm_wrong, figures.samples),
      figures.resuming, percent(figures.incomplete, figures.samples), 100 - percent(figures.unusable, figures.samples),
      100 - percent(figures.half_built, figures.samples), figures.inside, percent(figures.inside_wrong, figures.inside),
      figures.below, percent(figures.below_wrong, figures.below), figures.collecting,
      percent(figures.collecting_wrong, figures.samples), figures.unknown);
  std::fflush(stdout);
}

bool measure(const std::string& directory, const std::string& name, int samples, int bursts, bool verbose) {
  const std::string file = directory + "/truth-" + name;
  Child program({file, LUASPY_WORKLOADS "/mix.lua"});
  Result<Process> process = Process::open(program.pid());
  if (!program.ready() || !process) {
    fmt::print("{}: does not start\n", name);
    return false;
  }
  Target target(std::move(*process), std::chrono::milliseconds(2000));
  const Address truth = find_truth(file, target.process().address_space());
  if (truth == 0) {
    fmt::print("{}: tells no truth\n", name);
    return false;
  }
  const int steps = name.ends_with("-O0") ? steps_to_telling_unoptimised : steps_to_telling;
  bool good = true;
  std::minstd_rand random(1);
  const auto pause = [&] {
    system::sleep_until(system::Clock::now() + std::chrono::microseconds(random() % longest_pause_us));
  };
  if (samples != 0) {
    Judge judge(target, truth, steps, verbose);
    for (int i = 0; i < samples; ++i) pause(), judge.sample(program.pid());
    print(name, judge.figures());
    good &= passes(judge.figures());
    good &= judge.agreement().report();
  }
  if (bursts != 0) {
    Judge judge(target, truth, steps, verbose);
    for (int i = 0; i < 50; ++i)
      pause(), judge.sample(program.pid());  // like a recording, it has seen some samples before
    judge.forget_figures();
    for (int i = 0; i < bursts; ++i) pause(), judge.burst(program.pid());
    print(name + " step", judge.figures());
    good &= judge.agreement().report();
  }
  return good;
}

int run(const std::vector<std::string>& words) {
  int samples = 2000, bursts = 0;
  bool verbose = false, good = true;
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--samples" && i + 1 < words.size()) samples = std::stoi(words[++i]);
    else if (words[i] == "--bursts" && i + 1 < words.size()) bursts = std::stoi(words[++i]);
    else if (words[i] == "--verbose") verbose = true;
    else rest.push_back(words[i]);
  }
  if (rest.size() < 2)
    return fmt::print(stderr, "usage: accuracy [--samples N] [--bursts N] [--verbose] DIRECTORY VERSION-SHAPE...\n"), 2;
  fmt::print("{:<16} {:>7} {:>8} {:>8} {:>5} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>5}\n", "",
             "samples", "L cold %", "L warm %", "edge", "native %", "unusab %", "half-b %", "inside", "line %", "below",
             "line %", "gc", "gc %", "none");
  for (std::size_t i = 1; i < rest.size(); ++i) good &= measure(rest[0], rest[i], samples, bursts, verbose);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace luaspy

int main(int argc, char** argv) { return luaspy::run({argv + 1, argv + argc}); }
