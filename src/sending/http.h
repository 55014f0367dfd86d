#pragma once
// Requests over HTTP, and what answers them. curl_client.h sends them; tests have clients of their own.

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace luaspy {

struct HttpRequest {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

struct HttpAnswer {
  int status = 0;
  std::string body;                                 // its beginning
  std::optional<std::chrono::seconds> retry_after;  // RFC 9110, Retry-After: from now on
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // POST. An Error: why there is no answer.
  virtual Result<HttpAnswer> post(const HttpRequest& request) = 0;
};

}  // namespace luaspy
