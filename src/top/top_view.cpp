#include "top/top_view.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <tuple>

#include "base/pattern.h"
#include "profile/function_table.h"

namespace luaspy {
namespace {

constexpr std::array intervals = {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0};  // s

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(c < 0x80 ? std::tolower(c) : c); });
  return text;
}

void remove_last_character(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
  if (!text.empty()) text.pop_back();
}

// The text that the filter searches.
std::string searched_text(const TopCounts& counts, const TopRow& row) {
  std::string text = describe(frame_of(counts, row), row.line != 0);
  if (row.thread != TopRow::all_threads)
    text += ' ' + counts.threads[row.thread].name + ' ' + std::to_string(counts.threads[row.thread].tid);
  return text;
}

}  // namespace

std::string_view description(Mode mode) {
  constexpr std::array<std::string_view, 4> texts = {"C and Lua", "Lua only", "native only", "everything"};
  return texts[static_cast<std::size_t>(mode)];
}

TopView::TopView(double interval, Charset charset) : charset_(charset) {
  const auto place = std::ranges::find_if(intervals, [&](double one) { return one >= interval; });
  interval_ = std::min(static_cast<std::size_t>(place - intervals.begin()), intervals.size() - 1);
}

double TopView::interval() const { return intervals[interval_]; }

TopView::Request TopView::press(const TopKey& key, const TopCounts& counts) {
  using Kind = TopKey::Kind;
  Request request = Request::none;
  if (key.kind != Kind::none) message_.clear();
  if (is_naming_file()) return press_in_file(key);
  if (is_editing_filter() && press_in_filter(key)) {
    show(counts);
    return request;
  }
  if (page_ == Page::help) {
    if (key.kind == Kind::character && key.text == "q") return Request::quit;
    if (key.kind != Kind::none) page_ = history_.empty() ? Page::table : Page::relations;
    show(counts);
    return request;
  }
  switch (key.kind) {
    case Kind::none:
      return request;
    case Kind::character:
      request = press_character(key.text);
      break;
    case Kind::up:
      move(-1);
      break;
    case Kind::down:
      move(1);
      break;
    case Kind::page_up:
      move(-static_cast<std::ptrdiff_t>(room_));
      break;
    case Kind::page_down:
      move(static_cast<std::ptrdiff_t>(room_));
      break;
    case Kind::home:
      move_to(0, 1);
      break;
    case Kind::end:
      move_to(items_.empty() ? 0 : items_.size() - 1, -1);
      break;
    case Kind::enter:
      enter();
      break;
    case Kind::escape:
    case Kind::backspace:
      leave();
      break;
  }
  show(counts);
  return request;
}

TopView::Request TopView::press_character(const std::string& text) {
  constexpr int column_count = 5;
  const auto turn_column = [&](int by) {
    column_ = static_cast<Column>((static_cast<int>(column_) + by + column_count) % column_count);
  };
  switch (text.size() == 1 ? text[0] : '\0') {
    case 'q':
      return Request::quit;
    case 'r':
      return Request::reset;
    case 's':
      turn_column(1);
      break;
    case 'S':
      turn_column(-1);
      break;
    case 'p':
      paused_ = !paused_;
      break;
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
      column_ = static_cast<Column>(text[0] - '1');
      break;
    case 't':
      grouping_.threads = !grouping_.threads, grouping_.processes = false;
      break;
    case 'P':
      grouping_.processes = !grouping_.processes, grouping_.threads = false;
      break;
    case 'v':
      switch_mode();
      break;
    case 'd':
      pane_ = !pane_;
      break;
    case 'o':
      edits_ = Edits::file;
      break;
    case 'l':
      grouping_.lines = !grouping_.lines;
      break;
    case 'w':
      since_start_ = !since_start_;
      break;
    case '+':
      interval_ -= interval_ == 0 ? 0 : 1;
      break;
    case '-':
      interval_ = std::min(interval_ + 1, intervals.size() - 1);
      break;
    case '/':
      if (page_ == Page::table) edits_ = Edits::filter;
      break;
    case '?':
    case 'h':
      page_ = Page::help;
      break;
    case 'k':
      move(-1);
      break;
    case 'j':
      move(1);
      break;
    case 'g':
      move_to(0, 1);
      break;
    case 'G':
      move_to(items_.empty() ? 0 : items_.size() - 1, -1);
      break;
    default:
      break;
  }
  return Request::none;
}

