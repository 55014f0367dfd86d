#include "agent/agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>

#include "agent/agent_text.h"
#include "agent/control.h"
#include "agent/flight_recorder.h"
#include "agent/host_allocations.h"
#include "agent/known_programs.h"
#include "agent/rate_budget.h"
#include "agent/service_facts.h"
#include "agent/sinks.h"
#include "agent/snapshots.h"
#include "agent/tally.h"
#include "agent/trigger.h"
#include "agent/window.h"
#include "attach/proc_files.h"
#include "attach/program_name.h"
#include "base/say.h"
#include "base/text.h"
#include "profile/amount_text.h"
#include "ps/lua_processes.h"
#include "sampling/probe_turns.h"
#include "sampling/process_tree.h"
#include "sampling/sample_sink.h"
#include "sampling/sampling_loop.h"
#include "sending/connection.h"
#include "sending/outbox.h"
#include "system/page_server.h"
#include "system/service_manager.h"
#include "system/signals.h"
#include "system/standard_output.h"
#include "system/written_file.h"

namespace luaspy {
namespace {

// Says to the service manager that the agent still samples, if it wants to know that.
class Heartbeat : public SampleSink {
 public:
  void add(ThreadId, const Tick&, const Sample&) override {}
  void add_idle(ThreadId, std::int64_t) override {}
  void add_waiting(ThreadId, std::int64_t) override {}
  void add_loss(Loss, std::int64_t) override {}
  void look(const LoopCounts&) override {
    constexpr int times = 3;  // of what it waits for: one may come late
    const system::Clock::time_point now = system::Clock::now();
    if (!time_ || now - last_ < *time_ / times) return;
    last_ = now;
    system::notify_service_manager("WATCHDOG=1");
  }

 private:
  const std::optional<system::Clock::duration> time_ = system::watchdog_time();
  system::Clock::time_point last_{};
};

using Clock = system::Clock;

bool has_one_of(const std::string& text, const std::vector<std::string>& parts) {
  return std::ranges::any_of(parts, [&](const std::string& part) { return text.find(part) != std::string::npos; });
}

Result<int> print_answer(const AgentOptions& options, const std::string& request) {
  const Result<std::string> answer = ask_agent(options.socket, request);
  if (!answer) return answer.error();
  fmt::print("{}", *answer);
  if (const Result<void> written = system::flush_standard_output("the answer"); !written) return written.error();
  return 0;
}

class Agent {
 public:
  Agent(const AgentOptions& options, std::optional<Connection> connection)
      : options_(options),
        random_(std::random_device{}()),
        tree_(ProcessTree::of_host(sampler_options(options), [this](pid_t pid) { return wants(pid); })),
        budget_(options.rate, options.max_cpu / 100 * (options.allocations ? 1 - part_for_allocations : 1)) {
    if (connection) {
      to_ = std::move(connection->to);
      attributes_ = std::move(connection->attributes);
      outbox_ = std::make_unique<Outbox>(std::move(connection->client),
                                         static_cast<std::size_t>(options.buffer_mb * mebibyte), random_(),
                                         [](const std::string& text) { say("luaspy agent: {}\n", text); });
    }
    attributes_.emplace_back("host.name", system::host_name());
    if (options.keep > 0) keep_past();
    if (options.allocations) {
      const HostAllocations::Bounds bounds = {options.max_cpu / 100 * part_for_allocations, options.max_stopped / 100};
      allocations_ = std::make_unique<HostAllocations>(tree_, bounds, random_());
    }
  }

  // An Error: it cannot listen where it was told to.
  Result<void> listen() {
    std::vector<system::RequestServer::Door> doors;
    if (const Result<void> done = listen_for_commands(doors); !done) return done.error();
    if (const Result<void> done = listen_for_metrics(doors); !done) return done.error();
    if (!doors.empty()) control_ = std::make_unique<Control>(std::move(doors));
    return {};
  }

