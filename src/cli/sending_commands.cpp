#include "cli/sending_commands.h"

#include <limits>
#include <map>

#include "agent/control.h"
#include "agent/trigger.h"
#include "cli/command_notes.h"
#include "cli/shared_options.h"
#include "cli/values.h"

namespace luaspy {
namespace {

const std::map<std::string, Engine> engines = {
    {"otlp", Engine::otlp}, {"pyroscope", Engine::pyroscope}, {"parca", Engine::parca}};

// What push and agent have in common: the engine, and who luaspy is to it.
void add_engine(CLI::App& command, EngineOptions& options) {
  command.add_option("--to", options.to, "The engine: http://HOST:PORT, with a path if it is not the usual one")
      ->option_text("URL");
  command.add_option("--format", options.engine, "How it is sent: otlp (default), pyroscope or parca")
      ->transform(one_of(engines, {engine_names.begin(), engine_names.end()}))
      ->option_text("FORMAT");
  command.add_option("--attribute", options.attributes, "What else it is known by; can be given more than once")
      ->option_text("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--tenant", options.authorization.tenant, "X-Scope-OrgID")->option_text("NAME");
  command.add_option("--bearer-file", options.authorization.bearer_file, "A file with a token (LUASPY_BEARER)")
      ->option_text("FILE");
  command.add_option("--basic-file", options.authorization.basic_file, "A file with USER:PASSWORD (LUASPY_BASIC)")
      ->option_text("FILE");
  command.add_option("--ca", options.ca_file, "Certificates to trust instead of the system's")->option_text("FILE");
}

void add_snapshots(CLI::App& agent, AgentOptions& options) {
  CLI::Option* const folder = agent.add_option("--snapshots", options.snapshots, "A folder for snapshots")
                                  ->option_text("FOLDER");
  CLI::Option* const keep = agent
                                .add_option("--keep", options.keep,
                                            "Keep that much of the past, with each sample, for snapshots")
                                ->transform(seconds(1, 86400))
                                ->option_text("SECONDS")
                                ->needs(folder);
  agent.add_option("--keep-memory", options.keep_mb, "MiB for what is kept; the oldest goes first (16)")
      ->check(number(1, 100'000))
      ->option_text("MIB");
  agent
      .add_option(
          "--when", options.when,
          "Write a snapshot of a process by itself: 'cpu > 90' (percent), 'heap > 1G',\n'looks-stuck 5s'; can be "
          "given more than once")
      ->check(CLI::Validator(
          [](const std::string& word) {
            const Result<Trigger> trigger = parse_trigger(word);
            return trigger ? std::string() : trigger.error().text;
          },
          ""))
      ->option_text("CONDITION")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->needs(keep);
  agent
      .add_option("--snapshot", options.snapshot, "Ask the agent that runs to write what it keeps, of a process or all")
      ->check(whole_number(0, std::numeric_limits<int>::max()))
      ->option_text("[PID]")
      ->expected(0, 1)
      ->default_str("0");
  agent.add_option("--socket", options.socket, "Where the agent listens for that")->option_text("PATH");
  agent.add_flag("--status", options.status, "Ask the agent that runs what it samples, sends, costs and has lost");
  agent.add_option("--metrics", options.metrics, "Numbers for Prometheus, at http://ADDRESS:PORT/metrics (127.0.0.1)")
      ->check(CLI::Validator(
          [](const std::string& word) {
            const Result<ListenAddress> address = parse_address(word);
            return address ? std::string() : address.error().text;
          },
          ""))
      ->option_text("[ADDRESS:]PORT");
}

}  // namespace

void add_push(CLI::App& app, PushOptions& options) {
  CLI::App& push = *app.add_subcommand("push", "Send a recording to a Collector, Pyroscope or Parca");
  push.footer(push_notes);
  push.add_option("file", options.files, "What record wrote, each sent by itself; - is standard input")
      ->option_text("FILE...")
      ->required();
  add_engine(push, options.engine);
  push.get_option("--to")->required();
  push.add_option("--service", options.service, "service.name (the program's name)")->option_text("NAME");
  push.add_option("--patience", options.patience, "Seconds to try again where the engine is away or busy (30)")
      ->transform(seconds(0, 86400))
      ->option_text("SECONDS");
}

void add_agent(CLI::App& app, AgentOptions& options) {
  CLI::App& agent = *app.add_subcommand("agent", "Sample all Lua programs of a host, always, for such an engine");
  agent.footer(agent_notes);
  agent.add_option("--config", options.config, "A file with lines KEY = VALUE: these options, by their long names")
      ->option_text("FILE");
  add_engine(agent, options.engine);
  agent.add_option("-r,--rate", options.rate, "Samples per second (19)")->check(number(0.1, 1000))->option_text("HZ");
  agent.add_option("--every", options.every, "Seconds between two batches (15)")
      ->transform(seconds(1, 3600))
      ->option_text("SECONDS");
  agent.add_flag("--idle", options.idle, "Sleeping threads, too, by what they wait in; they are read, not stopped");
  // Nothing else takes what was seen of allocations: without an engine it would pile up.
  agent
      .add_flag("--alloc", options.allocations, "Who allocates, too, in bytes and objects: seen for some ms at a time")
      ->needs(agent.get_option("--to"));
  add_max_stopped(agent, options.max_stopped);
  agent.add_option("--max-cpu", options.max_cpu, "How much of one CPU luaspy may take; it samples less often then (1)")
      ->check(number(0.1, 100))
      ->option_text("PERCENT");
  const auto texts = [&](const char* name, std::vector<std::string>& into, const char* about) {
    agent.add_option(name, into, about)
        ->option_text("TEXT")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  texts("--name", options.names, "Only programs whose name or command line has this; can be given more than once");
  texts("--exclude", options.excluded, "And none whose name or command line has this");
  agent.add_option("--buffer", options.buffer_mb, "MiB for what waits while the engine is away (64)")
      ->check(number(1, 100'000))
      ->option_text("MIB");
  add_snapshots(agent, options);
}

}  // namespace luaspy
