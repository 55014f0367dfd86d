#include "top/top_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "profile/coverage.h"
#include "top/top_text.h"

namespace luaspy {
namespace {

TopStyle style_of_activity(std::size_t activity) {
  return static_cast<TopStyle>(static_cast<std::size_t>(TopStyle::lua) + activity);
}

class Head {
 public:
  explicit Head(const TopScene& scene) : scene_(scene), elapsed_(scene.elapsed()) {}

  std::vector<TopLine> draw() {
    title();
    doubtful();
    facts();
    heap();
    legend();
    bar();
    state();
    return std::move(lines_);
  }

 private:
  // `left`, and `right` at the right edge if there is room for a good part of the left.
  void sides(TopLine left, const std::string& right) {
    int used = 0;
    for (const TopSpan& span : left.spans) used += columns(span.text);
    const int free = scene_.size.width - used - columns(right) - 1;
    if (free > 1) {
      left.spans.push_back({std::string(static_cast<std::size_t>(free), ' ')});
      left.spans.push_back({right, TopStyle::dim});
    }
    lines_.push_back(std::move(left));
  }

  // Leaves out the folder of the program, the least useful part.
  std::string_view command() const {
    const std::string_view whole = scene_.target.command, program = whole.substr(0, whole.find(' '));
    const std::size_t slash = program.rfind('/');
    return program.starts_with('/') && slash + 1 < program.size() ? whole.substr(slash + 1) : whole;
  }

  void title() {
    std::string luas;
    for (const std::string& lua : scene_.is_tiny() ? std::vector<std::string>() : scene_.target.luas)
      luas += (luas.empty() ? "" : ", ") + lua;
    std::string right = fmt::format("pid {}{}{}", scene_.target.pid, luas.empty() ? "" : scene_.dot(),
                                    scene_.clean(luas));
    const std::string head = scene_.margin() + "luaspy top  ";
    const int most = std::max(20, scene_.size.width / 2);
    right = fit(right, most, Cut::right, scene_.view.charset());
    const int room = scene_.size.width - columns(head) - columns(right) - 3;
    sides(
        {{{head, TopStyle::heading},
          {fit(scene_.clean(command(), 4096), std::max(room, 0), Cut::middle, scene_.view.charset()), TopStyle::bold}}},
        right);
  }

  // The first doubt, on several lines if it needs them and the screen has room, and how many more
  // there are.
  void doubtful() {
    const std::vector<std::string> all = doubts_of(scene_.counts, scene_.target);
    if (all.empty()) return;
    std::string rest = "doubtful: " + all.front() +
                       (all.size() > 1 ? fmt::format(" (and {} more: ?)", all.size() - 1) : "");
    constexpr std::size_t rows_beside = 12, most_lines = 4;
    const std::size_t most = static_cast<std::size_t>(std::max(scene_.size.height, 1)) > rows_beside
                                 ? std::min(static_cast<std::size_t>(std::max(scene_.size.height, 1)) - rows_beside,
                                            most_lines)
                                 : 1;
    for (std::size_t i = 0; i < most && !rest.empty(); ++i) {
      const auto room = static_cast<std::size_t>(
          std::max(scene_.size.width - 2 * static_cast<int>(scene_.margin().size()), 1));
      std::size_t end = rest.size();
      if (end > room && i + 1 < most) {
        end = rest.rfind(' ', room);  // ASCII: bytes are columns
        if (end == rest.npos || end == 0) end = room;
      }
      lines_.push_back({{{scene_.margin() + rest.substr(0, end), TopStyle::warning}}});
      rest.erase(0, std::min(end + 1, rest.size()));
    }
  }

