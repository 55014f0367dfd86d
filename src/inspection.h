#pragma once
// What dump shows of a process: one look at all its threads. Plain data, of which text and JSON are made (dump_text.h, dump_json.h).

#include <map>
#include <string>
#include <vector>

#include "session.h"

namespace luaspy {

struct ThreadLook {
  int tid = 0;
  std::string name;
  Sample sample;
  Thread::Times times;            // since it began
};

struct ProcessLook {
  int pid = 0;
  std::string command;
  std::vector<LuaImage> images;
  std::vector<std::string> rows;  // Luas whose states were seen
  double time = 0;                // s since the first look
  std::vector<ThreadLook> threads;
};

struct InspectOptions {
};

class Inspector {
 public:
  // `session` has to outlive it, and to sample sleeping threads too.
  Inspector(Session& session, const InspectOptions& options) : session_(session), options_(options) {}

  ProcessLook look();

 private:
  std::optional<Sample> look_at(Thread& thread);

  Session& session_;
  InspectOptions options_;
  std::map<int, Sample> last_;   // by tid: of a thread that sleeps on, its stack is not told again
  std::optional<system::Clock::time_point> first_;
};

}  // namespace luaspy
