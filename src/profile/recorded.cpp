#include "profile/recorded.h"

#include <fmt/format.h>

#include "base/text.h"
#include "profile/amount_text.h"
#include "profile/heap_text.h"
#include "profile/mark_text.h"

namespace luaspy {

std::vector<std::pair<std::string, std::string>> recorded(const Profile& profile) {
  const Metadata& about = profile.about;
  std::vector<std::pair<std::string, std::string>> facts = {
      {"command", about.command}, {"executable", about.executable}, {"pid", std::to_string(about.pid)}};
  for (const std::string& lua : about.luas) facts.emplace_back("Lua", lua);
  if (about.kind.empty()) facts.emplace_back("recorded by", "luaspy " + about.luaspy);
  else facts.emplace_back("read from", about.kind);
  if (about.kind.empty() || about.rate > 0) facts.emplace_back("rate", fmt::format("{:g} Hz", about.rate));
  facts.emplace_back("stacks", about.mode);
  facts.emplace_back("duration", fmt::format("{:.3f} s{}", static_cast<double>(about.duration_ns) / 1e9,
                                             about.complete ? "" : ", cut off"));
  facts.emplace_back("samples", std::to_string(profile.samples()));
  if (about.unit != Unit::nanoseconds && about.unit != Unit::samples)
    facts.emplace_back("total", amount_text(profile.weight(), about.unit));
  if (const std::string heap = heap_text(profile.heaps, about.duration_ns); !heap.empty())
    facts.emplace_back("Lua heap", heap);
  if (!profile.marks.empty()) facts.emplace_back("LuaJIT's compiler", marks_text(profile.marks));
  for (std::size_t i = 1; i < loss_count; ++i) {
    const auto loss = static_cast<Loss>(i);
    if (profile.losses(loss) != 0) facts.emplace_back(name(loss), std::to_string(profile.losses(loss)));
  }
  if (profile.idle() != 0) facts.emplace_back("idle", std::to_string(profile.idle()));
  if (profile.waiting() != 0) facts.emplace_back("waiting for a CPU", std::to_string(profile.waiting()));
  if (profile.stops().count() != 0)
    facts.emplace_back("stopped", fmt::format("{} times, {:.1f} µs mostly, {:.3f} s in all", profile.stops().count(),
                                              static_cast<double>(profile.stops().quantile_ns(0.5)) / 1e3,
                                              static_cast<double>(profile.stops().total_ns()) / 1e9));
  return facts;
}

int process_of(const Profile& profile, const ThreadInfo& thread) {
  return thread.pid != 0 ? thread.pid : static_cast<int>(profile.about.pid);
}
const std::string& command_of(const Profile& profile, const ThreadInfo& thread) {
  return thread.process.empty() ? profile.about.command : thread.process;
}
std::string program_in(std::string_view command) {
  command = command.substr(0, command.find(' '));
  if (command.ends_with(':')) command.remove_suffix(1);
  return base_name(std::string(command));
}

}  // namespace luaspy
