#include "top/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <iostream>
#include <thread>

#include "attach/halt.h"
#include "attach/refusal.h"
#include "attach/urgency.h"
#include "base/say.h"
#include "base/why_empty.h"
#include "output/output_file.h"
#include "recording/metadata_of_target.h"
#include "sampling/kernel_access.h"
#include "sampling/lua_descendants.h"
#include "sampling/process_tree.h"
#include "system/calls.h"
#include "system/signals.h"
#include "system/standard_output.h"
#include "top/command_output.h"
#include "top/top_feed.h"
#include "top/top_plain.h"
#include "top/top_screen.h"

namespace luaspy {
namespace {

using Clock = system::Clock;

constexpr double window = 5;  // s, of the screen

// Draws in a separate thread, and samples in this one. An exception in the other thread is rethrown
// here.
void run_both(ProcessTree& tree, const LoopOptions& options, TopFeed& feed, LoopCounts& counts,
              const std::function<void()>& show) {
  std::exception_ptr failure;
  std::thread shower = system::thread_without_signals([&] {  // the thread that samples handles them
    try {
      show();
    } catch (...) {
      failure = std::current_exception();
    }
    feed.want_no_more();
    feed.release();
  });
  try {
    run_loop(tree, options, feed, counts);
  } catch (...) {
    feed.end(counts);
    shower.join();
    throw;
  }
  feed.end(counts);
  if (!counts.target_ended) make_like_this(shower.native_handle());  // it ends now, as soon as this thread does
  // The target has ended, but the user is still looking at the screen.
  while (!feed.has_enough() && system::end_requested() == 0) {
    if (system::suspend_requested()) {
      feed.before_suspend();
      system::suspend();
      feed.after_suspend();
    }
    system::sleep_until(Clock::now() + std::chrono::milliseconds(50));
  }
  shower.join();
  if (failure) std::rethrow_exception(failure);
}

// If nothing ran in the window, checks in /proc whether anything could run. If nothing was seen to run at all,
// says why. `descendants`: of a target of which nothing else is looked at.
void report_still(const TopCounts& counts, std::optional<LuaDescendants>& descendants, TopTarget& target) {
  const bool nothing_ran = std::ranges::all_of(counts.activity,
                                               [](const TopCounts::Span& span) { return span.recent == 0; });
  if (nothing_ran && counts.elapsed.recent > 0 && !target.ended && target.processes == 1)
    target.still = why_still(target.pid);
  constexpr std::int64_t soon_ns = 500'000'000;  // too short a time to tell
  if (!target.still.empty() || counts.samples != 0 || target.ended || counts.elapsed.all < soon_ns) return;
  EmptyFacts facts;
  facts.seconds = static_cast<double>(counts.elapsed.all) / 1e9;
  facts.asleep = counts.asleep;
  facts.waiting = counts.looks_waiting;
  facts.losses = counts.losses;
  facts.cpu_ns = target.cpu.lua_ns + target.cpu.unknown_ns;
  if (facts.asleep == 0 || facts.waiting != 0 || facts.losses != LossCounts{})
    target.still = "no samples: " + why_empty(facts);
  const std::optional<LuaDescendants::Busy> busy = descendants ? descendants->busiest() : std::nullopt;
  if (busy) target.still = "no samples. " + busy_text(*busy, "top", target.pid);
}

// Serves the user until `q`.
class Watching {
 public:
  // `written` receives a line for each file, to be told when the screen is left.
  Watching(TopFeed& feed, TopScreen& screen, std::optional<LuaDescendants>& descendants, double interval, Mode mode,
           std::vector<std::string>& written)
      : feed_(feed), screen_(screen), descendants_(descendants), view_(interval, screen.charset()), written_(written) {
    view_.begin_with(mode);
  }

  void run() {
    look();
    while (system::end_requested() == 0) {
      if (feed_.wants_suspend()) stand_by();
      if (feed_.is_over() && !frozen_) freeze();
      if (frozen_ && !target_.ended) return;  // the requested duration is over
      if (!frozen_ && Clock::now() >= look_at_) look();
      screen_.show(draw_top(view_, counts_, target_, screen_.size(), pane_));
      if (!wait()) return;
    }
  }

