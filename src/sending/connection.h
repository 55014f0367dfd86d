#pragma once
// What a command needs to send to an engine.

#include <memory>

#include "base/result.h"
#include "sending/engine.h"
#include "sending/engine_options.h"
#include "sending/http.h"

namespace luaspy {

struct Connection {
  Destination to;
  OtlpAttributes attributes;
  std::unique_ptr<HttpClient> client;
};

// Connects to nobody yet. An Error: an option is wrong, or there is no libcurl.
Result<Connection> prepare_connection(const EngineOptions& options);

}  // namespace luaspy
