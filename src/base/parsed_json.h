#pragma once
// Reads JSON that is not trusted. Only its .cpp includes nlohmann's header, which takes seconds to compile.

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include "base/json.h"

namespace luaspy {

// Whether a value is kept that is an element or a member of the outermost object's `member`.
using KeepJson = std::function<bool(std::string_view member, const Json& value)>;

// What is inside more than `deepest` arrays and objects is left out, and so is what is not kept: all values could take
// too much memory. nullopt: it is no JSON (RFC 8259).
std::optional<Json> parsed_json(std::string_view text, std::size_t deepest, const KeepJson& keep);

}  // namespace luaspy