  void run() {
    say("luaspy agent: sampling the Lua programs of this host at {:g} Hz{}{}\n", options_.rate,
        outbox_ != nullptr ? fmt::format(", to {}", to_.url) : "",
        recorder_ != nullptr ? fmt::format(", the last {:g} s are kept", options_.keep) : "");
    system::notify_service_manager("READY=1\nSTATUS=Sampling");
    // Many agents that were started at once do not send at once.
    double seconds = options_.every * std::uniform_real_distribution<double>(0.2, 1)(random_);
    while (system::end_requested() == 0) {
      record(seconds);
      seconds = options_.every;
    }
    system::notify_service_manager("STOPPING=1");
    control_ = nullptr;
    if (!socket_.empty()) (void)std::filesystem::remove(socket_);
    if (outbox_ != nullptr) finish_sending();
  }

 private:
  using Doors = std::vector<system::RequestServer::Door>;

  Result<void> listen_for_commands(Doors& doors) {
    std::string path = options_.socket.empty() ? default_socket() : options_.socket;
    if (path.empty()) return {};
    std::error_code unused;
    if (options_.socket.empty()) std::filesystem::create_directory(std::filesystem::path(path).parent_path(), unused);
    Result<FileDescriptor> listens = system::listen_at(path);
    if (!listens && !options_.socket.empty()) return listens.error();
    if (!listens) {
      say("luaspy agent: {} Nobody can ask it for anything; --socket PATH names another place.\n",
          listens.error().text);
      return {};
    }
    socket_ = std::move(path);
    doors.push_back({std::move(*listens), "\n", [this](const std::string& request) { return answer(request); }, true});
    return {};
  }

  Result<void> listen_for_metrics(Doors& doors) {
    if (options_.metrics.empty()) return {};
    const Result<ListenAddress> address = parse_address(options_.metrics);
    if (!address) return address.error();
    Result<FileDescriptor> listens = system::listen_on(address->host, address->port);
    if (!listens) return listens.error();
    say("luaspy agent: metrics are at http://{}:{}/metrics\n", address->host, system::port_of(*listens));
    doors.push_back({std::move(*listens), "\r\n\r\n",
                     [this](const std::string& request) { return http_answer(request, state()); }});
    return {};
  }

  void finish_sending() {
    constexpr std::chrono::seconds patience{3};
    outbox_->finish(patience);
    const OutboxCounts counts = outbox_->counts();
    say("luaspy agent: {} sent, {:.1f} kB; {} refused, {} dropped, {} not sent\n", count_of(counts.sent, "message"),
        static_cast<double>(counts.sent_bytes) / 1e3, counts.refused, counts.dropped, counts.waiting);
  }

  void keep_past() {
    const auto kept = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.keep));
    recorder_ = std::make_unique<FlightRecorder>(tree_.tables(), recorder_options(kept));
    snapshots_ = std::make_unique<Snapshots>(*recorder_, SnapshotFolder{options_.snapshots});
    std::vector<Trigger> triggers;
    for (const std::string& text : options_.when)
      triggers.push_back(parse_trigger(text).value());  // cli has checked it
    if (triggers.empty()) return;
    // Sooner, a snapshot would show the same once more.
    const Clock::duration hold_off = std::max<Clock::duration>(kept, std::chrono::minutes(1));
    const auto act = [this](int pid, const std::string& why) { return snapshots_->begin(pid, why); };
    const auto cpu_time = [](int pid) {
      const std::optional<ProcessCpuTime> used = cpu_time_of(pid);
      return used ? std::optional(used->ns) : std::nullopt;
    };
    triggers_ = std::make_unique<TriggerWatch>(tree_.tables(), std::move(triggers), hold_off, act, cpu_time);
  }

  FlightRecorder::Options recorder_options(Clock::duration kept) {
    FlightRecorder::Options options;
    options.keeps = kept;
    options.most_bytes = static_cast<std::size_t>(options_.keep_mb * mebibyte);
    options.describe = [this](const KeptPart::Key& key, Metadata& about) {
      programs_.describe(key, about);
      about.rate = budget_.rate();
      about.max_stopped = options_.max_stopped;
    };
    return options;
  }

  // In the thread of control_.
  std::string answer(const std::string& request) {
    constexpr std::string_view snapshot = "snapshot ";
    if (request.starts_with(snapshot)) return answer_of(take_snapshot(request.substr(snapshot.size())));
    if (request == "status") return answer_of(status_text(state()));
    return answer_of(Error{Cause::usage, "This agent does not know that."});
  }

