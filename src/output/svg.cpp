#include "output/svg.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "base/display_text.h"
#include "base/doubts.h"
#include "profile/amount_text.h"

namespace luaspy {
namespace {

// Pixels.
constexpr double page_width = 1200, margin = 10, least_width = 0.5;
constexpr int row_height = 18, head_line = 18, first_line = 26;
constexpr double letter_width = 7.25;  // of the font below
constexpr std::size_t most_rows = 400;
constexpr std::string_view fonts = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,'Liberation Mono',monospace";

// Text between tags and in attributes. XML has no place for control characters (displayable() has
// replaced them) and for U+FFFE and U+FFFF (XML 1.0, 2.2).
std::string escaped(std::string_view text) {
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view three = text.substr(i, 3);
    if (three == "\xef\xbf\xbe" || three == "\xef\xbf\xbf") safe += "\xef\xbf\xbd", i += 2;
    else if (text[i] == '<') safe += "&lt;";
    else if (text[i] == '>') safe += "&gt;";
    else if (text[i] == '&') safe += "&amp;";
    else if (text[i] == '"') safe += "&quot;";
    else safe += text[i];
  }
  return safe;
}

// The same colours as in the page (flamegraph/colours.js).
std::string_view colour_of(const Frame& frame) {
  if (is_state_marker(frame, VmState::collecting)) return "#e36a2e";
  switch (frame.kind) {
    case Frame::Kind::lua:
      return "#f2b632";
    case Frame::Kind::c:
      return "#6cbdf0";
    case Frame::Kind::native:
      return "#a9b4c0";
    case Frame::Kind::kernel:
      return "#d28bb4";
    case Frame::Kind::marker:
      break;
  }
  return "#e9e3d0";
}

// Equal stacks are one box. A node comes after its outer one; 0 is the empty stack.
struct Tree {
  struct Node {
    std::uint32_t outer = 0, frame = 0;  // frame: a number of `texts`
    std::int64_t own = 0, total = 0;
    std::size_t count = 1;             // of nodes: itself and those within it
    std::vector<std::uint32_t> inner;  // the most expensive first
  };
  std::vector<Node> nodes{1};
  std::vector<std::string> texts;  // displayable
  std::vector<std::string_view> colours;
};

class TreeBuilder {
 public:
  TreeBuilder(const Profile& profile, const WriteOptions& options)
      : profile_(profile), functions_(functions_of(profile, options.lines)), threads_(options.threads) {
    for (std::size_t i = 0; i < functions_.functions.size(); ++i) add(functions_.functions[i], functions_.texts[i]);
    if (threads_) {
      for (const ThreadInfo& thread : profile.threads())
        add(marker({}), fmt::format("thread {} ({})", thread.name, thread.tid));
    }
  }
  Tree build() {
    const By by = usual_by(profile_.about.unit);
    for (const auto& [of, amount] : profile_.counts()) {
      std::uint32_t node = 0;
      if (threads_) node = inside(node, static_cast<std::uint32_t>(functions_.functions.size()) + of.thread);
      for (const FrameId frame : profile_.stack(profile_.situations()[of.situation].stack))
        node = inside(node, functions_.of_frame[frame]);
      tree_.nodes[node].own += cost(amount, by);
    }
    for (std::size_t i = tree_.nodes.size(); i-- > 0;) {
      Tree::Node& node = tree_.nodes[i];
      node.total += node.own;
      if (i == 0) break;
      tree_.nodes[node.outer].total += node.total;
      tree_.nodes[node.outer].count += node.count;
      tree_.nodes[node.outer].inner.push_back(static_cast<std::uint32_t>(i));
    }
    for (Tree::Node& node : tree_.nodes) {
      std::ranges::sort(node.inner, [&](std::uint32_t a, std::uint32_t b) {
        const Tree::Node &one = tree_.nodes[a], &other = tree_.nodes[b];
        return one.total != other.total ? one.total > other.total : tree_.texts[one.frame] < tree_.texts[other.frame];
      });
    }
    return std::move(tree_);
  }

 private:
  void add(const Frame& frame, const std::string& text) {
    constexpr std::size_t longest = 1000;  // bytes
    tree_.texts.push_back(displayable(text, Charset::utf8, longest));
    tree_.colours.push_back(colour_of(frame));
  }
  std::uint32_t inside(std::uint32_t outer, std::uint32_t frame) {
    const auto [place, added] = index_.emplace(std::uint64_t{outer} << 32 | frame,
                                               static_cast<std::uint32_t>(tree_.nodes.size()));
    if (added) tree_.nodes.push_back({outer, frame, 0, 0, 1, {}});
    return place->second;
  }

