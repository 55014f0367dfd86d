#include "sampling/precedence.h"

#include <fmt/format.h>

namespace luaspy {
namespace {

// How luaspy could have stepped above.
std::string step_remedy(const Precedence& precedence) {
  const int needed = precedence.highest.priority_above();
  if (needed == 0) return "; nothing precedes that";
  if (precedence.may_move)
    return "; it may use several CPUs, and would have to change its own at each look if luaspy stepped above it";
  return fmt::format("; root may step above it, and others after `ulimit -r {}`", needed);
}

}  // namespace

std::string precedence_text(const Precedence& precedence) {
  std::string text;
  if (precedence.stepped_to != 0)
    text = fmt::format(
        "the target has threads of a real-time policy; luaspy stepped above them for its looks, to priority "
        "{}, {:.1f} ms in total",
        precedence.stepped_to, static_cast<double>(precedence.above_ns) / 1e6);
  const auto add = [&](const std::string& sentence) { text += (text.empty() ? "" : "; ") + sentence; };
  if (precedence.shares_cpu)
    add(fmt::format(
        "the target has a thread of {}, and luaspy may use no CPU but that thread's, so it can look only when "
        "the thread rests{}; `taskset` gives luaspy another CPU",
        urgency_text(precedence.highest), step_remedy(precedence)));
  else if (precedence.from_elsewhere)
    add(fmt::format("the target has a thread of {}, which luaspy looked at from another CPU{}",
                    urgency_text(precedence.highest), step_remedy(precedence)));
  if (precedence.left_cpu)
    add("real-time threads took all of a CPU, so luaspy looked at what ran there from another one");
  return text;
}

}  // namespace luaspy
