#include "luastate/twins.h"

#include <map>
#include <utility>
#include <vector>

namespace luaspy {

void Twins::read_children(const LuaFunctions& lua, const Memory& memory, const Prototype& parent, std::uint64_t mark,
                          int definition) {
  constexpr std::size_t most_read = 512, most_twins = 1 << 14;
  if (parent.children.size() < 2 || twins_.size() >= most_twins) return;
  std::vector<std::int32_t> lines;
  std::unordered_map<std::int32_t, int> on_line;
  for (const Address child : parent.children) {
    lines.push_back(lua.line_defined(memory, child).value_or(-1));
    ++on_line[lines.back()];
  }
  std::vector<std::pair<Address, Twin>> found;
  std::map<std::pair<std::int32_t, std::uint32_t>, std::uint32_t> same;  // by line and identity
  std::unordered_map<std::int32_t, int> before;                          // by line
  std::size_t read = 0;
  for (std::size_t i = 0; i < lines.size() && read < most_read; ++i) {
    if (lines[i] < 0 || on_line[lines[i]] < 2) continue;
    ++read;
    const int number = before[lines[i]]++;
    const std::optional<Prototype> child = lua.prototype(memory, parent.children[i]);
    if (!child) continue;
    const std::uint32_t identity = child->identity();
    found.push_back(
        {child->address, {identity, same[{lines[i], identity}]++, {definition, number, on_line[lines[i]]}}});
  }
  if (!found.empty() && lua.mark(memory, parent.address) != mark) return;
  for (const auto& [proto, twin] : found) twins_[proto] = twin;
}

const Twins::Twin* Twins::find(Address proto, std::uint32_t identity) const {
  const auto found = twins_.find(proto);
  return found != twins_.end() && found->second.identity == identity ? &found->second : nullptr;
}

}  // namespace luaspy
