#include "sending/authorization.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "base/base64.h"
#include "base/text.h"

namespace luaspy {
namespace {

// What would end a header's line is not a part of a secret.
std::string line_of(std::string text) {
  text.erase(std::min(text.find_first_of("\r\n"), text.size()));
  return text;
}

Result<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line))
    return Error{Cause::usage, fmt::format("Cannot read {}, or it is empty.", printable(path))};
  return line_of(std::move(line));
}

// Of the file, or else of the environment; "": neither.
Result<std::string> secret(const std::string& file, const char* variable) {
  if (!file.empty()) return first_line(file);
  const char* const value = std::getenv(variable);
  return value != nullptr ? line_of(value) : std::string();
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> authorization_headers(const Authorization& options) {
  const Result<std::string> bearer = secret(options.bearer_file, "LUASPY_BEARER");
  if (!bearer) return bearer.error();
  const Result<std::string> basic = secret(options.basic_file, "LUASPY_BASIC");
  if (!basic) return basic.error();
  if (!bearer->empty() && !basic->empty())
    return Error{Cause::usage, "There is a bearer token and a password: one of them."};
  std::vector<std::pair<std::string, std::string>> headers;
  if (!bearer->empty()) headers.emplace_back("Authorization", "Bearer " + *bearer);
  if (!basic->empty()) headers.emplace_back("Authorization", "Basic " + base64(*basic));
  if (!options.tenant.empty()) headers.emplace_back("X-Scope-OrgID", line_of(options.tenant));
  return headers;
}

}  // namespace luaspy
