#include "output/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/display_text.h"
#include "base/doubts.h"
#include "base/text.h"
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

// By change_of(), from -3; the same colours as in the page.
std::string_view colour_of(int change) {
  constexpr std::array<std::string_view, 7> colours = {"#3f8fd2", "#7db8e8", "#bcdcf5", "#d9dce0",
                                                       "#fbd9a8", "#f2ac4e", "#e07b1a"};
  const int from_first = change + 3;
  return colours[static_cast<std::size_t>(from_first)];
}

// Equal stacks are one box. A node comes after its outer one; 0 is the empty stack.
struct Tree {
  struct Node {
    std::uint32_t outer = 0, frame = 0;  // frame: a number of `texts`
    std::int64_t own = 0, total = 0;
    BothAmounts both;                  // of a comparison: the total on both sides
    std::size_t count = 1;             // of nodes: itself and those within it
    std::vector<std::uint32_t> inner;  // the most expensive first
  };
  std::vector<Node> nodes{1};
  std::vector<std::string> texts;  // displayable
  std::vector<std::string_view> colours;
};

// Adds the totals, and puts the boxes of each in order.
void complete(Tree& tree) {
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {
    Tree::Node& node = tree.nodes[i];
    node.total += node.own;
    if (i == 0) break;
    Tree::Node& outer = tree.nodes[node.outer];
    outer.total += node.total;
    outer.count += node.count;
    outer.both.before += node.both.before, outer.both.after += node.both.after;
    outer.both.samples_before += node.both.samples_before, outer.both.samples_after += node.both.samples_after;
    outer.inner.push_back(static_cast<std::uint32_t>(i));
  }
  for (Tree::Node& node : tree.nodes) {
    std::ranges::sort(node.inner, [&](std::uint32_t a, std::uint32_t b) {
      const Tree::Node &one = tree.nodes[a], &other = tree.nodes[b];
      return one.total != other.total ? one.total > other.total : tree.texts[one.frame] < tree.texts[other.frame];
    });
  }
}

class TreeBuilder {
 public:
  explicit TreeBuilder(const WriteOptions& options) : options_(options) {}

  // `see` is called for each stack with its node and what was counted.
  template <typename See>
  void add(const Profile& profile, const See& see) {
    const FunctionTable functions = functions_of(profile, options_.lines);
    std::vector<std::uint32_t> frames, threads;
    for (std::size_t i = 0; i < functions.functions.size(); ++i)
      frames.push_back(number_of(functions.functions[i], functions.texts[i]));
    for (const ThreadInfo& thread : profile.threads()) {
      if (options_.threads)
        threads.push_back(number_of(marker({}), fmt::format("thread {} ({})", thread.name, thread.tid)));
    }
    for (const auto& [of, amount] : profile.counts()) {
      std::uint32_t node = 0;
      if (options_.threads) node = inside(node, threads[of.thread]);
      for (const FrameId frame : profile.stack(profile.situations()[of.situation].stack))
        node = inside(node, frames[functions.of_frame[frame]]);
      see(tree_.nodes[node], amount);
    }
  }
  Tree build() {
    complete(tree_);
    return std::move(tree_);
  }

 private:
  std::uint32_t number_of(const Frame& frame, const std::string& text) {
    const auto [place, added] = known_.emplace(text, static_cast<std::uint32_t>(tree_.texts.size()));
    if (!added) return place->second;
    constexpr std::size_t longest = 1000;  // bytes
    tree_.texts.push_back(displayable(text, Charset::utf8, longest));
    tree_.colours.push_back(colour_of(frame));
    return place->second;
  }
  std::uint32_t inside(std::uint32_t outer, std::uint32_t frame) {
    const auto [place, added] = index_.emplace(std::uint64_t{outer} << 32 | frame,
                                               static_cast<std::uint32_t>(tree_.nodes.size()));
    if (added) tree_.nodes.push_back({outer, frame, 0, 0, {}, 1, {}});
    return place->second;
  }

  const WriteOptions& options_;
  Tree tree_;
  std::unordered_map<std::string, std::uint32_t> known_;  // frames and threads
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
};

Tree tree_of(const Profile& profile, const WriteOptions& options) {
  TreeBuilder builder(options);
  const By by = usual_by(profile.about.unit);
  builder.add(profile, [&](Tree::Node& node, const Profile::Amount& amount) { node.own += cost(amount, by); });
  return builder.build();
}

Tree tree_of(const Profile& before, const Profile& after, Compared by, const WriteOptions& options) {
  TreeBuilder builder(options);
  const double scale = scale_of(by, before, after);
  builder.add(after, [&](Tree::Node& node, const Profile::Amount& amount) {
    const std::int64_t one = compared_amount(amount, by, after.about.unit);
    node.own += one;
    node.both.after += static_cast<double>(one), node.both.samples_after += amount.samples;
  });
  builder.add(before, [&](Tree::Node& node, const Profile::Amount& amount) {
    node.both.before += scale * static_cast<double>(compared_amount(amount, by, before.about.unit));
    node.both.samples_before += amount.samples;
  });
  return builder.build();
}

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

std::string left_out_text(const Boxes& boxes) {
  return fmt::format("{} box{} too small or too deep to be drawn", boxes.left_out,
                     boxes.left_out == 1 ? " is" : "es are");
}

