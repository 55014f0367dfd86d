#include "recording/compiler_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "recording/recording.h"

namespace luaspy {
namespace {

Mark mark_of(const JitSeen& seen, const JitEvent& event) {
  constexpr std::size_t longest = 400;  // bytes
  constexpr std::array<Mark::Kind, 4> kinds = {Mark::Kind::abort, Mark::Kind::blacklisted, Mark::Kind::flush,
                                               Mark::Kind::trace};  // by JitEvent::Kind
  Mark mark;
  mark.kind = kinds[static_cast<std::size_t>(event.kind)];
  mark.pid = seen.knowledge->pid;
  mark.file = printable(event.start.file);
  mark.line = event.start.line;
  if (mark.kind == Mark::Kind::flush) return mark;
  if (mark.kind == Mark::Kind::trace) {
    mark.number = event.trace.number;
    const std::string parent = event.trace.parent == 0
                                   ? std::string()
                                   : fmt::format("from trace {} exit {}, ", event.trace.parent, event.trace.exit);
    mark.text = fmt::format("{}{}, {} bytes", parent, link_text(event.trace), event.trace.bytes);
  } else {
    mark.number = event.failed;
    mark.text = printable(abort_text(seen, event.abort), longest);
  }
  return mark;
}

}  // namespace

// A recording needs no lists of functions: what an event is about is read when it is seen.
CompilerMarks::CompilerMarks(ProcessTree& tree) : compilers_(tree, WatchThread::Surveys::none) {
  compilers_.find();
  compilers_.begin();
}

void CompilerMarks::look(Recording& recording) {
  if (!compilers_.find_now_and_then()) return;
  compilers_.see_new([&](const JitSeen& seen, const JitEvent& event) {
    add(recording, seen, event, std::numeric_limits<std::int64_t>::max());
  });
}

void CompilerMarks::finish(Recording& recording, std::int64_t duration_ns) {
  compilers_.stop();
  compilers_.see_last([&](const JitSeen& seen, const JitEvent& event) { add(recording, seen, event, duration_ns); });
}

void CompilerMarks::add(Recording& recording, const JitSeen& seen, const JitEvent& event, std::int64_t until_ns) {
  Mark mark = mark_of(seen, event);
  mark.at_ns = std::max<std::int64_t>(system::to_ns(compilers_.start() - start_) + event.at_ns, 0);
  if (mark.at_ns <= until_ns) recording.add_mark(std::move(mark));
}

std::string CompilerMarks::text() const {
  if (!compilers_.has_luajit()) return "luaspy: no LuaJIT was seen, so there is no compiler to watch (--jit)\n";
  return compilers_.left_some_out() ? "luaspy: there are more LuaJITs than are watched; these are the first (--jit)\n"
                                    : "";
}

}  // namespace luaspy
