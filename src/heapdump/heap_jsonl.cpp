#include "heapdump/heap_jsonl.h"

#include <fmt/format.h>

#include <array>

#include "base/json_text.h"
#include "base/text_buffer.h"
#include "heap/object_names.h"

namespace luaspy {
namespace {

constexpr double least_with_path = 0.01;  // of all live bytes

std::string_view name(Link link) {
  constexpr std::array<std::string_view, 12> names = {"entry",   "key",        "metatable", "environment",
                                                      "upvalue", "value",      "code",      "constant",
                                                      "nested",  "user value", "slot",      "trace"};
  static_assert(static_cast<std::size_t>(Link::trace) + 1 == names.size());
  return names[static_cast<std::size_t>(link)];
}

class Lines {
 public:
  Lines(const HeapAnalysis& analysis, std::ostream& out) : analysis_(analysis), names_(analysis), out_(out) {}

  void write_root() {
    const Total live = analysis_.all_live(), dead = analysis_.all_dead();
    out_.put(R"({{"type":"root","lua":{},"global_state":"{:#x}","counter":{},"live":{},"live_bytes":{},"dead":{},)"
             R"("dead_bytes":{},"other_bytes":{},"complete":{},"references":[)",
             json_text(analysis_.lua().name()), analysis_.global_state(), analysis_.collector().bytes, live.count,
             live.bytes, dead.count, dead.bytes, analysis_.other_bytes(), analysis_.graph().is_complete());
    separator_ = {};
    for (const Root& root : analysis_.graph().roots()) {
      if (analysis_.graph().find(root.to)) reference(root.to, "root", names_.name_of(root));
    }
    out_ << "]}\n";
  }

  void write(Node node) {
    const HeapObject object = analysis_.graph().object(node);
    out_.put(R"({{"address":"{:#x}","type":"{}")", object.address, luaspy::name(object.type));
    if (analysis_.is_live(node)) write_live(node);
    else out_ << R"(,"dead":true)";
    out_.put(R"(,"size":{})", object.size);
    if (object.type == ObjectType::string) out_.put(R"(,"text":{})", json_text(names_.text(object)));
    out_ << R"(,"references":[)";
    separator_ = {};
    const auto visit = [&](const Reference& its) {
      if (analysis_.graph().find(its.to))
        reference(its.to, name(its.link), names_.name_of(object, its), its.from == object.address ? 0 : its.from);
    };
    analysis_.reader().visit_references(object, visit);
    out_ << "]";
    separator_ = R"(,"weak":[)";
    analysis_.reader().visit_weak_references(object, visit);
    out_ << (separator_ == "," ? "]}\n" : "}\n");
  }

 private:
  void write_live(Node node) {
    const std::uint64_t retained = analysis_.retained(node);
    out_.put(R"(,"class":{},"retained":{},"dominator":)", json_text(analysis_.classes()[analysis_.class_of(node)].name),
             retained);
    const Node dominator = analysis_.dominator(node);
    if (dominator == root_node) out_ << "\"root\"";
    else out_.put("\"{:#x}\"", analysis_.graph().object(dominator).address);
    if (static_cast<double>(retained) >= least_with_path * static_cast<double>(analysis_.all_live().bytes))
      out_.put(R"(,"path":{})", json_text(names_.path(node)));
  }

  void reference(Address to, std::string_view link, const std::string& name, Address while_alive = 0) {
    out_.put(R"({}{{"to":"{:#x}","link":"{}","name":{})", separator_, to, link, json_text(name));
    separator_ = ",";
    if (while_alive != 0) out_.put(R"(,"while":"{:#x}")", while_alive);
    out_ << "}";
  }

  const HeapAnalysis& analysis_;
  ObjectNames names_;
  TextBuffer out_;
  std::string_view separator_;
};

}  // namespace

void write_heap_jsonl(std::span<const HeapAnalysis* const> analyses, const std::function<void(double part)>& told,
                      std::ostream& out) {
  constexpr Node between = 1 << 14;
  for (std::size_t i = 0; i < analyses.size(); ++i) {
    const HeapAnalysis& analysis = *analyses[i];
    Lines lines(analysis, out);
    lines.write_root();
    const std::size_t nodes = analysis.graph().nodes();
    for (Node node = 1; node < nodes; ++node) {
      if (told && node % between == 0)
        told((static_cast<double>(i) + static_cast<double>(node) / static_cast<double>(nodes)) /
             static_cast<double>(analyses.size()));
      lines.write(node);
    }
  }
}

}  // namespace luaspy
