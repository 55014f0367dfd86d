#pragma once
// How others speak with a running agent: over a Unix socket, one request a connection. A request is a line, "status" or
// "snapshot PID"; its answer begins with a line, "ok", or "error" and the Cause's number, and the rest is text.

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "system/request_server.h"

namespace luaspy {

// Where an agent listens if nobody says it: $RUNTIME_DIRECTORY/agent.sock (systemd.exec(5)),
// $XDG_RUNTIME_DIR/luaspy-agent.sock, or, as root, /run/luaspy/agent.sock. "": nowhere.
std::string default_socket();

// Asks the agent that listens at `socket`; "": at one of the default places.
Result<std::string> ask_agent(const std::string& socket, const std::string& request);

// Where to listen for HTTP: "9100" (on 127.0.0.1), "0.0.0.0:9100", "[::1]:9100"; port 0: any that is free.
struct ListenAddress {
  std::string host;
  int port = 0;
};
Result<ListenAddress> parse_address(const std::string& text);

// The words of an answer.
std::string answer_of(const Result<std::string>& result);

// Answers in a thread of its own, as long as it lives.
class Control {
 public:
  explicit Control(std::vector<system::RequestServer::Door> doors);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

 private:
  system::RequestServer server_;
  std::thread thread_;
};

}  // namespace luaspy
