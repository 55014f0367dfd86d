#pragma once
// How much memory luaspy may still take.

#include <cstdint>
#include <optional>

namespace luaspy::system {

// Bytes, as far as the kernel tells. The least of: what is available on the machine (proc(5),
// MemAvailable); what the limits of luaspy's control groups leave, in both versions of these
// (cgroups(7)); what its own limits leave (setrlimit(2): RLIMIT_AS, RLIMIT_DATA). nullopt: it does not
// tell.
std::optional<std::uint64_t> available_memory();

}  // namespace luaspy::system