// True if the text has used the key.
bool TopView::edit(std::string& text, const TopKey& key) const {
  constexpr std::size_t longest = 200;
  if (key.kind == TopKey::Kind::backspace) return remove_last_character(text), true;
  if (key.kind != TopKey::Kind::character) return false;
  if (text.size() < longest) text += displayable(key.text, charset_);
  return true;
}

// True if the filter has used the key.
bool TopView::press_in_filter(const TopKey& key) {
  if (edit(filter_, key)) return true;
  if (key.kind != TopKey::Kind::escape && key.kind != TopKey::Kind::enter) return false;
  if (key.kind == TopKey::Kind::escape) filter_.clear();
  edits_ = Edits::nothing;
  return true;
}

TopView::Request TopView::press_in_file(const TopKey& key) {
  if (edit(file_, key)) return Request::none;
  if (key.kind == TopKey::Kind::escape || key.kind == TopKey::Kind::enter) edits_ = Edits::nothing;
  return key.kind == TopKey::Kind::enter && !file_.empty() ? Request::write : Request::none;
}

std::optional<TopRow> TopView::selected() const {
  if (cursor_ >= items_.size() || !items_[cursor_].can_be_chosen()) return {};
  return items_[cursor_].row;
}

// The rows of another mode are other rows.
void TopView::switch_mode() {
  const auto now = std::ranges::find(switched_modes, mode_);
  if (now == switched_modes.end()) return;
  mode_ = now + 1 == switched_modes.end() ? switched_modes.front() : *(now + 1);
  page_ = Page::table;
  history_.clear(), chosen_.reset();
}

// Enter on the function whose relations are shown goes back; on another row, it shows that row's
// relations.
void TopView::enter() {
  if (cursor_ >= items_.size() || !items_[cursor_].can_be_chosen()) return;
  if (items_[cursor_].role == Item::Role::self) return leave();
  history_.push_back(items_[cursor_]);
  page_ = Page::relations;
  chosen_ = Item{Item::Role::self, {}, {}};
  chosen_->row.function = history_.back().row.function;
}

void TopView::leave() {
  if (page_ == Page::table) {
    filter_.clear();
    return;
  }
  chosen_ = history_.back();
  history_.pop_back();
  if (history_.empty()) page_ = Page::table;
}

void TopView::move(std::ptrdiff_t by) {
  if (items_.empty()) return;
  const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(items_.size()) - 1;
  move_to(static_cast<std::size_t>(std::clamp(static_cast<std::ptrdiff_t>(cursor_) + by, std::ptrdiff_t{0}, last)),
          by < 0 ? -1 : 1);
}

// Moves the cursor to the item at `index`, or to the nearest one that can be chosen: in that
// direction if there is one, else in the other.
void TopView::move_to(std::size_t index, std::ptrdiff_t direction) {
  if (items_.empty()) return;
  const auto size = static_cast<std::ptrdiff_t>(items_.size());
  for (const std::ptrdiff_t step : {direction, -direction}) {
    auto place = static_cast<std::ptrdiff_t>(index);
    while (place >= 0 && place < size && !items_[static_cast<std::size_t>(place)].can_be_chosen()) place += step;
    if (place < 0 || place >= size) continue;
    cursor_ = static_cast<std::size_t>(place);
    chosen_ = items_[cursor_];
    if (page_ == Page::table && cursor_ == 0) chosen_.reset();
    return;
  }
}

