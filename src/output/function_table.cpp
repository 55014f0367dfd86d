#include "output/function_table.h"

#include <unordered_map>

namespace luaspy {

FunctionTable::FunctionTable(const Profile& profile, bool lines) {
  std::unordered_map<std::string, std::uint32_t> known;
  for (const Frame& frame : profile.frames()) {
    const std::string text = describe(frame, lines);
    const auto [place, added] = known.emplace(text, static_cast<std::uint32_t>(functions.size()));
    if (added) functions.push_back({text, &frame});
    of_frame.push_back(place->second);
  }
}

}  // namespace luaspy