 private:
  // False: quit.
  bool wait() {
    constexpr std::chrono::milliseconds most(100);  // a signal is not heard here
    const Clock::time_point until = Clock::now() + most;
    do {
      TopKey key;
      const auto patience = std::chrono::ceil<std::chrono::milliseconds>(std::min(until, look_at_) - Clock::now());
      switch (screen_.wait(frozen_ ? most : std::clamp(patience, std::chrono::milliseconds(0), most), key)) {
        case TopScreen::Event::key:
          return press(key);
        case TopScreen::Event::resized:
          return true;
        case TopScreen::Event::gone:
          return false;
        case TopScreen::Event::none:
          break;
      }
      if (system::end_requested() != 0 || feed_.wants_suspend() || (feed_.is_over() && !frozen_)) return true;
    } while (frozen_ || Clock::now() < look_at_);
    return true;
  }

  bool press(const TopKey& key) {
    const bool was_paused = view_.is_paused(), was_naming = view_.is_naming_file();
    const Mode was = view_.mode();
    switch (view_.press(key, counts_)) {
      case TopView::Request::quit:
        return false;
      case TopView::Request::reset:
        if (!frozen_) feed_.reset(), look();
        break;
      case TopView::Request::write:
        write();
        break;
      case TopView::Request::none:
        break;
    }
    if (view_.is_naming_file() && !was_naming) {
      const std::string stem = default_stem(feed_.executable(), target_.pid);
      view_.propose_file(unused_name(stem, formats().front().extension));
    }
    if (view_.mode() != was) {
      feed_.show(view_.mode());
      counts_ = {};  // even if the display is paused
      look();
    }
    if (const std::optional<TopRow> row = pane_row(); !view_.is_paused() || !is_same(row, pane_of_)) look_closer();
    if (was_paused && !view_.is_paused() && !frozen_) look();
    look_at_ = std::min(look_at_, Clock::now() + pause());
    return true;
  }

  void look() {
    // The target's state is always updated; the counts stay as they are while the display is
    // paused.
    TopCounts fresh;
    feed_.copy(fresh, target_);
    report_still(fresh, descendants_, target_);
    if (!view_.is_paused() || counts_.entries.empty()) counts_ = std::move(fresh);
    view_.show(counts_);
    if (!view_.is_paused()) look_closer();
    look_at_ = Clock::now() + pause();
  }
  // The row whose stack is shown.
  std::optional<TopRow> pane_row() const { return view_.shows_pane() ? view_.selected() : std::nullopt; }
  static bool is_same(const std::optional<TopRow>& a, const std::optional<TopRow>& b) {
    return a.has_value() == b.has_value() && (!a || a->is_same(*b));
  }
  void look_closer() {
    pane_of_ = pane_row();
    pane_ = pane_of_ ? sources_.pane_of(feed_.latest(*pane_of_)) : TopPane{};
  }
  void write() {
    const Result<std::string> next = write_recording(feed_.recording(), feed_.shown(), view_.file_name());
    view_.show_message(next ? "written: " + view_.file_name() : next.error().text);
    if (next) written_.push_back(fmt::format("luaspy: written: {}\n  next: {}\n", view_.file_name(), *next));
  }
  // At the beginning, refresh sooner, so that something appears.
  Clock::duration pause() const {
    constexpr double soon = 0.25;
    const bool begins = counts_.elapsed.all < 2'000'000'000;
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(begins ? std::min(soon, view_.interval()) : view_.interval()));
  }

  void freeze() {
    frozen_ = true;
    look();
  }

  void stand_by() {
    screen_.suspend();
    feed_.stand_by();
    screen_.resume();
  }

  TopFeed& feed_;
  TopScreen& screen_;
  std::optional<LuaDescendants>& descendants_;
  TopView view_;
  TopCounts counts_;
  TopTarget target_;
  TopSources sources_;
  TopPane pane_;
  std::optional<TopRow> pane_of_;
  std::vector<std::string>& written_;
  Clock::time_point look_at_{};
  bool frozen_ = false;
};

// Prints plain tables until there are enough. False: nobody reads them.
bool print_tables(TopFeed& feed, std::optional<LuaDescendants>& descendants, double interval,
                  std::optional<int> count) {
  const auto step = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval));
  TopCounts counts;
  TopTarget target;
  const auto print = [&] {
    feed.drain(counts, target);
    report_still(counts, descendants, target);
    std::cout << plain_table(counts, target) << std::flush;
    return static_cast<bool>(std::cout);
  };
  Clock::time_point at = Clock::now();
  for (int done = 0; !count || done < *count; ++done) {
    at += step;
    while (!feed.is_over() && Clock::now() < at) {
      if (feed.wants_suspend()) feed.stand_by();
      constexpr std::chrono::milliseconds most(50);  // a signal is not heard here
      feed.wait_for_end(std::min<Clock::duration>(at - Clock::now(), most));
    }
    if (feed.is_over()) {
      // Prints the rest since the last table, unless it is very short.
      feed.copy(counts, target);
      return counts.elapsed.recent < 100'000'000 && done != 0 ? true : print();
    }
    if (!print()) return false;
  }
  return true;
}

