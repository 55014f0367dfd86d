#pragma once
// Answers short requests on sockets: one request and one answer a connection. No client can hold up the others: all of
// them are polled together, and each has little room and little time.

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "system/calls.h"

namespace luaspy::system {

// A Unix socket that only its user may connect to (mode 0600). One at `path` that nobody listens on any more is
// replaced; an Error if somebody does, or if anything else is there.
Result<FileDescriptor> listen_at(const std::string& path);
// TCP. `address`: IPv4 or IPv6, in numbers. `port` 0: any that is free.
Result<FileDescriptor> listen_on(const std::string& address, int port);
// The port that was chosen.
int port_of(const FileDescriptor& listens);

// Sends `request` to the one who listens at `path`, who must be this user or root (anybody, if this is root), and
// returns all of the answer. An Error: nobody listens there, or there is no answer within `patience`.
Result<std::string> ask(const std::string& path, const std::string& request, Clock::duration patience);

class RequestServer {
 public:
  // Where clients come from, and what they get.
  struct Door {
    FileDescriptor listens;
    std::string_view end;                                   // of a request: what comes then is not read
    std::function<std::string(const std::string&)> answer;  // of a whole request, up to its end; called by run()
    bool same_user = false;  // only this user and root (Linux, SO_PEERCRED): others are turned away without a word
  };
  static constexpr std::size_t most_request = 8192, most_connections = 8;  // bytes; of each door
  static constexpr Clock::duration most_time = std::chrono::seconds(2);    // to send the request; to read the answer

  explicit RequestServer(std::vector<Door> doors);
  // Until stop(). A request that is too long or comes too slowly has no answer.
  void run();
  // May be called by any thread.
  void stop();

 private:
  struct Connection {
    FileDescriptor socket;
    const Door* door = nullptr;
    std::string request, answer;
    bool has_answer = false;
    Clock::time_point ends_at;
  };
  bool goes_on(Connection& connection);
  void accept(const Door& door);
  bool has_room(const Door& door) const;
  std::int64_t wait_ns() const;

  std::vector<Door> doors_;
  std::list<Connection> connections_;
  FileDescriptor wakes_;  // eventfd(2)
};

}  // namespace luaspy::system
