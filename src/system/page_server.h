#pragma once
// The smallest possible HTTP server (RFC 9112): one file, for programs of this machine that know its address.

#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace luaspy::system {

std::string host_name();  // of this machine

// What is served.
struct ServedFile {
  FileDescriptor file;  // a regular one, open for reading; what it contains is read anew for each request
  std::string name;     // the end of its address: letters, digits, ".", "-" and "_"
  std::string type;     // "text/html; charset=utf-8"
  std::string origin;   // a web page that may read it (https://fetch.spec.whatwg.org, CORS), or ""
};

class PageServer {
 public:
  // Listens on 127.0.0.1 alone. `port` 0: any that is free.
  static Result<PageServer> open(ServedFile served, int port);

  int port() const { return port_; }
  // "/TOKEN/NAME". The token is random, so that other users of this machine, and other web pages, cannot guess it.
  const std::string& path() const { return path_; }
  // Answers one request after another until a signal asks to end (watch_signals()). Nobody holds it up for more than a
  // few seconds, and no request takes more memory than its head may have.
  void run() const;

 private:
  PageServer() = default;
  void answer(const FileDescriptor& connection) const;
  std::string head_for(const std::string& request, bool& with_file) const;

  ServedFile served_;
  FileDescriptor listens_;
  int port_ = 0;
  std::string path_;
};

}  // namespace luaspy::system