  // May be called by any thread.
  AgentState state() const {
    AgentState state;
    state.sums = tally_.sums();
    state.rate = rate_, state.wanted_rate = options_.rate;
    state.cpu = cpu_, state.most_cpu = options_.max_cpu / 100;
    if (const std::optional<ProcessCpuTime> used = cpu_time_of(::getpid())) state.cpu_ns = used->ns;
    state.to = to_.url;
    if (outbox_ != nullptr) state.outbox = outbox_->counts();
    if (allocations_ != nullptr) state.allocation_samples = allocation_samples_;
    if (recorder_ != nullptr) state.kept = recorder_->size(), state.snapshots = snapshots_->files();
    return state;
  }

  Result<std::string> take_snapshot(const std::string& process) {
    int pid = 0;
    (void)std::from_chars(process.data(), process.data() + process.size(), pid);
    if (recorder_ == nullptr)
      return Error{Cause::usage, "This agent keeps nothing: start it with --keep 10m --snapshots FOLDER."};
    const Result<std::vector<std::string>> paths = snapshots_->write(pid);
    if (!paths) return paths.error();
    return joined(*paths, "\n") + '\n';
  }

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
    std::vector<SampleSink*> all = {&window, &tally_, &heartbeat_};
    if (recorder_ != nullptr) all.push_back(recorder_.get());
    if (triggers_ != nullptr) all.push_back(triggers_.get());
    if (allocations_ != nullptr) all.push_back(&allocations_->renewal());
    Sinks sinks(all);
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
    SamplingLoop sampling(tree_, loop, sinks, counts);
    run(sampling);
    report_losses(window);
    programs_.update(tree_);
    tally_.set_programs(programs_.all());
    system::notify_service_manager(
        fmt::format("STATUS=Sampling {} Lua programs at {:.3g} Hz", programs_.all().size(), budget_.rate()));
    if (recorder_ != nullptr) describe_kept();
    if (outbox_ != nullptr) send(window, loop.rate, started, counts);
    keep_budget(system::to_ns(Clock::now() - began));
  }

  void run(SamplingLoop& sampling) {
    // A probe that is alone is not asked how long its turns are.
    std::vector<ProbeTurn> turns = {{&sampling, [this] { return allocations_->until_turn(); }}};
    if (allocations_ != nullptr) turns.emplace_back(allocations_.get());
    (void)run_probes(tree_, turns, Clock::time_point::max());
  }

  // What was seen in a window, which began at that time.
  void send(Window& window, double rate, std::int64_t started_s, const LoopCounts& counts) {
    Metadata of_window;
    of_window.rate = rate;
    of_window.started_s = started_s;
    of_window.duration_ns = counts.duration_ns;
    of_window.sampled_ns = allocations_ != nullptr ? counts.sampled_ns : 0;
    std::vector<KnownProfile> known;
    const std::vector<Window::Of> time = window.take_profiles();
    add_profiles(time, of_window, known);
    std::vector<Window::Of> bytes, objects;
    if (allocations_ != nullptr) {
      bytes = allocations_->take_bytes(), objects = allocations_->take_objects();
      of_window.rate = 0, of_window.sampled_ns = 0;
      add_profiles(bytes, of_window, known);
      add_profiles(objects, of_window, known);
    }
    for (HttpRequest& request : requests_for(to_, known)) outbox_->add(std::move(request));
  }

  void add_profiles(const std::vector<Window::Of>& all, const Metadata& of_window, std::vector<KnownProfile>& known) {
    for (const Window::Of& of : all) {
      Profile& profile = *of.profile;
      if (profile.samples() == 0) continue;
      const Unit unit = profile.about.unit;
      profile.about = about(of);
      profile.about.unit = unit;
      profile.about.rate = of_window.rate;
      profile.about.started_s = of_window.started_s;
      profile.about.duration_ns = of_window.duration_ns;
      profile.about.sampled_ns = of_window.sampled_ns;
      profile.about.complete = true;
      profile.charge_pauses();
      KnownProfile& each = known.emplace_back();
      each.profile = &profile;
      each.known = attributes_of(facts_of(of.pid), base_name(profile.about.executable));
      each.known.insert(each.known.begin(), attributes_.begin(), attributes_.end());  // what the user says comes first
    }
  }

  Metadata about(const Window::Of& of) const {
    Metadata about = about_program(of.pid, of.command);
    programs_.describe({of.pid, of.program}, about);
    return about;
  }

  // Memory, or that there is enough of it again, is said when it begins.
  void describe_kept() {
    recorder_->describe();
    const FlightRecorder::Size size = recorder_->size();
    if (std::exchange(keeps_less_, size.is_full) == size.is_full) return;
    if (size.is_full)
      say("luaspy agent: {:g} MiB hold the last {:.0f} s, not {:g}: --keep-memory\n", options_.keep_mb,
          std::chrono::duration<double>(size.time).count(), options_.keep);
    else say("luaspy agent: the last {:g} s have room again\n", options_.keep);
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

  void keep_budget(std::int64_t passed_ns) {
    const std::optional<ProcessCpuTime> used = cpu_time_of(::getpid());
    if (!used || passed_ns <= 0) return;
    const std::int64_t ns = used->ns - std::exchange(cpu_ns_, used->ns);
    const double before = budget_.rate();
    cpu_ = static_cast<double>(ns) / static_cast<double>(passed_ns);
    if (allocations_ != nullptr) allocations_->end_window(passed_ns);
    if (is_first_) is_first_ = false;  // it reads symbols and finds Luas: once
    else budget_.add(cpu_ - (allocations_ != nullptr ? allocations_->used() : 0));
    rate_ = budget_.rate();
    if (allocations_ != nullptr) allocation_samples_ = allocations_->samples();
    if (budget_.rate() != before)
      say("luaspy agent: {:.1f} Hz from now on: luaspy took {:.1f} % of a CPU\n", budget_.rate(), 100 * cpu_);
  }

  static constexpr double mebibyte = 1 << 20;
  static constexpr double part_for_allocations = 0.25;  // of the CPU time that luaspy may take

  const AgentOptions& options_;
  Destination to_;
  OtlpAttributes attributes_;
  std::mt19937_64 random_;
  std::unique_ptr<Outbox> outbox_;  // nullptr: nothing is sent
  ProcessTree tree_;
  RateBudget budget_;
  std::int64_t cpu_ns_ = 0;
  bool is_first_ = true, loses_ = false, keeps_less_ = false;
  KnownPrograms programs_;
  Tally tally_{tree_.tables()};
  Heartbeat heartbeat_;
  std::atomic<std::int64_t> allocation_samples_ = 0;     // as of the last window
  std::atomic<double> rate_ = budget_.rate(), cpu_ = 0;  // as of the last window; cpu_: share of one CPU
  std::unique_ptr<FlightRecorder> recorder_;             // nullptr: nothing is kept
  std::unique_ptr<Snapshots> snapshots_;                 // of recorder_
  std::unique_ptr<TriggerWatch> triggers_;               // nullptr: there are none
  std::unique_ptr<HostAllocations> allocations_;         // nullptr: not asked for
  std::string socket_;                                   // where it listens; "": nowhere
  std::unique_ptr<Control> control_;
};

}  // namespace

Result<int> agent(const AgentOptions& options) {
  if (options.status) return print_answer(options, "status");
  if (options.snapshot) return print_answer(options, fmt::format("snapshot {}", *options.snapshot));
  std::error_code unused;
  if (options.keep > 0 && !std::filesystem::is_directory(options.snapshots, unused))
    return Error{Cause::output, fmt::format("{} is no folder: --snapshots.", printable(options.snapshots))};
  std::optional<Connection> connection;
  if (!options.engine.to.empty()) {
    Result<Connection> prepared = prepare_connection(options.engine);
    if (!prepared) return prepared.error();
    connection = std::move(*prepared);
  }
  system::watch_signals();
  system::make_files_private();
  Agent agent(options, std::move(connection));
  if (const Result<void> listens = agent.listen(); !listens) return listens.error();
  agent.run();
  return 0;
}

}  // namespace luaspy
