#pragma once
// HTTP and TLS by libcurl (libcurl 7.62 or later; tested with Debian's 7.88). It is loaded when it is needed: all other
// commands start without it, and luaspy can be installed without it.

#include <memory>
#include <string>

#include "base/result.h"
#include "sending/http.h"

namespace luaspy {

struct CurlOptions {
  std::string ca_file;        // certificates (PEM) to trust instead of the system's; "": those
  long connect_seconds = 10;  // until there is a connection, and until
  long all_seconds = 60;      // the answer is complete
};

// Proxies as the environment says (http_proxy, https_proxy, no_proxy: curl(1)). Redirections are not followed. An
// Error: there is no libcurl.
Result<std::unique_ptr<HttpClient>> open_curl(const CurlOptions& options);

}  // namespace luaspy
