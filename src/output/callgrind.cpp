#include "output/callgrind.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "base/text.h"
#include "base/text_buffer.h"
#include "profile/amount_text.h"
#include "profile/recorded.h"

namespace luaspy {
namespace {

using Amount = Profile::Amount;

// The format has no escapes: a name must not contain line ends.
std::string line_text(std::string_view text) { return printable(text, 1 << 16); }

// Writes "(1) name" at the first use of a name, "(1)" from then on.
class Names {
 public:
  std::string operator()(const std::string& name) {
    const auto [place, added] = known_.emplace(name, known_.size() + 1);
    return added ? fmt::format("({}) {}", place->second, name) : fmt::format("({})", place->second);
  }

 private:
  std::unordered_map<std::string, std::size_t> known_;
};

// A function, or a thread, which calls its outermost functions.
struct Node {
  std::string object, file, name;
  int line = 0;               // where it is defined
  std::map<int, Amount> own;  // by line
  struct Call {
    std::size_t callee = 0;
    int line = 0;  // of the caller
    auto operator<=>(const Call&) const = default;
  };
  std::map<Call, Amount> calls;
};

std::vector<Node> make_nodes(const Profile& profile, const FunctionTable& table) {
  constexpr std::string_view unknown = "???";  // Callgrind's own text
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < table.functions.size(); ++i) {
    const Frame& function = table.functions[i];
    const bool is_lua = function.kind == Frame::Kind::lua;
    const std::string file = function.file.empty() ? std::string(unknown) : line_text(function.file);
    nodes.push_back({is_lua ? "Lua" : file,
                     is_lua ? file : std::string(unknown),
                     line_text(table.texts[i]),
                     function.line_defined,
                     {},
                     {}});
  }
  for (const ThreadInfo& thread : profile.threads())
    nodes.push_back({"threads",
                     std::string(unknown),
                     line_text(fmt::format("thread {} ({})", thread.name, thread.tid)),
                     0,
                     {},
                     {}});
  return nodes;
}

void count(const Profile& profile, const FunctionTable& table, std::vector<Node>& nodes) {
  std::vector<std::size_t> last_seen(nodes.size());  // the number of the stack that it was seen on
  std::size_t number = 0;
  for (const auto& [of, amount] : profile.counts()) {
    ++number;
    std::size_t caller = table.functions.size() + of.thread;
    int line = 0;
    for (const FrameId id : profile.stack(profile.situations()[of.situation].stack)) {
      const std::size_t callee = table.of_frame[id];
      if (last_seen[callee] != number) nodes[caller].calls[{callee, line}] += amount;
      last_seen[callee] = number;
      caller = callee, line = line_of(profile.frames()[id]);
    }
    nodes[caller].own[line] += amount;
  }
}

}  // namespace

void write_callgrind(const Profile& profile, const WriteOptions&, std::ostream& out) {
  const FunctionTable table = functions_of(profile, false);
  std::vector<Node> nodes = make_nodes(profile, table);
  count(profile, table, nodes);
  TextBuffer text(out);
  text.put("# callgrind format\nversion: 1\ncreator: luaspy {}\npid: {}\ncmd: {}\n", line_text(profile.about.luaspy),
           profile.about.pid, line_text(profile.about.command));
  for (const auto& [name, value] : recorded(profile)) text.put("desc: {}: {}\n", name, line_text(value));
  const std::string_view weight = cost_heading(By::weight, profile.about.unit);
  text.put("positions: line\nevent: Samples : samples\nevent: {} : {}\nevents: Samples {}\nsummary: {} {}\n", weight,
           profile.about.unit == Unit::nanoseconds ? "time in ns" : name(profile.about.unit), weight, profile.samples(),
           profile.weight());
  Names objects, files, functions;
  for (const Node& node : nodes) {
    text.put("\nob={}\nfl={}\nfn={}\n", objects(node.object), files(node.file), functions(node.name));
    for (const auto& [line, amount] : node.own) text.put("{} {} {}\n", line, amount.samples, amount.weight);
    for (const auto& [call, amount] : node.calls) {
      const Node& callee = nodes[call.callee];
      // The number of calls is not known, but the format requires one: the number of samples is as
      // good as any.
      text.put("cob={}\ncfi={}\ncfn={}\ncalls={} {}\n", objects(callee.object), files(callee.file),
               functions(callee.name), amount.samples, callee.line);
      text.put("{} {} {}\n", call.line, amount.samples, amount.weight);
    }
  }
}

}  // namespace luaspy
