#pragma once
// The options of the commands that send profiles to an engine.

#include "agent/agent.h"
#include "push/push.h"

namespace CLI {
class App;
}

namespace luaspy {

void add_push(CLI::App& app, PushOptions& options);
void add_agent(CLI::App& app, AgentOptions& options);

}  // namespace luaspy
