#pragma once
// What the user has chosen to see in top, and how each key changes it. Independent of a terminal:
// it receives keys, and top_lines draws its state.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/display_text.h"
#include "base/mode.h"
#include "top/top_counts.h"

namespace luaspy {

// What the key "v" switches between, in this order. Mode::native is another way of sampling.
inline constexpr std::array switched_modes = {Mode::merged, Mode::lua, Mode::all};
std::string_view description(Mode mode);  // "C and Lua"

struct TopKey {
  enum class Kind {
    none,
    character,
    up,
    down,
    page_up,
    page_down,
    home,
    end,
    enter,
    escape,
    backspace
  } kind = Kind::none;
  std::string text;  // character: in UTF-8
};

class TopView {
 public:
  enum class Column { own_share, total_share, own_time, total_time, function };
  enum class Request { none, quit, reset, write };  // write: to file_name()
  enum class Page { table, relations, help };

  // A line of the page. `own`: the time in the function itself, shown next to its callees.
  struct Item {
    enum class Role { row, caller, self, callee, own, heading, note } role = Role::row;
    TopRow row;
    std::string text;  // heading, note
    bool can_be_chosen() const {
      return role == Role::row || role == Role::caller || role == Role::self || role == Role::callee;
    }
  };

  TopView(double interval, Charset charset);

  // `counts`: those of the last show().
  Request press(const TopKey& key, const TopCounts& counts);
  // Call after new counts or changed choices: lists the items again; the cursor stays on its
  // function.
  void show(const TopCounts& counts);
  // Sets how many items fit on the screen. Call before items are drawn.
  void make_room(std::size_t items);

  Page page() const { return page_; }
  TopGrouping grouping() const { return grouping_; }
  Column sorted_by() const { return column_; }
  const std::string& filter() const { return filter_; }
  bool is_editing_filter() const { return edits_ == Edits::filter; }
  bool is_naming_file() const { return edits_ == Edits::file; }
  const std::string& file_name() const { return file_; }
  void propose_file(std::string name) { file_ = std::move(name); }
  // Something to tell the user until the next key.
  void show_message(std::string message) { message_ = std::move(message); }
  const std::string& message() const { return message_; }
  // Which frames are shown.
  void begin_with(Mode mode) { mode_ = mode; }
  Mode mode() const { return mode_; }
  bool shows_pane() const { return pane_ && page_ != Page::help; }
  // What the cursor is on; nullopt: nothing.
  std::optional<TopRow> selected() const;
  bool is_paused() const { return paused_; }
  bool is_since_start() const { return since_start_; }  // shares are of the whole time, not of the window
  double interval() const;                              // s
  Charset charset() const { return charset_; }
  std::int64_t part(const TopCounts::Span& span) const { return since_start_ ? span.all : span.recent; }

  const std::vector<Item>& items() const { return items_; }
  std::size_t cursor() const { return cursor_; }  // into items()
  std::size_t first() const { return first_; }    // the first item on the screen
  std::size_t room() const { return room_; }

 private:
  Request press_character(const std::string& text);
  enum class Edits { nothing, filter, file };
  bool press_in_filter(const TopKey& key);
  Request press_in_file(const TopKey& key);
  bool edit(std::string& text, const TopKey& key) const;
  void switch_mode();
  void enter();
  void leave();
  void move(std::ptrdiff_t by);
  void move_to(std::size_t index, std::ptrdiff_t direction);
  void list_rows(const TopCounts& counts);
  void list_relations(const TopCounts& counts);
  void find_cursor();

  Charset charset_;
  Page page_ = Page::table;
  Mode mode_ = Mode::merged;
  TopGrouping grouping_;
  Column column_ = Column::own_share;
  std::string filter_, file_, message_;
  Edits edits_ = Edits::nothing;
  bool paused_ = false, since_start_ = false, pane_ = false;
  std::size_t interval_ = 0;
  std::vector<Item> items_;
  std::vector<Item> history_;   // relations: the chosen functions; the last one is shown
  std::optional<Item> chosen_;  // where the cursor is; nullopt: on the first item, whatever that is
  std::size_t cursor_ = 0, first_ = 0, room_ = 1;
};

}  // namespace luaspy