  void facts() {
    const double seconds = static_cast<double>(scene_.counts.elapsed.recent) / 1e9;
    const double rate = seconds > 0 ? static_cast<double>(scene_.counts.ticks.recent) / seconds : 0;
    const std::string threads = threads_text(scene_.counts, scene_.target, scene_.view.is_since_start()),
                      rate_text = fmt::format("{:.{}f}", rate, rate < 9.95 ? 1 : 0);
    const std::string stood_still = fmt::format("stood still {:.2f} %",
                                                share(scene_.view.part(scene_.counts.stopped), elapsed_)),
                      still = scene_.dot() + stood_still;
    const std::int64_t lost = std::accumulate(scene_.counts.losses.begin() + 1, scene_.counts.losses.end(),
                                              std::int64_t{0});
    const std::optional<double> covered = coverage(scene_.target.cpu, scene_.target.sampled_cpu_ns);
    const std::string sampled = covered ? fmt::format("{}sampled {:.0f} %", scene_.dot(), *covered) : "";
    const std::string of = fmt::format(" of {:g} Hz", scene_.target.rate),
                      number = lost == 0 ? "nothing" : fmt::format("{}", lost);
    const std::string lost_text = scene_.dot() + std::string("lost ");
    // The first that fits; the help page lists losses by name. The time yields only to what the target suffers.
    const std::string time = time_text(scene_.counts.elapsed.all),
                      shortest = scene_.margin() + threads + sampled + lost_text + number;
    const auto first_fit = [&](int width) {
      for (const std::string& rest :
           {scene_.dot() + rate_text + of + still + sampled + lost_text + losses_text(scene_.counts.losses),
            scene_.dot() + rate_text + of + still + sampled + lost_text + number,
            scene_.dot() + rate_text + " Hz" + still + sampled + lost_text + number}) {
        std::string text = scene_.margin() + threads + rest;
        if (columns(text) <= width) return text;
      }
      return std::string();
    };
    std::string text = first_fit(scene_.size.width - columns(time) - 3);
    if (text.empty()) text = first_fit(scene_.size.width);
    const bool has_still = !text.empty();
    if (!has_still) text = shortest;
    sides({{{text}}}, time);
    // What luaspy does to the program is always said.
    if (!has_still) lines_.push_back({{{scene_.margin() + stood_still}}});
  }

  void heap() {
    constexpr int least_rows = 12;  // a lower screen has no room for it
    const bool has_room = scene_.size.height >= least_rows && scene_.view.page() != TopView::Page::help;
    if (!scene_.target.heap || !has_room) return;
    const int room = scene_.size.width - 2 * columns(scene_.margin());
    lines_.push_back(
        {{{scene_.margin() + heap_line(*scene_.target.heap, scene_.view.is_since_start(), room), TopStyle::plain}}});
  }

  // What threads do, in the first of three forms that fits into a line, or else in two lines.
  void legend() {
    for (int pressed = 0; pressed < 3; ++pressed) {
      const std::vector<TopLine> parts = legend(pressed);
      const std::string gap(pressed == 0 ? 3 : 2 - static_cast<std::size_t>(pressed / 2), ' ');
      TopLine line{{{scene_.margin()}}};
      std::vector<TopLine> lines;
      for (const TopLine& part : parts) {
        const bool begins = line.spans.size() == 1;
        if (!begins && pressed == 2 && line.width() + 1 + part.width() > scene_.size.width)
          lines.push_back(std::exchange(line, TopLine{{{scene_.margin()}}}));
        else if (!begins) line.spans.push_back({gap});
        line.spans.insert(line.spans.end(), part.spans.begin(), part.spans.end());
      }
      if (line.width() > scene_.size.width && pressed < 2) continue;
      lines.push_back(std::move(line));
      for (TopLine& one : lines) lines_.push_back(std::move(one));
      return;
    }
  }

  std::vector<TopLine> legend(int pressed) const {
    std::vector<TopLine> parts;
    const auto part = [&](std::string_view what, double value, bool known, TopStyle style) {
      TopLine& one = parts.emplace_back();
      if (!scene_.size.colours) one.spans.push_back({std::string(glyph(style)) + (pressed < 2 ? " " : "")});
      one.spans.push_back({fmt::format("{} ", what), style});
      one.spans.push_back({!known ? "-" : share_text(value) + (pressed == 0 ? " %" : "%"), TopStyle::bold});
    };
    for (std::size_t i = 0; i < activity_count; ++i) {
      const auto activity = static_cast<Activity>(i);
      const Told known = told(scene_.counts, activity);
      if (known == Told::absent) continue;
      std::string_view what = name(activity);
      if (pressed == 2 && activity == Activity::machine_code) what = "code";
      if (pressed == 2 && activity == Activity::compiling) what = "JIT";
      part(what, share(scene_.view.part(scene_.counts.activity[i]), elapsed_), known == Told::yes,
           style_of_activity(i));
    }
    if (scene_.view.part(scene_.counts.waiting) != 0)
      part(pressed == 0 ? "waiting for a CPU" : "no CPU", share(scene_.view.part(scene_.counts.waiting), elapsed_),
           true, TopStyle::waiting);
    part("idle", share(scene_.view.part(scene_.counts.idle), elapsed_), true, TopStyle::idle);
    return parts;
  }

