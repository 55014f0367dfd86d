#pragma once
// Servers that a test runs.

#include <string>

#include "support/harness.h"

namespace luaspy::live {

// A connection to a unix socket; the server may need a while to listen.
class Connection {
 public:
  Connection(Running& server, const std::string& path);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();
  void send(const std::string& text) const;
  std::string rest() const;  // what the server sends until it closes

 private:
  int socket_;
};

// A command in Redis' protocol: an array of bulk strings.
std::string resp(const Words& words);

// The configuration of nginx for the tests, with another workload in place of host-nginx, written to `folder`; and the
// command that runs nginx with it there. It listens at the socket "socket" of that folder.
Words nginx_with(const std::string& workload, const Folder& folder);

// A server whose children outlive it if it is killed, like nginx's workers: they are ended first.
struct WithChildren {
  const Running& running;
  ~WithChildren();
};

}  // namespace luaspy::live
