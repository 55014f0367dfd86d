#pragma once
// What a compiler has decided, in words. Those of a reason are LuaJIT's own.

#include <functional>
#include <string>

#include "jitwatch/jit_knowledge.h"

namespace luaspy {

class Names;

// What is seen of one Lua, and the names of the C functions in it.
struct JitSeen {
  const JitKnowledge* knowledge = nullptr;
  const JitReader* reader = nullptr;
  std::function<std::string(Address function)> function_name;
};
// What a C function is called in package.loaded; "": it is not there, or gone. `names`: of the same target.
std::string c_function_name(Names& names, const JitKnowledge& knowledge, Address closure);

// LuaJIT keeps 64 places: when it needs another one, it forgets the oldest, and how often that was tried.
bool forgets_attempts(const JitKnowledge& knowledge);
// "11 attempts".
std::string attempts_text(unsigned failed, bool at_least);

std::string place_text(const CodePlace& place);
// Where a trace may begin; nullptr: its function is not known.
const JitStart* start_at(const JitKnowledge& knowledge, Address start);
// "NYI: bytecode FNEW at a.lua:17". `start`: where it began, whose code may say more; or nullptr.
std::string abort_text(const JitSeen& seen, const JitAbort& abort, const JitStart* start = nullptr);
std::string advice_text(const JitSeen& seen, const JitAbort& abort, const JitStart* start);
// "loop", "root 3", "stitch", …
std::string link_text(const JitTrace& trace);

}  // namespace luaspy
