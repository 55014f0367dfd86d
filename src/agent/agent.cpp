#include "agent/agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <random>

#include "agent/rate_budget.h"
#include "agent/service_facts.h"
#include "agent/window.h"
#include "attach/proc_files.h"
#include "attach/program_name.h"
#include "base/say.h"
#include "base/text.h"
#include "base/version.h"
#include "profile/amount_text.h"
#include "ps/lua_processes.h"
#include "sampling/process_tree.h"
#include "sampling/sampling_loop.h"
#include "sending/outbox.h"
#include "system/page_server.h"
#include "system/signals.h"

namespace luaspy {
namespace {

using Clock = system::Clock;

bool has_one_of(const std::string& text, const std::vector<std::string>& parts) {
  return std::ranges::any_of(parts, [&](const std::string& part) { return text.find(part) != std::string::npos; });
}

class Agent {
 public:
  Agent(const AgentOptions& options, Connection connection)
      : options_(options),
        to_(std::move(connection.to)),
        attributes_(std::move(connection.attributes)),
        random_(std::random_device{}()),
        outbox_(std::move(connection.client), static_cast<std::size_t>(options.buffer_mb * (1 << 20)), random_(),
                [](const std::string& text) { say("luaspy agent: {}\n", text); }),
        tree_(ProcessTree::of_host(sampler_options(options), [this](pid_t pid) { return wants(pid); })),
        budget_(options.rate, options.max_cpu / 100) {
    attributes_.emplace_back("host.name", system::host_name());
  }

  void run() {
    say("luaspy agent: sampling the Lua programs of this host at {:g} Hz, to {}\n", options_.rate, to_.url);
    // Many agents that were started at once do not send at once.
    double seconds = options_.every * std::uniform_real_distribution<double>(0.2, 1)(random_);
    while (system::end_requested() == 0) {
      record(seconds);
      seconds = options_.every;
    }
    constexpr std::chrono::seconds patience{3};
    outbox_.finish(patience);
    const OutboxCounts counts = outbox_.counts();
    say("luaspy agent: {} sent, {:.1f} kB; {} refused, {} dropped, {} not sent\n", count_of(counts.sent, "message"),
        static_cast<double>(counts.sent_bytes) / 1e3, counts.refused, counts.dropped, counts.waiting);
  }

 private:
  static SamplerOptions sampler_options(const AgentOptions& options) {
    SamplerOptions sampler;
    sampler.idle = options.idle;
    return sampler;
  }

  bool wants(pid_t pid) const {
    if (is_luaspy(pid)) return false;
    const std::string name = base_name(program_of(pid)) + '\n' + command_of(pid);
    return (options_.names.empty() || has_one_of(name, options_.names)) && !has_one_of(name, options_.excluded);
  }

  void record(double seconds) {
    Window window(tree_.tables());
    LoopCounts counts;
    LoopOptions loop;
    loop.rate = budget_.rate();
    loop.duration = seconds;
    loop.max_stopped = options_.max_stopped;
    loop.renews_tables = true;
    const Clock::time_point began = Clock::now();
    const std::int64_t started = std::chrono::duration_cast<std::chrono::seconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count();
    run_loop(tree_, loop, window, counts);
    report_losses(window);
    report_changes();  // of those that were found meanwhile, too
    send(window, loop.rate, started, counts.duration_ns);
    keep_budget(system::to_ns(Clock::now() - began));
  }

  void send(Window& window, double rate, std::int64_t started_s, std::int64_t duration_ns) {
    const std::vector<Window::Of> all = window.take_profiles();
    std::vector<KnownProfile> known;
    for (const Window::Of& of : all) {
      Profile& profile = *of.profile;
      if (profile.samples() == 0) continue;
      profile.about = about(of);
      profile.about.rate = rate;
      profile.about.started_s = started_s;
      profile.about.duration_ns = duration_ns;
      profile.about.complete = true;
      KnownProfile& each = known.emplace_back();
      each.profile = &profile;
      each.known = attributes_of(facts_of(of.pid), base_name(profile.about.executable));
      each.known.insert(each.known.begin(), attributes_.begin(), attributes_.end());  // what the user says comes first
    }
    for (HttpRequest& request : requests_for(to_, known)) outbox_.add(std::move(request));
  }