void TopView::show(const TopCounts& counts) {
  items_.clear();
  if (page_ == Page::table) list_rows(counts);
  if (page_ == Page::relations) list_relations(counts);
  find_cursor();
  make_room(room_);
}

void TopView::list_rows(const TopCounts& counts) {
  std::vector<std::pair<TopRow, std::string>> rows;
  const Pattern wanted(filter_, Pattern::Case::same);
  const bool by_text = column_ == Column::function;
  for (const TopRow& row : top_rows(counts, grouping_)) {
    std::string text = by_text || !filter_.empty() ? searched_text(counts, row) : std::string();
    if (filter_.empty() || wanted.found_in(text)) rows.emplace_back(row, lower(std::move(text)));
  }
  // Largest first; ties are decided by the other columns, so that rows do not change places without
  // a cause.
  const auto key = [&](const TopRow& row) {
    const TopCounts::Times& times = row.times;
    std::int64_t first = part(times.own);
    if (column_ == Column::total_share) first = part(times.total);
    if (column_ == Column::own_time) first = times.own.all;
    if (column_ == Column::total_time) first = times.total.all;
    const bool by_own = column_ == Column::own_share || column_ == Column::own_time;
    const bool carries = by_own && is_carrier(counts.functions[row.function], part(times.own) != 0);
    return std::tuple(first, part(times.own), !carries, part(times.total), times.own.all, times.total.all);
  };
  if (by_text) std::ranges::stable_sort(rows, {}, [](const auto& row) -> const std::string& { return row.second; });
  else std::ranges::stable_sort(rows, std::greater(), [&](const auto& row) { return key(row.first); });
  for (const auto& [row, text] : rows) items_.push_back({Item::Role::row, row, {}});
}

void TopView::list_relations(const TopCounts& counts) {
  const TopRelations relations = top_relations(counts, history_.back().row.function);
  const auto list = [&](const char* heading, Item::Role role, const std::vector<TopRow>& rows) {
    items_.push_back({Item::Role::heading, {}, heading});
    if (role == Item::Role::callee) items_.push_back({Item::Role::own, relations.function, {}});
    else if (rows.empty())
      items_.push_back({Item::Role::note, {}, "no known caller: it is the thread's first function"});
    for (const TopRow& row : rows) items_.push_back({role, row, {}});
  };
  list("called by", Item::Role::caller, relations.callers);
  items_.push_back({Item::Role::heading, {}, "the function"});
  items_.push_back({Item::Role::self, relations.function, {}});
  list("calls", Item::Role::callee, relations.callees);
}

// Finds the chosen item again. If it is gone, the cursor stays in its row.
void TopView::find_cursor() {
  if (!chosen_) {
    cursor_ = 0;
    if (!items_.empty() && !items_[0].can_be_chosen()) move_to(0, 1);
    return;
  }
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].role == chosen_->role && items_[i].row.is_same(chosen_->row)) {
      cursor_ = i;
      return;
    }
  }
  const auto same_function = std::ranges::find_if(items_, [&](const Item& item) {
    return item.role == chosen_->role && item.row.function == chosen_->row.function;
  });
  if (same_function != items_.end()) cursor_ = static_cast<std::size_t>(same_function - items_.begin());
  else if (!items_.empty()) cursor_ = std::min(cursor_, items_.size() - 1);
  else cursor_ = 0;
}

void TopView::make_room(std::size_t items) {
  room_ = std::max<std::size_t>(items, 1);
  if (first_ + room_ > items_.size()) first_ = items_.size() > room_ ? items_.size() - room_ : 0;
  if (cursor_ < first_) first_ = cursor_;
  if (cursor_ >= first_ + room_) first_ = cursor_ - room_ + 1;
  // If the cursor is on the first item that can be chosen, the heading above it is shown, too.
  if (cursor_ == 1 && room_ > 1 && !items_.empty() && !items_[0].can_be_chosen()) first_ = 0;
}

}  // namespace luaspy