  const Profile& profile_;
  FunctionTable functions_;
  bool threads_;
  Tree tree_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
};

struct Box {
  std::uint32_t node = 0;
  std::size_t row = 0;
  double x = 0, width = 0;  // pixels
};

struct Boxes {
  std::vector<Box> all;
  std::size_t rows = 0, left_out = 0;
};

Boxes boxes_of(const Tree& tree) {
  Boxes boxes;
  const std::int64_t whole = tree.nodes[0].total;
  if (whole <= 0) return boxes;
  const double scale = (page_width - 2 * margin) / static_cast<double>(whole);
  std::vector<Box> open = {{0, 0, margin, page_width - 2 * margin}};
  while (!open.empty()) {
    const Box box = open.back();
    open.pop_back();
    boxes.all.push_back(box);
    boxes.rows = std::max(boxes.rows, box.row + 1);
    double x = box.x;
    for (const std::uint32_t node : tree.nodes[box.node].inner) {
      const double width = static_cast<double>(tree.nodes[node].total) * scale;
      if (width < least_width || box.row + 1 == most_rows) boxes.left_out += tree.nodes[node].count;
      else open.push_back({node, box.row + 1, x, width});
      x += width;
    }
  }
  return boxes;
}

// The lines above the boxes; the first is the title.
std::vector<std::string> head_lines(const Profile& profile, const Boxes& boxes) {
  const Metadata& about = profile.about;
  std::vector<std::string> lines = {displayable(about.command, Charset::utf8)};
  if (lines.front().empty()) lines.front() = "luaspy";
  lines.push_back(fmt::format(
      "{:.1f} s, {}{} sample{} of {} thread{}{}{}", static_cast<double>(about.duration_ns) / 1e9,
      about.unit == Unit::nanoseconds ? "" : amount_text(profile.weight(), about.unit) + " in ", profile.samples(),
      profile.samples() == 1 ? "" : "s", profile.threads().size(), profile.threads().size() == 1 ? "" : "s",
      about.luas.empty() ? "" : "; ", displayable(fmt::format("{}", fmt::join(about.luas, ", ")), Charset::utf8)));
  if (profile.total_losses() != 0) lines.push_back(fmt::format("lost: {}", losses_text(profile.losses())));
  for (const std::string& doubt : doubts(profile.doubt_facts()))
    lines.push_back(displayable("doubtful: " + doubt, Charset::utf8));
  if (boxes.left_out != 0)
    lines.push_back(fmt::format("{} box{} too small or too deep to be drawn", boxes.left_out,
                                boxes.left_out == 1 ? " is" : "es are"));
  return lines;
}

class Picture {
 public:
  Picture(const Profile& profile, const Tree& tree, std::ostream& out)
      : tree_(tree), by_(usual_by(profile.about.unit)), unit_(profile.about.unit), out_(out) {}

  void write(const std::vector<std::string>& head, const Boxes& boxes) {
    const int top = first_line + head_line * static_cast<int>(head.size()) - 6;
    const int height = top + row_height * static_cast<int>(boxes.rows) + static_cast<int>(margin);
    out_ << fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"{2}\" font-size=\"12\" fill=\"#101418\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
        page_width, height, fonts);
    constexpr int wide = static_cast<int>((page_width - 2 * margin) / letter_width);
    for (std::size_t i = 0; i < head.size(); ++i) {
      const int letters = i == 0 ? wide * 12 / 16 : wide;
      out_ << fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", margin, first_line + head_line * static_cast<int>(i),
                          i == 0 ? " font-size=\"16\" font-weight=\"bold\"" : "",
                          escaped(fit(head[i], letters, Cut::right, Charset::utf8)));
    }
    for (const Box& box : boxes.all) write(box, top);
    out_ << "</svg>\n";
  }

 private:
  void write(const Box& box, int top) {
    const Tree::Node& node = tree_.nodes[box.node];
    const std::string text = box.node == 0 ? "all" : tree_.texts[node.frame];
    const std::int64_t whole = tree_.nodes[0].total;
    const std::string_view word = by_ != By::samples ? "" : node.total == 1 ? " sample" : " samples";
    const int y = top + row_height * static_cast<int>(box.row);
    out_ << fmt::format(
        "<g><title>{}: {:.1f} %, {}{}; itself {:.1f} %</title><rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" "
        "height=\"{}\" rx=\"2\" fill=\"{}\"/>",
        escaped(text), percent(node.total, whole), cost_text(node.total, by_, unit_), word, percent(node.own, whole),
        box.x, y, std::max(box.width - 0.5, 0.3), row_height - 1,
        box.node == 0 ? colour_of(marker({})) : tree_.colours[node.frame]);
    const int letters = static_cast<int>((box.width - 6) / letter_width);
    constexpr int least_letters = 3;
    if (letters >= least_letters)
      out_ << fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>", box.x + 3, y + row_height - 5,
                          escaped(fit(text, letters, Cut::right, Charset::utf8)));
    out_ << "</g>\n";
  }

  const Tree& tree_;
  By by_;
  Unit unit_;
  std::ostream& out_;
};

}  // namespace

void write_svg(const Profile& profile, const WriteOptions& options, std::ostream& out) {
  const Tree tree = TreeBuilder(profile, options).build();
  const Boxes boxes = boxes_of(tree);
  Picture(profile, tree, out).write(head_lines(profile, boxes), boxes);
}

}  // namespace luaspy