std::string title_of(const Profile& profile) {
  return profile.about.command.empty() ? "luaspy" : displayable(profile.about.command, Charset::utf8);
}

void add_facts(const Profile& profile, const std::string& label, std::vector<std::string>& lines) {
  const Metadata& about = profile.about;
  lines.push_back(fmt::format(
      "{}{}{}{} sample{} of {} thread{}{}{}", label,
      about.kind.empty() ? fmt::format("{:.1f} s, ", static_cast<double>(about.duration_ns) / 1e9) : about.kind + ": ",
      about.unit == Unit::nanoseconds || about.unit == Unit::samples
          ? ""
          : amount_text(profile.weight(), about.unit) + " in ",
      profile.samples(), profile.samples() == 1 ? "" : "s", profile.threads().size(),
      profile.threads().size() == 1 ? "" : "s", about.luas.empty() ? "" : "; ",
      displayable(joined(about.luas, ", "), Charset::utf8)));
  if (profile.total_losses() != 0) lines.push_back(fmt::format("{}lost: {}", label, losses_text(profile.losses())));
  for (const std::string& doubt : doubts(profile.doubt_facts()))
    lines.push_back(displayable(label + "doubtful: " + doubt, Charset::utf8));
}

// The lines above the boxes; the first is the title.
std::vector<std::string> head_lines(const Profile& profile, const Boxes& boxes) {
  std::vector<std::string> lines = {title_of(profile)};
  add_facts(profile, "", lines);
  if (boxes.left_out != 0) lines.push_back(left_out_text(boxes));
  return lines;
}

std::vector<std::string> head_lines(const Profile& before, const Profile& after, const Comparison& comparison,
                                    const Boxes& boxes) {
  const std::string first = title_of(before), second = title_of(after);
  std::vector<std::string> lines = {first == second ? first : first + " → " + second};
  add_facts(before, "before: ", lines);
  add_facts(after, "after: ", lines);
  for (const std::string& doubt : comparison.doubts) lines.push_back(displayable("doubtful: " + doubt, Charset::utf8));
  const std::string_view by = comparison.by == Compared::shares  ? "Shares"
                              : comparison.by == Compared::rates ? "Amounts for each second"
                                                                 : "Amounts";
  lines.push_back(
      fmt::format("{}; boxes as wide as after. Orange: more than before, blue: less, grey: no change, or "
                  "within noise",
                  by));
  if (boxes.left_out != 0) lines.push_back(left_out_text(boxes));
  return lines;
}

class Picture {
 public:
  // `comparison`: nullptr for one profile.
  Picture(Unit unit, const Tree& tree, const Comparison* comparison, std::ostream& out)
      : tree_(tree),
        by_(comparison != nullptr && comparison->by != Compared::shares ? By::weight : usual_by(unit)),
        unit_(unit),
        comparison_(comparison),
        out_(out) {}

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
        "<g><title>{}: {:.1f} %, {}{}{}; itself {:.1f} %</title><rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" "
        "height=\"{}\" rx=\"2\" fill=\"{}\"/>",
        escaped(text), percent(node.total, whole), cost_text(node.total, by_, unit_), word, before_text(node),
        percent(node.own, whole), box.x, y, std::max(box.width - 0.5, 0.3), row_height - 1, colour(box.node));
    const int letters = static_cast<int>((box.width - 6) / letter_width);
    constexpr int least_letters = 3;
    if (letters >= least_letters)
      out_ << fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>", box.x + 3, y + row_height - 5,
                          escaped(fit(text, letters, Cut::right, Charset::utf8)));
    out_ << "</g>\n";
  }

  std::string_view colour(std::uint32_t number) const {
    const Tree::Node &node = tree_.nodes[number], &all = tree_.nodes[0];
    if (comparison_ != nullptr)
      return colour_of(change_of(node.both, *comparison_, std::max(all.both.before, all.both.after)));
    return number == 0 ? colour_of(marker({})) : tree_.colours[node.frame];
  }
  // By shares, both wholes are equal.
  std::string before_text(const Tree::Node& node) const {
    if (comparison_ == nullptr) return {};
    const BothAmounts &both = node.both, &all = tree_.nodes[0].both;
    if (comparison_->by != Compared::shares)
      return fmt::format(", before {}", cost_text(std::llround(both.before), by_, unit_));
    return fmt::format(", before {:.1f} %", all.before > 0 ? 100 * both.before / all.before : 0.0);
  }

  const Tree& tree_;
  By by_;
  Unit unit_;
  const Comparison* comparison_;
  std::ostream& out_;
};

}  // namespace

void write_svg(const Profile& profile, const WriteOptions& options, std::ostream& out) {
  const Tree tree = tree_of(profile, options);
  const Boxes boxes = boxes_of(tree);
  Picture(profile.about.unit, tree, nullptr, out).write(head_lines(profile, boxes), boxes);
}

void write_svg_diff(const Profile& before, const Profile& after, const Comparison& comparison,
                    const WriteOptions& options, std::ostream& out) {
  const Tree tree = tree_of(before, after, comparison.by, options);
  const Boxes boxes = boxes_of(tree);
  Picture(after.about.unit, tree, &comparison, out).write(head_lines(before, after, comparison, boxes), boxes);
}

}  // namespace luaspy
