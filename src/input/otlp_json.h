#pragma once
// OpenTelemetry's profiles in JSON (OTLP/HTTP, JSON Protobuf Encoding), as the bytes of the same message, of which
// there is one reader (otlp_reader.h).

#include <string>

#include "base/json.h"

namespace luaspy {

bool is_otlp(const Json& message);

// As far as the reader uses it; what is not as it should be is left out.
std::string otlp_protobuf(const Json& message);

}  // namespace luaspy
