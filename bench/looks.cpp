#include "looks.h"

#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <libunwind-ptrace.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>

#include "near_thread.h"
#include "sampling/sampler.h"

namespace luaspy::bench {
namespace {

using system::Clock;

// Stops one thread with as few calls as possible: Target::Stop without what makes it safe for every
// target.
class BareStop {
 public:
  explicit BareStop(pid_t tid) : tid_(tid), requested_(Clock::now()) {
    if (system::seize(tid)) return;
    (void)system::interrupt(tid);
    status_ = system::wait_for(tid, true);
  }
  BareStop(const BareStop&) = delete;
  BareStop& operator=(const BareStop&) = delete;
  ~BareStop() { resume(); }

  bool stopped() const { return status_.kind == system::WaitStatus::Kind::stopped; }
  std::chrono::nanoseconds resume() {
    if (!stopped()) return {};
    (void)system::detach(tid_, status_.signal);
    status_ = {};
    return Clock::now() - requested_;
  }

 private:
  pid_t tid_;
  Clock::time_point requested_;
  system::WaitStatus status_;
};

class Nothing : public Look {
 public:
  std::chrono::nanoseconds look() override { return {}; }
};

// What the stops of other tools have in common, for a target with one thread.
class Stopping : public Look {
 public:
  Stopping(pid_t pid, int near) : pid_(pid), near_(near) {
    if (near >= 0) thread_ = std::make_unique<NearThread>();
  }
  std::chrono::nanoseconds look() final {
    std::chrono::nanoseconds stood_still{};
    const auto job = [&] { stood_still = stop_and_read(); };
    if (thread_ != nullptr) thread_->run(near_, std::ref(job));
    else job();
    return stood_still;
  }

 protected:
  virtual void read() = 0;  // during the stop; counts frames
  pid_t pid_;

 private:
  std::chrono::nanoseconds stop_and_read() {
    BareStop stop(pid_);
    if (!stop.stopped()) {
      ++lost_;
      return {};
    }
    frames_ = 0;
    read();
    const std::chrono::nanoseconds stood_still = stop.resume();
    if (frames_ == 0) ++lost_;
    return stood_still;
  }

  int near_;
  std::unique_ptr<NearThread> thread_;
};

class Bare : public Stopping {
 public:
  using Stopping::Stopping;
  void read() override { frames_ = 1; }
};

class WithRegisters : public Stopping {
 public:
  using Stopping::Stopping;
  void read() override { frames_ = system::read_registers(pid_, registers_) ? 0 : 1; }

 private:
  Registers registers_;
};

class Libunwind : public Stopping {
 public:
  Libunwind(pid_t pid, int near)
      : Stopping(pid, near), space_(unw_create_addr_space(&_UPT_accessors, 0)), info_(_UPT_create(pid)) {
    require(space_ != nullptr && info_ != nullptr, "libunwind-ptrace cannot be set up");
    unw_set_caching_policy(space_, UNW_CACHE_GLOBAL);
    constexpr std::size_t addresses = 1 << 14;  // the default is 128: too few for an interpreter, and a miss costs
                                                // more than everything else
    unw_set_cache_size(space_, addresses, 0);
  }
  Libunwind(const Libunwind&) = delete;
  Libunwind& operator=(const Libunwind&) = delete;
  ~Libunwind() override {
    _UPT_destroy(info_);
    unw_destroy_addr_space(space_);
  }
  void read() override {
    constexpr std::int64_t most = 1000;  // in case its walk runs in a circle
    unw_cursor_t cursor;
    if (unw_init_remote(&cursor, space_, info_) != 0) return;
    do {
      unw_word_t pc = 0;
      unw_get_reg(&cursor, UNW_REG_IP, &pc);
      ++frames_;
    } while (frames_ < most && unw_step(&cursor) > 0);
  }

 private:
  unw_addr_space_t space_;
  void* info_;
};

class Libdwfl : public Stopping {
 public:
  Libdwfl(pid_t pid, int near) : Stopping(pid, near), dwfl_(dwfl_begin(&callbacks_)) {
    require(
        dwfl_ != nullptr && dwfl_linux_proc_report(dwfl_, pid) == 0 && dwfl_report_end(dwfl_, nullptr, nullptr) == 0,
        "libdwfl cannot read the target's mappings");
    // This only finds the threads, and does not stop them.
    require(dwfl_linux_proc_attach(dwfl_, pid, true) == 0, "libdwfl cannot attach");
  }
  Libdwfl(const Libdwfl&) = delete;
  Libdwfl& operator=(const Libdwfl&) = delete;
  ~Libdwfl() override { dwfl_end(dwfl_); }
  void read() override { dwfl_getthread_frames(dwfl_, pid_, count, &frames_); }

