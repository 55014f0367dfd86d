#pragma once
// The command line, as plain structs.

#include <optional>
#include <string>

#include "agent/agent.h"
#include "alloc/alloc.h"
#include "cli/usage.h"
#include "doctor/doctor.h"
#include "dump/dump.h"
#include "heapreport/heap.h"
#include "jit/jit.h"
#include "ps/ps.h"
#include "push/push.h"
#include "record/record.h"
#include "report/report.h"
#include "top/top.h"
#include "view/view.h"

namespace luaspy {

struct CompletionOptions {
  Shell shell = Shell::bash;
};

struct ManualOptions {
  std::string command;  // ""; of all
};

struct Options {
  enum class Command {
    record,
    report,
    top,
    dump,
    heap,
    alloc,
    ps,
    doctor,
    jit,
    view,
    push,
    agent,
    completion,
    manual
  } command = Command::record;
  RecordOptions record;
  ReportOptions report;
  TopOptions top;
  DumpOptions dump;
  HeapOptions heap;
  AllocOptions alloc;
  PsOptions ps;
  DoctorOptions doctor;
  JitOptions jit;
  PageViewOptions view;
  PushOptions push;
  AgentOptions agent;
  CompletionOptions completion;
  ManualOptions manual;
};

// nullopt, with `exit_code` set, if there is nothing more to do (help, version and errors of usage
// have already been printed).
std::optional<Options> parse_options(int argc, char** argv, int& exit_code);

}  // namespace luaspy
