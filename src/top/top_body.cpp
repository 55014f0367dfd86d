#include "top/top_scene.h"

#include <fmt/format.h>

#include <algorithm>

#include "top/top_text.h"

namespace luaspy {
namespace {

using Role = TopView::Item::Role;

class Table {
 public:
  explicit Table(const TopScene& scene) : scene_(scene), elapsed_(scene.elapsed()) {}

  std::vector<TopLine> draw(std::size_t room) {
    headings();
    pane(room);
    items(room > lines_.size() + pane_.size() ? room - lines_.size() - pane_.size() : 0);
    while (!pane_.empty() && lines_.size() + pane_.size() < room) lines_.emplace_back();
    for (TopLine& line : pane_) lines_.push_back(std::move(line));
    return std::move(lines_);
  }

 private:
  void headings() {
    TopLine line{{{scene_.margin(), TopStyle::heading}}};
    int used = static_cast<int>(scene_.margin().size());
    const auto column = [&](const std::string& text, std::optional<TopView::Column> which) {
      used += columns(text);
      const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
      line.spans.push_back({text.substr(0, blanks), TopStyle::heading});
      line.spans.push_back(
          {text.substr(blanks), which == scene_.view.sorted_by() ? TopStyle::sorted : TopStyle::heading});
    };
    if (scene_.view.page() == TopView::Page::relations) {
      column(" Share", std::nullopt), column(" %Total", std::nullopt);
      column(scene_.is_tiny() ? "  " : " TotalTime  ", std::nullopt), column("Function", std::nullopt);
    } else {
      column(" %Own", TopView::Column::own_share), column(" %Total", TopView::Column::total_share);
      if (!scene_.is_tiny())
        column("  OwnTime", TopView::Column::own_time), column(" TotalTime", TopView::Column::total_time);
      column("  ", std::nullopt);
      const TopGrouping grouping = scene_.view.grouping();
      if (grouping.threads || grouping.processes)
        column(fill(grouping.threads ? "Thread" : "Process", owner_width(), Cut::right, scene_.view.charset()) + ' ',
               std::nullopt);
      column(scene_.view.grouping().lines ? "Line" : "Function", TopView::Column::function),
          column(" (file:line)", std::nullopt);
    }
    line.spans.push_back(
        {std::string(static_cast<std::size_t>(std::max(0, scene_.size.width - used)), ' '), TopStyle::heading});
    lines_.push_back(std::move(line));
  }

  void items(std::size_t room) {
    scene_.view.make_room(room);
    const auto& items = scene_.view.items();
    for (std::size_t i = scene_.view.first(); i < items.size() && i < scene_.view.first() + room; ++i) {
      TopLine line = item(items[i]);
      line.selected = i == scene_.view.cursor() && items[i].can_be_chosen();
      lines_.push_back(std::move(line));
    }
    if (!items.empty() || room == 0) return;
    const char* const why = !scene_.view.filter().empty() ? "no function matches the filter"
                            : scene_.target.ended         ? "nothing was sampled"
                                                          : "nothing runs in the target";
    lines_.push_back({{{scene_.margin() + "  " + why, TopStyle::dim}}});
  }

  TopLine item(const TopView::Item& item) {
    if (item.role == Role::heading) return {{{scene_.margin() + item.text, TopStyle::key}}};
    if (item.role == Role::note) return {{{scene_.margin() + "  " + item.text, TopStyle::dim}}};
    return item.role == Role::row ? row(item.row) : relation(item);
  }

  TopLine row(const TopRow& row) {
    const double own = share(scene_.view.part(row.times.own), elapsed_),
                 total = share(scene_.view.part(row.times.total), elapsed_);
    TopLine line{{{scene_.margin()}}};
    line.spans.push_back({fmt::format("{:>5}", share_text(own)), style_of_share(own)});
    line.spans.push_back({fmt::format("  {:>5}", share_text(total)), total < 0.05 ? TopStyle::dim : TopStyle::plain});
    line.spans.push_back({scene_.is_tiny() ? "  "
                                           : fmt::format("  {:>7} {:>9}  ", time_text(row.times.own.all),
                                                         time_text(row.times.total.all)),
                          TopStyle::dim});
    if (row.thread != TopRow::all_threads) line.spans.push_back({thread_text(row.thread) + ' ', TopStyle::marker});
    else if (row.pid != 0) line.spans.push_back({process_text(row.pid) + ' ', TopStyle::marker});
    function(line, row);
    return line;
  }

