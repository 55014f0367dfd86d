#pragma once
// Who luaspy is to an engine. Never by the command line, which everybody on this machine sees.

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace luaspy {

struct Authorization {
  std::string bearer_file, basic_file;  // a token; USER:PASSWORD. Their first line counts
  std::string tenant;                   // X-Scope-OrgID (Pyroscope, Mimir, Loki)
};

// The headers to send. Without a file, the environment's LUASPY_BEARER or LUASPY_BASIC. An Error: a file cannot be
// read, is empty, or there are two of them.
Result<std::vector<std::pair<std::string, std::string>>> authorization_headers(const Authorization& options);

}  // namespace luaspy