// Shows the output of a launched command, whatever happens to top, and returns its exit status.
int wait_for_command(ProcessTree& tree, CommandOutput* output) {
  Session& session = tree.target();
  if (!session.launched()) return 0;
  if (output != nullptr) output->pour();
  if (!session.ended())
    say("luaspy: process {} is still running; luaspy ends when it does\n", session.target().process().pid());
  while (!session.ended()) {
    if (system::suspend_requested()) system::suspend();
    if (output != nullptr) output->pour();
    system::sleep_until(Clock::now() + std::chrono::milliseconds(50));
  }
  if (output != nullptr) output->pour();
  return tree.wait_for_exit();
}

Result<ProcessTree> open(const TopOptions& options, const KernelAccess& kernel) {
  SamplerOptions sampler;
  sampler.merging.native_only = options.mode == Mode::native;
  sampler.idle = options.idle;
  sampler.kernel = kernel.symbols;
  Result<ProcessTree> tree = ProcessTree::open(options.target, sampler, options.subprocesses);
  if (!tree || tree->target().launched() || options.mode == Mode::native) return tree;
  if (const Result<void> lua = tree->check_lua(); !lua) return lua.error();
  return tree;
}

}  // namespace

Result<int> top(const TopOptions& options) {
  const bool plain = options.batch || !TopScreen::is_possible();
  if (plain && !options.batch)
    say("luaspy: standard output is not a terminal that can show a screen: printing tables, as with --batch\n");
  const KernelAccess kernel = options.kernel ? ask_for_kernel(options.rate, options.idle) : KernelAccess{};
  for (const std::string& note : kernel.notes) say("luaspy: {}\n", note);
  std::optional<CommandOutput> output;
  if (!plain && options.target.pid == 0) {
    Result<CommandOutput> diverted = CommandOutput::divert();
    if (!diverted) return diverted.error();
    output.emplace(std::move(*diverted));
  }
  Result<ProcessTree> opened = open(options, kernel);
  if (output) output->give_back();
  if (!opened) return opened.error();
  ProcessTree& tree = *opened;
  system::watch_signals();

  const double interval = options.interval.value_or(plain ? 2 : 1);
  TopTarget target;
  target.command = tree.target().target().process().command();
  target.pid = tree.target().target().process().pid();
  target.rate = options.rate;
  target.window = plain ? interval : window;
  if (output) target.output = output->path();
  TopFeed feed(tree, target, about_recording(tree, options.mode, options.rate, options.max_stopped), options.mode,
               plain ? TopFeed::Output::plain : TopFeed::Output::screen);
  std::optional<LuaDescendants> descendants;
  if (!tree.has_subprocesses()) descendants.emplace(target.pid);
  LoopCounts counts;
  const LoopOptions loop = {options.rate,        options.duration, options.max_stopped,
                            options.always_stop, kernel.logs,      true};
  bool taken = true;
  std::vector<std::string> written;
  if (plain) {
    run_both(tree, loop, feed, counts, [&] { taken = print_tables(feed, descendants, interval, options.count); });
  } else {
    const std::unique_ptr<TopScreen> screen = TopScreen::open();
    if (screen == nullptr) return Error{Cause::usage, "There is no terminal to read keys from. --batch needs none."};
    system::before_end_at_once(TopScreen::leave_at_once);
    run_both(tree, loop, feed, counts,
             [&] { Watching(feed, *screen, descendants, interval, options.mode, written).run(); });
  }
  for (const std::string& line : written) say("{}", line);
  system::before_end_at_once(nullptr);
  if (counts.unheard != 0) say("{}", unheard_text);
  if (const std::string precedence = precedence_text(counts.precedence); !precedence.empty())
    say("luaspy: real-time: {}\n", precedence);
  const int status = wait_for_command(tree, output ? &*output : nullptr);
  TopCounts last;
  feed.copy(last, target);
  if (last.losses[static_cast<std::size_t>(Loss::refused)] != 0)
    fmt::print(stderr, "luaspy: {}\n", explain_no_stop(target.pid).text);
  if (const Result<void> all = system::flush_standard_output("the tables"); !taken && !all) return all.error();
  return status;
}

}  // namespace luaspy
