#pragma once
// `luaspy view`: a page or a picture in the browser, here or, if there is none here, by way of loopback.

#include <string>

#include "base/result.h"

namespace luaspy {

struct PageViewOptions {
  std::string file;
  bool serve = false;  // even if there is a browser here
  int port = 0;        // 0: any that is free
};

// Opens the file with xdg-open where there is a display. Otherwise serves it on 127.0.0.1 until a signal asks to end,
// and prints the address. Returns the exit status.
Result<int> view(const PageViewOptions& options);

}  // namespace luaspy