 private:
  static int count(Dwfl_Frame* frame, void* frames) {
    Dwarf_Addr pc = 0;
    bool is_activation = false;
    if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
    ++*static_cast<std::int64_t*>(frames);
    return DWARF_CB_OK;
  }

  static inline const Dwfl_Callbacks callbacks_ = {dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo, nullptr,
                                                   nullptr};
  Dwfl* dwfl_;
};

// A whole look, as dump makes it; near: all of it on the target's CPU. The record command is
// measured as a process (recording.py). With `labels`, a look whose last label could not be read is lost.
class Luaspy : public Look {
 public:
  Luaspy(Process process, int near, const LabelChoice& labels = {})
      : near_(near), target_(std::move(process), SamplerOptions{}.patience), sampler_(target_, {.labels = labels}) {
    if (!labels.expressions.empty()) last_label_ = labels.expressions.back().name;
    if (near >= 0) thread_ = std::make_unique<NearThread>();
  }
  std::chrono::nanoseconds look() override {
    std::int64_t stopped = 0;
    for (const auto& thread : target_.process().threads()) {
      std::optional<Sampler::Sampled> sampled;
      const auto job = [&] { sampled = sampler_.sample(*thread); };
      if (thread_ != nullptr) thread_->run(near_, std::ref(job));
      else job();
      if (!sampled) continue;
      const Sample& sample = sampled->sample;
      stopped += sample.stopped_ns;
      const Stack stack = sampler_.tables().stacks.frames_of(sample.stack);
      frames_ = static_cast<std::int64_t>(stack.size());
      if (sample.loss != Loss::none || !has_lua(stack) || !has_labels(sample)) ++lost_;
    }
    sampler_.do_deferred_work();
    return std::chrono::nanoseconds(stopped);
  }

 private:
  static bool has_lua(const Stack& stack) {
    for (const Frame& frame : stack) {
      if (frame.kind == Frame::Kind::lua) return true;
    }
    return false;
  }

  bool has_labels(const Sample& sample) {
    if (last_label_.empty()) return true;
    const std::string* const value = sampler_.tables().labels.find(sample.labels, last_label_);
    return value != nullptr && *value != unknown_value;
  }

  int near_;
  std::string last_label_;
  std::unique_ptr<NearThread> thread_;
  Target target_;
  Sampler sampler_;
};

cpu_set_t affinity() {
  cpu_set_t set;
  require(::sched_getaffinity(0, sizeof set, &set) == 0, "sched_getaffinity");
  return set;
}

const cpu_set_t all_cpus = affinity();

// What record can be asked for: of each kind one, of a variable in workloads/stack.lua two.
const LabelChoice four_labels = {
    .coroutines = true, .requests = true, .expressions = {{"round", {"round"}}, {"calls", {"calls"}}}};

}  // namespace

std::unique_ptr<Look> make_look(std::string_view name, pid_t pid, int near) {
  if (name == "nothing") return std::make_unique<Nothing>();
  if (name == "bare") return std::make_unique<Bare>(pid, near);
  if (name == "registers" || name == "again") return std::make_unique<WithRegisters>(pid, near);
  if (name == "libunwind") return std::make_unique<Libunwind>(pid, near);
  if (name == "libdwfl") return std::make_unique<Libdwfl>(pid, near);
  if (name != "luaspy" && name != "labelled") return nullptr;
  Result<Process> process = Process::open(pid);
  require(process.has_value(), process ? "" : process.error().text);
  return std::make_unique<Luaspy>(std::move(*process), near, name == "labelled" ? four_labels : LabelChoice{});
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  require(::sched_setaffinity(0, sizeof set, &set) == 0, fmt::format("This thread cannot be moved to CPU {}.", cpu));
}

void unpin() { require(::sched_setaffinity(0, sizeof all_cpus, &all_cpus) == 0, "sched_setaffinity"); }

void require(bool holds, const std::string& otherwise) {
  if (holds) return;
  fmt::print(stderr, "bench: {}\n", otherwise);
  std::exit(1);
}

}  // namespace luaspy::bench