  TopLine relation(const TopView::Item& item) {
    const TopCounts::Times& of = scene_.view.items()[self_index()].row.times;
    const TopCounts::Span time = item.role == Role::own ? item.row.times.own : item.row.times.total;
    const double part = share(scene_.view.part(time), scene_.view.part(of.total)),
                 total = share(scene_.view.part(time), elapsed_);
    TopLine line{{{scene_.margin()}}};
    line.spans.push_back({fmt::format("{:>6}", item.role == Role::self ? "" : share_text(part)),
                          item.role == Role::own ? TopStyle::plain : style_of_share(part)});
    line.spans.push_back({fmt::format("  {:>5}", share_text(total)), TopStyle::plain});
    line.spans.push_back({scene_.is_tiny() ? "  " : fmt::format("  {:>8}  ", time_text(time.all)), TopStyle::dim});
    if (item.role == Role::own) line.spans.push_back({"(its own work)", TopStyle::marker});
    else function(line, item.row);
    return line;
  }
  std::size_t self_index() const {
    const auto found = std::ranges::find(scene_.view.items(), Role::self, &TopView::Item::role);
    return static_cast<std::size_t>(found - scene_.view.items().begin());
  }

  // Of the column that says whose row it is.
  int owner_width() const { return scene_.is_narrow() ? 9 : 18; }
  std::string owner_text(const std::string& name, int number) const {
    const std::string text = fmt::format(" {}", number);
    const int room = owner_width() - columns(text);
    return fill(
        scene_.is_narrow() ? text.substr(1) : fit(scene_.clean(name), room, Cut::right, scene_.view.charset()) + text,
        owner_width(), Cut::left, scene_.view.charset());
  }
  std::string thread_text(TopCounts::Thread index) const {
    const TopCounts::ThreadName& thread = scene_.counts.threads[index];
    return owner_text(thread.name, thread.tid);
  }
  // A process is called as its first thread.
  std::string process_text(int pid) const {
    const auto& threads = scene_.counts.threads;
    auto found = std::ranges::find(threads, pid, &TopCounts::ThreadName::tid);
    if (found == threads.end()) found = std::ranges::find(threads, pid, &TopCounts::ThreadName::pid);
    return owner_text(found == threads.end() ? "" : found->name, pid);
  }

  void function(TopLine& line, const TopRow& row) {
    const Frame frame = frame_of(scene_.counts, row);
    this->frame(line, frame, row.line != 0);
  }
  void frame(TopLine& line, const Frame& frame, bool with_line) {
    const std::string text = describe(frame, with_line);
    const Label whole = {scene_.clean(text.substr(0, frame.name.size()), 1000),
                         scene_.clean(text.substr(frame.name.size()), 1000)};
    const Label label = fit(whole, std::max(scene_.size.width - line.width(), 0), scene_.view.charset());
    line.spans.push_back({label.name, style_of_kind(frame.kind)});
    line.spans.push_back({label.place, TopStyle::dim});
  }

  // At most half of `room`, from its end: the stack, innermost first, with source lines.
  void pane(std::size_t room) {
    const TopPane& pane = scene_.pane;
    if (!pane.open || room / 2 < 3) return;
    const auto line = [&](const std::string& text, TopStyle style) { pane_.push_back({{{text, style}}}); };
    const std::string edge = scene_.margin();
    line(edge + (pane.seen ? "where it was seen last, innermost call first" : "not seen in the last seconds"),
         TopStyle::key);
    for (std::size_t i = 0; i < pane.rows.size(); ++i) {
      const TopPane::Row& row = pane.rows[i];
      const bool has_source = row.source && !row.source->text.empty();
      const std::size_t needs = has_source ? 2 : 1, left = room / 2 - pane_.size(), further = pane.rows.size() - i;
      if (left < needs + (further + pane.more == 1 ? 0 : 1)) {
        line(fmt::format("{}  {} more", edge, further + pane.more), TopStyle::dim);
        return;
      }
      TopLine& one = pane_.emplace_back(TopLine{{{edge + "  "}}});
      frame(one, row.frame, row.frame.line > 0);
      if (has_source) line(edge + "      > " + scene_.clean(row.source->shown(), 200), TopStyle::plain);
    }
    if (pane.more != 0) line(fmt::format("{}  {} more", edge, pane.more), TopStyle::dim);
  }

  const TopScene& scene_;
  std::int64_t elapsed_;
  std::vector<TopLine> lines_, pane_;
};

}  // namespace

std::vector<TopLine> table_lines(const TopScene& scene, std::size_t room) { return Table(scene).draw(room); }

}  // namespace luaspy
