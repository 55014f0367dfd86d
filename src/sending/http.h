#pragma once
// Requests over HTTP, and what answers them. curl_client.h sends them; tests have clients of their own.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace luaspy {

struct HttpAnswer {
  int status = 0;
  std::string body;                                 // its beginning
  std::optional<std::chrono::seconds> retry_after;  // RFC 9110, Retry-After: from now on
  std::string headers{};                            // their beginning, as they came
};

// The value of the last line "NAME: VALUE"; names are equal whatever their case. "": there is none.
std::string header_in(std::string_view lines, std::string_view name);

// What an engine says with an answer, beyond its status.
struct Verdict {
  enum class Kind { as_status, again, refused } kind = Kind::as_status;
  std::string why{};  // a sentence, or some words; as_status: of what was taken, what was not. "": nothing
};

struct HttpRequest {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  Verdict (*verdict)(const HttpAnswer&) = nullptr;  // nullptr: the status says all
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // POST. An Error: why there is no answer.
  virtual Result<HttpAnswer> post(const HttpRequest& request) = 0;
};

}  // namespace luaspy