  // The parts of the bar, if colours do not distinguish them.
  std::string_view glyph(TopStyle activity) const {
    static constexpr std::array blocks = {"█", "▓", "▚", "▒", "▞", "░", "╌", "·"};
    static constexpr std::array letters = {"#", "=", "@", "%", "+", "-", "~", "."};
    const std::size_t index = static_cast<std::size_t>(activity) - static_cast<std::size_t>(TopStyle::lua);
    return scene_.utf8() ? blocks[index] : letters[index];
  }

  // The time of all threads that ran or wanted to, and the time in which there was none.
  void bar() {
    std::vector<std::int64_t> parts;
    for (const TopCounts::Span& span : scene_.counts.activity) parts.push_back(scene_.view.part(span));
    parts.push_back(scene_.view.part(scene_.counts.waiting));
    parts.push_back(scene_.view.part(scene_.counts.idle));
    const std::int64_t all = std::max(std::accumulate(parts.begin(), parts.end(), std::int64_t{0}), elapsed_);
    const int width = scene_.size.width - 2 * static_cast<int>(scene_.margin().size());
    TopLine line{{{scene_.margin()}}};
    std::int64_t before = 0;
    int drawn = 0;
    for (std::size_t i = 0; i < parts.size() && all > 0; ++i) {
      before += parts[i];
      const int until = static_cast<int>(std::lround(static_cast<double>(before) / static_cast<double>(all) * width));
      std::string text;
      for (; drawn < until; ++drawn)
        text += scene_.size.colours && scene_.utf8() ? std::string_view("━") : glyph(style_of_activity(i));
      line.spans.push_back({std::move(text), style_of_activity(i)});
    }
    lines_.push_back(std::move(line));
  }

  void state() {
    TopLine line{{{scene_.margin()}}};
    if (scene_.view.is_naming_file()) {
      line.spans.push_back({"write a profile to: " + scene_.view.file_name() + '_', TopStyle::key});
      lines_.push_back(std::move(line));
      return;
    }
    if (!scene_.view.message().empty())
      line.spans.push_back({scene_.clean(scene_.view.message(), 1000), TopStyle::warning}),
          line.spans.push_back({scene_.dot()});
    if (scene_.target.ended)
      line.spans.push_back({"the target has ended", TopStyle::warning}), line.spans.push_back({scene_.dot()});
    else if (!scene_.target.still.empty())
      line.spans.push_back({scene_.target.still, TopStyle::warning}), line.spans.push_back({scene_.dot()});
    if (scene_.view.is_paused())
      line.spans.push_back({"paused", TopStyle::warning}), line.spans.push_back({scene_.dot()});
    const bool filters = !scene_.view.filter().empty() || scene_.view.is_editing_filter();
    if (scene_.view.page() == TopView::Page::table && filters) {
      line.spans.push_back(
          {"filter: " + scene_.view.filter() + (scene_.view.is_editing_filter() ? "_" : ""), TopStyle::key});
      line.spans.push_back({scene_.dot()});
    }
    // Several threads together may have more than all of the time.
    const bool several = scene_.counts.threads_now > 1;
    std::string text = several ? "% of a thread" : "% of all the time";
    if (!scene_.view.is_since_start())
      text = fmt::format("{} {:g} s", several ? "% of a thread, last" : "% of the last", scene_.target.window);
    if (!scene_.target.ended) text += fmt::format("{}every {:g} s", scene_.dot(), scene_.view.interval());
    if (!scene_.target.output.empty())
      text += fmt::format("{}its output: {}", scene_.dot(), scene_.clean(scene_.target.output));
    line.spans.push_back({text, TopStyle::dim});
    if (scene_.view.mode() != Mode::merged)
      line.spans.push_back({scene_.dot() + std::string(description(scene_.view.mode())), TopStyle::key});
    lines_.push_back(std::move(line));
  }

  const TopScene& scene_;
  std::int64_t elapsed_;
  std::vector<TopLine> lines_;
};

}  // namespace

std::vector<TopLine> head_lines(const TopScene& scene) { return Head(scene).draw(); }

}  // namespace luaspy
