#include "cli/commands.h"

#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "cli/command_notes.h"
#include "cli/help_layout.h"
#include "cli/sending_commands.h"
#include "cli/shared_options.h"
#include "cli/values.h"
#include "doctor/version_text.h"
#include "heapreport/heap_output.h"
#include "output/format.h"

namespace luaspy {

namespace {

const std::map<std::string, Unit> allocation_units = {{"bytes", Unit::bytes}, {"objects", Unit::objects}};

void add_record(CLI::App& app, RecordOptions& options) {
  CLI::App& record = *app.add_subcommand("record", "Sample a program and write a profile");
  record.footer(record_notes);
  add_target(record, options.target);
  add_rate(record, options.rate);
  record.add_option("-d,--duration", options.duration, "Seconds to record (until Ctrl-C or its end)")
      ->transform(positive_seconds())
      ->option_text("SECONDS");
  add_end_command(record, options.end_command);
  add_max_stopped(record, options.max_stopped);
  add_always_stop(record, options.always_stop);
  add_output(record, options.output, options.format, std::string(formats().front().name));
  add_subprocesses(record, options.subprocesses);
  add_mode(record, options.shape.mode);
  add_shape(record, options.shape, options.threads);
  record.add_flag("--open", options.opens, "Show the page in the browser when it is written (luaspy view)");
  record
      .add_option("--every", options.every, "Also write the file this often; with %t in its name a new one (1h, 90s)")
      ->transform(seconds(0.1, 1e6))
      ->option_text("SECONDS");
  add_debuginfod(record, options.target);
  record.add_flag("--no-source", options.no_source, "Leave the text of Lua files out of flame graph and raw files");
  record.add_option("--label", options.labels, "Samples say their request, coroutine, plugin, or what id=req.id was")
      ->check(label())
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text("NAME[=EXPR]");
  CLI::Option* const slower = record
                                  .add_option("--slower", options.slower,
                                              "Only requests that took so long (200ms); the label slow says which")
                                  ->transform(seconds(0.001, 1e6))
                                  ->option_text("SECONDS")
                                  ->excludes(record.get_option("--every"));
  record.add_flag("--traces", options.traces, "LuaJIT: a frame for each trace, by number and first line");
  record.add_flag("--jit", options.marks_compiler,
                  "LuaJIT: mark what its compiler does: aborts, new traces; 3 % of a CPU");
  CLI::Option* const coroutines = record.add_flag(
      "--coroutines", options.coroutines, "Also look at suspended coroutines: how many wait where, for how long");
  record.add_option("--coroutine-rate", options.coroutine_rate, "With --coroutines: looks a second (1)")
      ->check(number(0.01, 100))
      ->option_text("HZ")
      ->needs(coroutines);
  CLI::Option* const alloc = record.add_flag("--alloc", options.allocations,
                                             "Also sample who allocates: what the collector costs because of whom");
  record.add_option("--max-cost", options.max_cost, "With --alloc: how much of the program's time that may take (3)")
      ->check(number(0.1, 50))
      ->option_text("PERCENT")
      ->needs(alloc);
  slower->excludes(alloc);
  alloc->option_text(" ");
  CLI::Option* const idle = record.add_flag(
      "--idle", options.idle, "Sample sleeping threads too (wall-clock time); they are read, not stopped");
  add_all_threads(record, options.shape)->needs(idle)->option_text(" ");
  add_kernel(record, options.kernel);
}

void add_report(CLI::App& app, ReportOptions& options) {
  CLI::App& report = *app.add_subcommand("report", "Show a recording, or convert it to another format");
  report.footer(report_notes);
  CLI::Option* const file = report
                                .add_option("file", options.files,
                                            "What record or another profiler wrote, added up; - is standard input")
                                ->option_text("FILE...");
  CLI::Option* const diff = report
                                .add_option("--diff", options.diff, "What changed from BEFORE to AFTER, beyond chance")
                                ->expected(2)
                                ->option_text("BEFORE AFTER");
  file->excludes(diff);
  add_output(report, options.output, options.format, "text", {"memprof", "sysprof"});
  std::vector<CLI::Option*> views = {
      report
          .add_option("--function", options.function,
                      "Callers and callees of a function: its name, or a regular expression")
          ->option_text("NAME"),
      report.add_flag("--tree", options.tree, "The calls as a tree")->option_text(" "),
      report
          .add_option("--source", options.source, "A Lua file and what each line took; the end of its path is enough")
          ->option_text("FILE"),
      report.add_flag("--states", options.states, "What the VM was doing, and in which functions")->option_text(" "),
      report
          .add_flag("--collector", options.collector,
                    "What the garbage collector costs, by who allocates (record --alloc)")
          ->option_text(" "),
      report.add_flag("--by-thread", options.by_thread, "What each thread took")->option_text(" ")};
  CLI::Option* const json = report.add_flag("--json", options.json, "All of it as a JSON object, of --diff too")
                                ->option_text(" ")
                                ->excludes(report.get_option("--format"));
  for (CLI::Option* const view : views) view->excludes(json)->excludes(diff)->excludes(report.get_option("--format"));
  report.add_option("--min", options.least, "With --tree: only branches with at least this share (1)")
      ->check(number(0, 100))
      ->option_text("PERCENT")
      ->needs(views[1]);
  report.add_option("--source-path", options.source_path, "Where that Lua file is now")
      ->option_text("PATH")
      ->needs(views[2]);
  report.add_option("--top", options.top, "Rows of a table (20)")->check(whole_number(1, 1'000'000))->option_text("N");
  report.add_option("--by", options.by, "Shares of samples or of time; what each value of a label took; --diff: run")
      ->option_text("samples|time|LABEL");
  report
      .add_option("--label", options.shape.labels, "Only samples with this label, such as id=a (a regular expression)")
      ->check(wanted_label())
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text("NAME=PATTERN");
  report.add_flag("--total", options.total, "With --diff: functions including all that they call")
      ->needs(diff)
      ->option_text(" ");
  report
      .add_option("--fail-if-slower", options.fail_if_slower,
                  "With --diff: status 12 if a function is slower by more; --by run by default")
      ->transform(percentage(0, 1e6))
      ->option_text("N%")
      ->needs(diff)
      ->excludes(report.get_option("--format"));
  report.add_flag("--leak-only", options.leak_only, "Of a memprof stream: only what was not freed");
  report.add_flag("--human-readable", options.human_readable, "With -f memprof: sizes in KiB, MiB and GiB")
      ->group("");  // for scripts that know it from LuaJIT's parser
  report.add_option("--unit", options.unit, "The allocations of a recording (record --alloc): bytes or objects")
      ->transform(one_of(allocation_units, {"bytes", "objects"}))
      ->option_text("UNIT");
  report.add_option("--thread", options.thread, "Only one thread: its number, or part of its name")
      ->option_text("THREAD");
  report.add_flag("--coroutines", options.coroutines, "Suspended coroutines, not what ran (record --coroutines)")
      ->option_text(" ")
      ->excludes(diff)
      ->excludes(report.get_option("--unit"))
      ->excludes(report.get_option("--collector"))
      ->excludes(report.get_option("--thread"));
  report.add_option("--from", options.from, "From this many seconds after the start; -5: 5 s before the end")
      ->check(number(-1e9, 1e9))
      ->option_text("SECONDS");
  report.add_option("--to", options.to, "Up to this many seconds after the start; negative: before the end")
      ->check(number(-1e9, 1e9))
      ->option_text("SECONDS");
  add_mode_of_recording(report, options.shape.mode);
  add_shape(report, options.shape, options.threads);
  add_all_threads(report, options.shape)->option_text(" ");
  report.add_flag("--processes", options.shape.processes, "A root frame for each process");
  report.add_flag("--by-file", options.by_file, "A root frame for each file")->option_text(" ")->needs(file);
}

void add_top(CLI::App& app, TopOptions& options) {
  CLI::App& top = *app.add_subcommand("top", "Watch live which functions take the time");
  top.footer(top_notes);
  add_target(top, options.target);
  add_rate(top, options.rate);
  top.add_option("-d,--duration", options.duration, "End after this many seconds")
      ->transform(positive_seconds())
      ->option_text("SECONDS");
  top.add_option("--interval", options.interval, "Time between refreshes (1), or between tables (2)")
      ->check(number(0.1, 1e6))
      ->option_text("SECONDS");
  CLI::Option* const batch = top.add_flag("--batch", options.batch, "Print plain tables, one per interval");
  top.add_option("--count", options.count, "With --batch: end after this many tables")
      ->check(whole_number(1, 1'000'000'000))
      ->option_text("N")
      ->needs(batch);
  add_subprocesses(top, options.subprocesses);
  add_mode(top, options.mode);
  top.add_flag("--idle", options.idle, "Sleeping threads too, by what they wait in; they are read, not stopped");
  add_kernel(top, options.kernel);
  add_max_stopped(top, options.max_stopped);
  add_always_stop(top, options.always_stop);
  add_debuginfod(top, options.target);
}

void add_dump(CLI::App& app, DumpOptions& options) {
  CLI::App& dump = *app.add_subcommand("dump", "Print what every thread is doing, once");
  dump.footer(dump_notes);
  const auto [pid, name] = add_running(dump, options.target);
  CLI::Option* const core = add_core(dump, options.core, options.executable, options.root);
  add_mode(dump, options.mode);
  dump.add_flag("--traces", options.traces,
                "LuaJIT: a frame for each trace; what of a function is compiled, or why not");
  dump.add_flag("--locals", options.locals, "Names and values of parameters, locals, varargs and upvalues");
  dump.add_flag("-v,--verbose", options.verbose,
                "Longer values: strings to 1000 bytes, tables to 100 entries, two deep");
  dump.add_flag("--coroutines", options.coroutines, "All coroutines of all Lua states, and where each of them waits");
  add_subprocesses(dump, options.subprocesses);
  dump.add_option("--count", options.count, "Look this many times, and report what moved: is it a hang?")
      ->check(whole_number(1, 10000))
      ->option_text("N");
  dump.add_option("--interval", options.interval, "Seconds between looks, and to see who has no CPU (1)")
      ->check(number(0, 86400))
      ->option_text("SECONDS");
  add_debuginfod(dump, options.target);
  dump.add_flag("--json", options.json, "Print a JSON object");
  for (CLI::Option* const live : {pid, name, dump.get_option("--subprocesses"), dump.get_option("--count")})
    core->excludes(live);
}

void add_heap(CLI::App& app, HeapOptions& options) {
  CLI::App& heap = *app.add_subcommand("heap", "What holds the memory, and what has grown");
  heap.footer(heap_notes);
  CLI::Option* const files = heap.add_option("files", options.files,
                                             "Snapshots that -o has kept: one, or with --diff two")
                                 ->option_text("FILE...")
                                 ->expected(0, 2);
  const auto [pid, name] = add_running(heap, options.target);
  add_subprocesses(heap, options.subprocesses);
  CLI::Option* const subprocesses = heap.get_option("--subprocesses");
  CLI::Option* const core = add_core(heap, options.core, options.executable, options.root);
  CLI::Option* const
      output = heap.add_option("-o,--output", options.output,
                               "Write a page (.html), the snapshot (.luaheap) or other formats; - is standard output")
                   ->option_text("FILE");
  const std::vector<std::string> formats = heap_format_names();
  heap.add_option("-f,--format", options.format,
                  fmt::format("One of these; by default as FILE ends:\n{}", joined(formats, " ")))
      ->check(one_of(formats))
      ->option_text("FORMAT")
      ->needs(output);
  heap.add_option("--path", options.questions.path,
                  "How an object is reached (0x..., or its path), or the largest of a class")
      ->option_text("OBJECT|CLASS");
  heap.add_option("--retained-by", options.questions.retained_by, "What would become free with an object, or a class")
      ->option_text("OBJECT|CLASS");
  heap.add_option("--class", options.questions.of_class,
                  "The objects of a class, by its name or number ('#3'), and who holds them")
      ->option_text("CLASS");
  heap.add_option("--object", options.questions.object, "What an object contains, and what refers to it")
      ->option_text("OBJECT|CLASS");
  CLI::Option* const diff = heap.add_flag("--diff", options.diff, "What has grown between two snapshots")
                                ->option_text(" ")
                                ->needs(files);
  CLI::Option* const every = heap.add_option(
                                     "--every", options.every,
                                     "Take a snapshot every so many seconds, and say what has grown since the first")
                                 ->check(number(0.01, 86400))
                                 ->option_text("SECONDS");
  heap.add_option("--count", options.count, "With --every: this many snapshots (2)")
      ->check(whole_number(2, 1'000'000))
      ->option_text("N")
      ->needs(every);
  CLI::Option* const rss = heap.add_flag("--rss", options.rss, "Also where the resident memory of the process is")
                               ->option_text(" ");
  CLI::Option* const max_still = heap.add_option("--max-still", options.max_still,
                                                 "Let the process run again after so many milliseconds (1000)")
                                     ->check(number(1, 3'600'000))
                                     ->option_text("MS");
  for (CLI::Option* const other : {files, core, every, diff}) rss->excludes(other);  // only of a process, once
  heap.add_flag("--json", options.json, "Print JSON");
  heap.add_option("--lines", options.lines, "Rows of each table (10)")
      ->check(whole_number(1, 100000))
      ->option_text("N");
  subprocesses->excludes(output);  // it is of one process
  for (CLI::Option* const live : {pid, name, every, subprocesses, max_still}) {
    core->excludes(live);
    files->excludes(live);
  }
  files->excludes(core);
  diff->excludes(every);
}

void add_alloc(CLI::App& app, AllocOptions& options) {
  CLI::App& alloc = *app.add_subcommand("alloc", "Who allocates memory: objects and bytes, by stack");
  alloc.footer(alloc_notes);
  add_target(alloc, options.target);
  alloc.add_option("-d,--duration", options.duration, "Seconds to record (until Ctrl-C or its end)")
      ->transform(positive_seconds())
      ->option_text("SECONDS");
  add_end_command(alloc, options.end_command);
  alloc.add_option("--max-cost", options.max_cost, "How much of the program's time this may take (3)")
      ->check(number(0.1, 50))
      ->option_text("PERCENT");
  const std::vector<std::string_view> own_formats = alloc_format_names();
  add_output(alloc, options.output, options.format, std::string(formats().front().name),
             {own_formats.begin(), own_formats.end()});
  alloc.get_option("--format")->needs(alloc.get_option("--output"));
  alloc.add_option("--unit", options.unit, "What the file counts: bytes (default) or objects")
      ->transform(one_of(allocation_units, {"bytes", "objects"}))
      ->option_text("UNIT");
  alloc.add_flag("--live", options.live, "Also what is still in use at the end; the file counts only that");
  alloc.add_flag("--types", options.types, "An innermost frame for what is allocated: [table], [string], ...");
  alloc.add_flag("--internals", options.internals, "Places in the Lua core, too, where it has no symbols");
  add_subprocesses(alloc, options.subprocesses);
  add_mode(alloc, options.shape.mode);
  add_shape(alloc, options.shape, options.threads);
  add_debuginfod(alloc, options.target);
}

void add_doctor(CLI::App& app, DoctorOptions& options) {
  CLI::App& doctor = *app.add_subcommand("doctor", "Write a report about a process, for a bug report");
  doctor.footer(doctor_notes);
  add_running(doctor, options.target);
  doctor.add_option("-o,--output", options.output, "File to write the report to; - is standard output")
      ->option_text("FILE");
  doctor.add_flag("--json", options.json, "Write a JSON object");
  doctor.add_option("--save", options.save, "Also save one stopped thread, with contents of its memory, to FILE")
      ->option_text("FILE");
}

void add_ps(CLI::App& app, PsOptions& options) {
  CLI::App& ps = *app.add_subcommand("ps", "List the processes that run Lua");
  ps.footer(ps_notes);
  ps.add_flag("--states", options.states, "Also count their Lua states: reads up to 256 MiB of each");
  ps.add_flag("--json", options.json, "Print a JSON object");
}

void add_jit(CLI::App& app, JitOptions& options) {
  CLI::App& jit = *app.add_subcommand("jit", "What LuaJIT compiles and what not, why, and what that costs");
  jit.footer(jit_notes);
  add_target(jit, options.target);
  add_rate(jit, options.rate);
  jit.add_option("-d,--duration", options.duration, "Seconds to look (until Ctrl-C or its end)")
      ->transform(positive_seconds())
      ->option_text("SECONDS");
  add_end_command(jit, options.end_command);
  add_max_stopped(jit, options.max_stopped);
  add_always_stop(jit, options.always_stop);
  add_subprocesses(jit, options.subprocesses);
  jit.add_flag("--watch", options.watch, "Print decisions of the compiler as they are seen, and no report");
  jit.add_flag("--json", options.json, "Print a JSON object; with --watch one a line");
  jit.add_option("--lines", options.rows, "Rows of each table (10)")->check(whole_number(1, 100000))->option_text("N");
}

void add_view(CLI::App& app, PageViewOptions& options) {
  CLI::App& view = *app.add_subcommand("view", "Show a page in the browser, also of another machine");
  view.footer(view_notes);
  view.add_option("page", options.file, "A page or a picture; also speedscope's and the Firefox Profiler's files")
      ->option_text("FILE")
      ->required();
  view.add_flag("--serve", options.serve, "Serve it on 127.0.0.1 even if there is a browser here");
  constexpr int most_port = 65535;
  view.add_option("--port", options.port, "Serve it on this port (any that is free)")
      ->check(whole_number(1, most_port))
      ->option_text("PORT");
}

void add_help(CLI::App& app, Options& options) {
  static const std::map<std::string, Shell> shells = {
      {"bash", Shell::bash}, {"zsh", Shell::zsh}, {"fish", Shell::fish}};
  CLI::App& completion = *app.add_subcommand("completion", "Print a completion script for a shell");
  completion.footer(
      "Examples:\n  source <(luaspy completion bash)\n  luaspy completion fish > "
      "~/.config/fish/completions/luaspy.fish");
  completion.add_option("shell", options.completion.shell, "bash, zsh or fish")
      ->transform(one_of(shells, {"bash", "zsh", "fish"}))
      ->option_text(" ")
      ->required();
  CLI::App& manual = *app.add_subcommand("manual", "Print the manual page, or that of a command");
  manual.footer("Examples:\n  luaspy manual | man -l -\n  luaspy manual record | man -l -");
  std::vector<std::string> commands;
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(command->get_name());
  manual.add_option("page", options.manual.command, "The command whose page it is")
      ->check(one_of(commands))
      ->option_text("COMMAND");
}

}  // namespace

void add_commands(CLI::App& app, Options& options) {
  app.formatter(help_layout());
  app.footer(examples);
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  add_record(app, options.record);
  add_report(app, options.report);
  add_top(app, options.top);
  add_dump(app, options.dump);
  add_heap(app, options.heap);
  add_alloc(app, options.alloc);
  add_ps(app, options.ps);
  add_doctor(app, options.doctor);
  add_jit(app, options.jit);
  add_view(app, options.view);
  add_push(app, options.push);
  add_agent(app, options.agent);
  add_help(app, options);
  for (CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) command->group("Commands");
}

}  // namespace luaspy