  // A process that has ended is known by what it was last time.
  Metadata about(const Window::Of& of) const {
    Metadata about;
    about.luaspy = version;
    about.pid = of.pid;
    about.command = of.command;
    const auto known = known_.find(of.pid);
    about.executable = known != known_.end() ? known->second.executable : of.command.substr(0, of.command.find(' '));
    if (known != known_.end()) about.luas = known->second.luas;
    return about;
  }

  // Samples that are missing are not told by those that are there: said when it begins, and when it is over.
  void report_losses(const Window& window) {
    constexpr double much = 0.1;
    const double all = static_cast<double>(window.lost() + window.samples());
    const bool loses = static_cast<double>(window.lost()) > much * all;
    if (loses && !loses_)
      say("luaspy agent: {:.0f} % of the looks are lost: the machine is busy, or threads could not be read\n",
          100 * static_cast<double>(window.lost()) / all);
    if (!loses && loses_) say("luaspy agent: few looks are lost now\n");
    loses_ = loses;
  }

  // Which programs have come and gone.
  void report_changes() {
    std::map<pid_t, Known> now;
    for (const auto& session : tree_.sessions()) {
      const pid_t pid = session->pid();
      Known& known = now[pid];
      known.executable = program_of(pid);
      if (const auto before = known_.find(pid); before != known_.end() && !known.executable.starts_with('/'))
        known.executable = before->second.executable;  // it ends just now
      for (const LuaImage& image : session->sampler().reader().images()) known.luas.push_back(image.name());
      const auto before = known_.find(pid);
      if (before == known_.end() || before->second.executable != now[pid].executable)
        say("luaspy agent: samples process {} ({})\n", pid, printable(session->command(), most_shown_of_command));
    }
    for (const auto& [pid, known] : known_) {
      if (!now.contains(pid))
        say("luaspy agent: process {} ({}) has ended\n", pid, printable(base_name(known.executable)));
    }
    known_ = std::move(now);
  }

  void keep_budget(std::int64_t passed_ns) {
    const std::optional<ProcessCpuTime> used = cpu_time_of(::getpid());
    if (!used || passed_ns <= 0) return;
    const std::int64_t ns = used->ns - std::exchange(cpu_ns_, used->ns);
    const double before = budget_.rate();
    if (is_first_) is_first_ = false;  // it reads symbols and finds Luas: once
    else budget_.add(static_cast<double>(ns) / static_cast<double>(passed_ns));
    if (budget_.rate() != before)
      say("luaspy agent: {:.1f} Hz from now on: luaspy took {:.1f} % of a CPU\n", budget_.rate(),
          100 * static_cast<double>(ns) / static_cast<double>(passed_ns));
  }

  static constexpr std::size_t most_shown_of_command = 80;
  struct Known {
    std::string executable;
    std::vector<std::string> luas;  // "Lua 5.4.6", "LuaJIT 2.1.0-beta3"
  };

  const AgentOptions& options_;
  const Destination to_;
  OtlpAttributes attributes_;
  std::mt19937_64 random_;
  Outbox outbox_;
  ProcessTree tree_;
  RateBudget budget_;
  std::int64_t cpu_ns_ = 0;
  bool is_first_ = true, loses_ = false;
  std::map<pid_t, Known> known_;
};

}  // namespace

Result<int> agent(const AgentOptions& options) {
  Result<Connection> connection = prepare_connection(options.engine);
  if (!connection) return connection.error();
  system::watch_signals();
  Agent(options, std::move(*connection)).run();
  return 0;
}

}  // namespace luaspy
