#pragma once
// A message of OpenTelemetry's profiles signal as bytes and as JSON.

#include <string>

#include "output/otlp_message.h"

namespace luaspy::otlp {

std::string to_protobuf(const Message& message);

// As the specification of OTLP says (OTLP/HTTP, JSON Protobuf Encoding): names in lowerCamelCase, numbers of 64 bits as
// text, ids in hexadecimal.
std::string to_json(const Message& message);

}  // namespace luaspy::otlp
