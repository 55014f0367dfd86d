#include "top/top_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/doubts.h"

namespace luaspy {
namespace {

using Role = TopView::Item::Role;

// ns, in at most 8 columns.
std::string time_text(std::int64_t ns) {
  const std::int64_t seconds = ns / 1'000'000'000;
  if (seconds < 1000) return fmt::format("{:.2f}s", static_cast<double>(ns) / 1e9);
  if (seconds < 60'000) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
}

std::string share_text(double percent) {
  return percent < 999.95 ? fmt::format("{:.1f}", percent) : fmt::format("{:.0f}", percent);
}

TopStyle style_of(double percent) {
  constexpr double hot = 20, warm = 5;
  return percent >= hot    ? TopStyle::hot
         : percent >= warm ? TopStyle::warm
         : percent < 0.05  ? TopStyle::dim
                           : TopStyle::plain;
}

TopStyle style_of(Frame::Kind kind) {
  switch (kind) {
    case Frame::Kind::lua:
      return TopStyle::plain;
    case Frame::Kind::c:
      return TopStyle::c;
    case Frame::Kind::native:
      return TopStyle::native;
    case Frame::Kind::marker:
      break;
  }
  return TopStyle::marker;
}

TopStyle style_of(std::size_t activity) {
  return static_cast<TopStyle>(static_cast<std::size_t>(TopStyle::lua) + activity);
}

class Drawing {
 public:
  Drawing(TopView& view, const TopCounts& counts, const TopTarget& target, TopSize size)
      : view_(view),
        counts_(counts),
        target_(target),
        size_(size),
        charset_(view.charset()),
        elapsed_(view.part(counts.elapsed)) {}

  std::vector<TopLine> draw() {
    title();
    doubtful();
    facts();
    legend();
    bar();
    state();
    if (view_.page() == TopView::Page::help) {
      help();
    } else {
      headings();
      items();
    }
    while (lines_.size() + 1 < height()) lines_.emplace_back();
    lines_.resize(height() == 0 ? 0 : height() - 1);
    footer();
    cut();
    return std::move(lines_);
  }

 private:
  std::size_t height() const { return static_cast<std::size_t>(std::max(size_.height, 1)); }
  bool is_narrow() const { return size_.width < 70; }
  bool utf8() const { return charset_ == Charset::utf8; }
  const char* dot() const { return utf8() ? " · " : " | "; }
  std::string clean(std::string_view text, std::size_t limit = 400) const { return displayable(text, charset_, limit); }
  std::string margin() const { return is_narrow() ? "" : " "; }

  // `left`, and `right` at the right edge if there is room for a good part of the left.
  void sides(TopLine left, const std::string& right) {
    int used = 0;
    for (const TopSpan& span : left.spans) used += columns(span.text);
    const int free = size_.width - used - columns(right) - 1;
    if (free > 1) {
      left.spans.push_back({std::string(static_cast<std::size_t>(free), ' ')});
      left.spans.push_back({right, TopStyle::dim});
    }
    lines_.push_back(std::move(left));
  }

  // Leaves out the folder of the program, the least useful part.
  std::string_view command() const {
    const std::string_view whole = target_.command, program = whole.substr(0, whole.find(' '));
    const std::size_t slash = program.rfind('/');
    return program.starts_with('/') && slash + 1 < program.size() ? whole.substr(slash + 1) : whole;
  }

  void title() {
    std::string luas;
    for (const std::string& lua : target_.luas) luas += (luas.empty() ? "" : ", ") + lua;
    std::string right = fmt::format("pid {}{}{}", target_.pid, luas.empty() ? "" : dot(), clean(luas));
    const std::string head = margin() + "luaspy top  ";
    const int most = std::max(20, size_.width / 2);
    right = fit(right, most, Cut::right, charset_);
    const int room = size_.width - columns(head) - columns(right) - 3;
    sides({{{head, TopStyle::heading},
            {fit(clean(command(), 4096), std::max(room, 0), Cut::middle, charset_), TopStyle::bold}}},
          right);
  }

  // The first doubt, on several lines if it needs them and the screen has room, and how many more
  // there are.
  void doubtful() {
    const std::vector<std::string> all = doubts_of(counts_, target_);
    if (all.empty()) return;
    std::string rest = "doubtful: " + all.front() +
                       (all.size() > 1 ? fmt::format(" (and {} more: ?)", all.size() - 1) : "");
    constexpr std::size_t rows_beside = 12, most_lines = 4;
    const std::size_t most = height() > rows_beside ? std::min(height() - rows_beside, most_lines) : 1;
    for (std::size_t i = 0; i < most && !rest.empty(); ++i) {
      const auto room = static_cast<std::size_t>(std::max(size_.width - 2 * static_cast<int>(margin().size()), 1));
      std::size_t end = rest.size();
      if (end > room && i + 1 < most) {
        end = rest.rfind(' ', room);  // ASCII: bytes are columns
        if (end == rest.npos || end == 0) end = room;
      }
      lines_.push_back({{{margin() + rest.substr(0, end), TopStyle::warning}}});
      rest.erase(0, std::min(end + 1, rest.size()));
    }
  }

  void facts() {
    const double seconds = static_cast<double>(counts_.elapsed.recent) / 1e9;
    const double rate = seconds > 0 ? static_cast<double>(counts_.ticks.recent) / seconds : 0;
    const std::string threads = threads_text(counts_, target_, view_.is_since_start()),
                      rate_text = fmt::format("{:.{}f}", rate, rate < 9.95 ? 1 : 0);
    const std::string still = fmt::format("{}stood still {:.2f} %{}lost ", dot(),
                                          share(view_.part(counts_.stopped), elapsed_), dot());
    const std::int64_t lost = std::accumulate(counts_.losses.begin() + 1, counts_.losses.end(), std::int64_t{0});
    const std::string of = fmt::format(" of {:g} Hz", target_.rate),
                      number = lost == 0 ? "nothing" : fmt::format("{}", lost);
    // The first variant that fits; the help page lists losses by name.
    std::string text;
    for (const std::string& rest :
         {of + still + losses_text(counts_.losses), of + still + number, " Hz" + still + number}) {
      text = margin() + threads + dot() + rate_text + rest;
      if (columns(text) <= size_.width) break;
    }
    sides({{{text}}}, time_text(counts_.elapsed.all));
  }

  void legend() {
    for (int pressed = 0; pressed < 3; ++pressed) {
      TopLine line = legend(pressed);
      int used = 0;
      for (const TopSpan& span : line.spans) used += columns(span.text);
      if (used > size_.width && pressed < 2) continue;
      lines_.push_back(std::move(line));
      return;
    }
  }

  TopLine legend(int pressed) const {
    TopLine line{{{margin()}}};
    const auto part = [&](std::string_view what, double value, bool known, TopStyle style) {
      if (line.spans.size() > 1)
        line.spans.push_back({std::string(pressed == 0 ? 3 : 2 - static_cast<std::size_t>(pressed / 2), ' ')});
      if (!size_.colours) line.spans.push_back({std::string(glyph(style)) + (pressed < 2 ? " " : "")});
      line.spans.push_back({fmt::format("{} ", what), style});
      line.spans.push_back({!known ? "-" : share_text(value) + (pressed == 0 ? " %" : "%"), TopStyle::bold});
    };
    for (std::size_t i = 0; i < activity_count; ++i) {
      const auto activity = static_cast<Activity>(i);
      const Told known = told(counts_, activity);
      if (known == Told::absent) continue;
      std::string_view what = name(activity);
      if (pressed == 2 && activity == Activity::machine_code) what = "code";
      if (pressed == 2 && activity == Activity::compiling) what = "JIT";
      part(what, share(view_.part(counts_.activity[i]), elapsed_), known == Told::yes, style_of(i));
    }
    part("idle", share(view_.part(counts_.idle), elapsed_), true, TopStyle::idle);
    if (view_.part(counts_.waiting) != 0)
      part(pressed == 0 ? "waiting for a CPU" : "no CPU", share(view_.part(counts_.waiting), elapsed_), true,
           TopStyle::idle);
    return line;
  }

  // The parts of the bar, if colours do not distinguish them.
  std::string_view glyph(TopStyle activity) const {
    static constexpr std::array blocks = {"█", "▓", "▚", "▒", "▞", "░", "·"};
    static constexpr std::array letters = {"#", "=", "@", "%", "+", "-", "."};
    const std::size_t index = static_cast<std::size_t>(activity) - static_cast<std::size_t>(TopStyle::lua);
    return utf8() ? blocks[index] : letters[index];
  }

  // The time of all threads that ran, and the time in which none did.
  void bar() {
    std::vector<std::int64_t> parts;
    for (const TopCounts::Span& span : counts_.activity) parts.push_back(view_.part(span));
    parts.push_back(view_.part(counts_.idle));
    const std::int64_t all = std::max(std::accumulate(parts.begin(), parts.end(), std::int64_t{0}), elapsed_);
    const int width = size_.width - 2 * static_cast<int>(margin().size());
    TopLine line{{{margin()}}};
    std::int64_t before = 0;
    int drawn = 0;
    for (std::size_t i = 0; i < parts.size() && all > 0; ++i) {
      before += parts[i];
      const int until = static_cast<int>(std::lround(static_cast<double>(before) / static_cast<double>(all) * width));
      std::string text;
      for (; drawn < until; ++drawn) text += size_.colours && utf8() ? std::string_view("━") : glyph(style_of(i));
      line.spans.push_back({std::move(text), style_of(i)});
    }
    lines_.push_back(std::move(line));
  }

  void state() {
    TopLine line{{{margin()}}};
    if (target_.ended) line.spans.push_back({"the target has ended", TopStyle::warning}), line.spans.push_back({dot()});
    else if (!target_.still.empty())
      line.spans.push_back({target_.still, TopStyle::warning}), line.spans.push_back({dot()});
    if (view_.is_paused()) line.spans.push_back({"paused", TopStyle::warning}), line.spans.push_back({dot()});
    const bool filters = !view_.filter().empty() || view_.is_editing_filter();
    if (view_.page() == TopView::Page::table && filters) {
      line.spans.push_back({"filter: " + view_.filter() + (view_.is_editing_filter() ? "_" : ""), TopStyle::key});
      line.spans.push_back({dot()});
    }
    std::string text = view_.is_since_start() ? "% of all the time"
                                              : fmt::format("% of the last {:g} s", target_.window);
    if (!target_.ended) text += fmt::format("{}every {:g} s", dot(), view_.interval());
    if (!target_.output.empty()) text += fmt::format("{}its output: {}", dot(), clean(target_.output));
    line.spans.push_back({text, TopStyle::dim});
    lines_.push_back(std::move(line));
  }

  void headings() {
    TopLine line{{{margin(), TopStyle::heading}}};
    int used = static_cast<int>(margin().size());
    const auto column = [&](const std::string& text, std::optional<TopView::Column> which) {
      used += columns(text);
      const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
      line.spans.push_back({text.substr(0, blanks), TopStyle::heading});
      line.spans.push_back({text.substr(blanks), which == view_.sorted_by() ? TopStyle::sorted : TopStyle::heading});
    };
    if (view_.page() == TopView::Page::relations) {
      column(" Share", std::nullopt), column(" %Total", std::nullopt), column(" TotalTime  ", std::nullopt),
          column("Function", std::nullopt);
    } else {
      column(" %Own", TopView::Column::own_share), column(" %Total", TopView::Column::total_share);
      column("  OwnTime", TopView::Column::own_time), column(" TotalTime", TopView::Column::total_time),
          column("  ", std::nullopt);
      if (view_.grouping().threads) column(fill("Thread", thread_width(), Cut::right, charset_) + ' ', std::nullopt);
      column(view_.grouping().lines ? "Line" : "Function", TopView::Column::function),
          column(" (file:line)", std::nullopt);
    }
    line.spans.push_back(
        {std::string(static_cast<std::size_t>(std::max(0, size_.width - used)), ' '), TopStyle::heading});
    lines_.push_back(std::move(line));
  }

  void items() {
    const std::size_t room = height() > lines_.size() + 1 ? height() - lines_.size() - 1 : 0;
    view_.make_room(room);
    const auto& items = view_.items();
    for (std::size_t i = view_.first(); i < items.size() && i < view_.first() + room; ++i) {
      TopLine line = item(items[i]);
      line.selected = i == view_.cursor() && items[i].can_be_chosen();
      lines_.push_back(std::move(line));
    }
    if (!items.empty() || room == 0) return;
    const char* const why = !view_.filter().empty() ? "no function matches the filter"
                            : target_.ended         ? "nothing was sampled"
                                                    : "nothing runs in the target";
    lines_.push_back({{{margin() + "  " + why, TopStyle::dim}}});
  }

  TopLine item(const TopView::Item& item) {
    if (item.role == Role::heading) return {{{margin() + item.text, TopStyle::key}}};
    if (item.role == Role::note) return {{{margin() + "  " + item.text, TopStyle::dim}}};
    return item.role == Role::row ? row(item.row) : relation(item);
  }

  TopLine row(const TopRow& row) {
    const double own = share(view_.part(row.times.own), elapsed_), total = share(view_.part(row.times.total), elapsed_);
    TopLine line{{{margin()}}};
    line.spans.push_back({fmt::format("{:>5}", share_text(own)), style_of(own)});
    line.spans.push_back({fmt::format("  {:>5}", share_text(total)), total < 0.05 ? TopStyle::dim : TopStyle::plain});
    line.spans.push_back(
        {fmt::format("  {:>7} {:>9}  ", time_text(row.times.own.all), time_text(row.times.total.all)), TopStyle::dim});
    if (view_.grouping().threads) line.spans.push_back({thread_text(row.thread) + ' ', TopStyle::marker});
    function(line, row);
    return line;
  }

  TopLine relation(const TopView::Item& item) {
    const TopCounts::Times& of = view_.items()[self_index()].row.times;
    const TopCounts::Span time = item.role == Role::own ? item.row.times.own : item.row.times.total;
    const double part = share(view_.part(time), view_.part(of.total)), total = share(view_.part(time), elapsed_);
    TopLine line{{{margin()}}};
    line.spans.push_back({fmt::format("{:>6}", item.role == Role::self ? "" : share_text(part)),
                          item.role == Role::own ? TopStyle::plain : style_of(part)});
    line.spans.push_back({fmt::format("  {:>5}", share_text(total)), TopStyle::plain});
    line.spans.push_back({fmt::format("  {:>8}  ", time_text(time.all)), TopStyle::dim});
    if (item.role == Role::own) line.spans.push_back({"(its own work)", TopStyle::marker});
    else function(line, item.row);
    return line;
  }
  std::size_t self_index() const {
    const auto found = std::ranges::find(view_.items(), Role::self, &TopView::Item::role);
    return static_cast<std::size_t>(found - view_.items().begin());
  }

  int thread_width() const { return is_narrow() ? 9 : 18; }
  std::string thread_text(TopCounts::Thread index) const {
    const TopCounts::ThreadName& thread = counts_.threads[index];
    const std::string tid = fmt::format(" {}", thread.tid);
    const int room = thread_width() - columns(tid);
    return fill(is_narrow() ? tid.substr(1) : fit(clean(thread.name), room, Cut::right, charset_) + tid, thread_width(),
                Cut::left, charset_);
  }

  void function(TopLine& line, const TopRow& row) {
    int used = 0;
    for (const TopSpan& span : line.spans) used += columns(span.text);
    const Frame frame = frame_of(counts_, row);
    const std::string text = describe(frame, row.line != 0);
    const Label whole = {clean(text.substr(0, frame.name.size()), 1000), clean(text.substr(frame.name.size()), 1000)};
    const Label label = fit(whole, std::max(size_.width - used, 0), charset_);
    line.spans.push_back({label.name, style_of(frame.kind)});
    line.spans.push_back({label.place, TopStyle::dim});
  }

  void help();

  void footer() {
    TopLine line;
    const auto key = [&](const char* keys, const char* what) {
      int used = 0;
      for (const TopSpan& span : line.spans) used += columns(span.text);
      if (used + columns(keys) + columns(what) + 3 > size_.width) return;
      line.spans.push_back({line.spans.empty() ? margin() : "  "});
      line.spans.push_back({keys, TopStyle::key});
      line.spans.push_back({std::string(" ") + what, TopStyle::dim});
    };
    if (view_.is_editing_filter()) {
      key("Enter", "keep the filter"), key("Esc", "no filter");
    } else if (view_.page() == TopView::Page::help) {
      key("q", "quit"), key("any other key", "back");
    } else if (view_.page() == TopView::Page::relations) {
      key("q", "quit"), key("?", "help"), key("Esc", "back"), key("Enter", "its callers and callees"),
          key("w", "window"), key("p", "pause");
    } else {
      key("q", "quit"), key("?", "help"), key("Enter", "callers"), key("/", "filter"), key("s", "sort"),
          key("p", "pause"), key("t", "threads");
      key("l", view_.grouping().lines ? "functions" : "lines"), key("r", "reset"), key("w", "window"),
          key("+-", "pace");
    }
    lines_.push_back(std::move(line));
  }

  // No line is wider than the screen.
  void cut() {
    for (TopLine& line : lines_) {
      int room = size_.width;
      for (TopSpan& span : line.spans) {
        span.text = fit(span.text, room, Cut::right, charset_);
        room -= columns(span.text);
      }
      if (line.selected) line.spans.push_back({std::string(static_cast<std::size_t>(std::max(room, 0)), ' ')});
    }
  }

  TopView& view_;
  const TopCounts& counts_;
  const TopTarget& target_;
  TopSize size_;
  Charset charset_;
  std::int64_t elapsed_;
  std::vector<TopLine> lines_;
};

void Drawing::help() {
  static constexpr std::array<std::pair<const char*, const char*>, 14> keys = {{
      {"q, Ctrl-C", "quit; a program that was running continues"},
      {"s  S", "sort by the next or the previous column"},
      {"/", "show rows that contain a text; Esc: all rows"},
      {"Enter", "callers and callees of the function; Esc: back"},
      {"t", "one row per thread, or for all together"},
      {"l", "one row per line, or per function"},
      {"w", "shares of the last seconds, or of all the time"},
      {"r", "reset: times start again at 0"},
      {"p", "pause the display; sampling goes on"},
      {"+  -", "refresh less or more often"},
      {"arrows, j k", "move; also PgUp, PgDn, Home, End"},
      {"", ""},
      {"%Own", "its own work; 100 %: one thread all the time"},
      {"%Total", "with what it calls; recursive calls count once"},
  }};
  lines_.emplace_back();
  for (const auto& [key, what] : keys)
    lines_.push_back({{{margin() + fmt::format("{:<12} ", key), TopStyle::key}, {what}}});
  lines_.push_back({{{margin() + fmt::format("{:<12} ", "lost"), TopStyle::key}, {losses_text(counts_.losses)}}});
  for (const std::string& doubt : doubts_of(counts_, target_))
    lines_.push_back({{{margin() + fmt::format("{:<12} ", "doubtful"), TopStyle::key}, {doubt}}});
}

}  // namespace

std::vector<std::string> doubts_of(const TopCounts& counts, const TopTarget& target) {
  return doubts({target.pid, target.lua_mapped || !target.luas.empty(), counts.samples, counts.quality, counts.losses});
}

double share(std::int64_t part, std::int64_t of) {
  return of == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(of);
}

std::string threads_text(const TopCounts& counts, const TopTarget& target, bool since_start) {
  const auto ran = std::ranges::count_if(counts.threads, [&](const TopCounts::ThreadName& thread) {
    return (since_start ? thread.ran.all : thread.ran.recent) != 0;
  });
  const std::string processes = target.processes > 1 ? fmt::format("{} processes, ", target.processes) : "";
  return fmt::format("{}{} thread{}, {} ran", processes, counts.threads_now, counts.threads_now == 1 ? "" : "s", ran);
}

std::string_view name(Activity activity) {
  static constexpr std::array<std::string_view, activity_count> names = {"Lua", "C",        "machine code",
                                                                         "GC",  "compiler", "no Lua"};
  return names[static_cast<std::size_t>(activity)];
}

Told told(const TopCounts& counts, Activity activity) {
  switch (activity) {
    case Activity::machine_code:
      return counts.luajit ? Told::yes : Told::absent;
    case Activity::compiling:
    case Activity::no_lua:
      return counts.activity[static_cast<std::size_t>(activity)].all != 0 ? Told::yes : Told::absent;
    case Activity::collecting:
      return counts.sees_collector ? Told::yes : Told::unknown;
    case Activity::lua:
    case Activity::c:
      break;
  }
  return Told::yes;
}

std::vector<TopLine> draw_top(TopView& view, const TopCounts& counts, const TopTarget& target, TopSize size) {
  return Drawing(view, counts, target, size).draw();
}

}  // namespace luaspy
