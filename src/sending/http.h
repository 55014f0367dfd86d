#pragma once
// Requests over HTTP, and what answers them. curl_client.h sends them; tests have clients of their own.

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace luaspy {

struct HttpAnswer {
  int status = 0;
  std::string body;                                 // its beginning
  std::optional<std::chrono::seconds> retry_after;  // RFC 9110, Retry-After: from now on
};

struct HttpRequest {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // What an answer of success says that was not taken: a sentence, or "". nullptr: it says nothing.
  std::string (*not_taken)(const HttpAnswer&) = nullptr;
  // Whether the engine may take it later, although the status of its answer is one of refusal. nullptr: never.
  bool (*taken_later)(const HttpAnswer&) = nullptr;
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // POST. An Error: why there is no answer.
  virtual Result<HttpAnswer> post(const HttpRequest& request) = 0;
};

}  // namespace luaspy
