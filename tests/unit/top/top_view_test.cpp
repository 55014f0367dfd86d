// What the user of top can choose: columns, processes, modes, a file to write.

#include <algorithm>

#include "top_samples.h"

namespace luaspy::top_view_test {

TEST_CASE("a key switches which frames are shown", "[top]") {
  FramedTable table(second);
  tick(table, sample_of({main_chunk, f}));
  TopView view(1, Charset::utf8);
  view.show(table.counts());
  view.press(key(TopKey::Kind::enter), table.counts());
  for (const Mode mode : {Mode::lua, Mode::all, Mode::merged}) {
    view.press(key("v"), table.counts());
    CHECK(view.mode() == mode);
    CHECK(view.page() == TopView::Page::table);
    const Strings lines = drawn(view, table.counts(), TopTarget(), {80, 24});
    const bool told = lines[4].find(description(mode)) != std::string::npos;
    CHECK(told == (mode != Mode::merged));
  }
  view.begin_with(Mode::native);
  view.press(key("v"), table.counts());
  CHECK(view.mode() == Mode::native);
}

TEST_CASE("each column has its number", "[top]") {
  FramedTable table(second);
  tick(table, sample_of({main_chunk, f}));
  TopView view(1, Charset::utf8);
  for (int column = 5; column >= 1; --column) {
    view.press(key(std::to_string(column).c_str()), table.counts());
    CHECK(static_cast<int>(view.sorted_by()) == column - 1);
  }
}

TEST_CASE("a row for each process", "[top]") {
  FramedTable table(second);
  for (const int pid : {10, 10, 20}) {
    table.add(thread_info(pid, pid + 1, "worker"), 10 * ms, sample_of({main_chunk, f}));
    table.add(thread_info(pid, pid, "lua5.4"), 10 * ms, sample_of({main_chunk, f}));
    table.end_tick(10 * ms);
  }
  TopView view(1, Charset::utf8);
  view.press(key("t"), table.counts()), view.press(key("P"), table.counts());
  CHECK(!view.grouping().threads);
  REQUIRE(view.items().size() == 4);
  CHECK(view.items()[0].row.pid == 10);
  CHECK(view.items()[0].row.times.own.all == 40 * ms);
  CHECK(view.items()[1].row.pid == 20);
  CHECK(view.items()[1].row.times.own.all == 20 * ms);
  const Strings lines = drawn(view, table.counts(), TopTarget(), {80, 24});
  CHECK(std::ranges::any_of(lines, [](const std::string& line) { return line.find(" lua5.4 20 ") != line.npos; }));
}

TEST_CASE("the latest stack of a row, innermost if there is one", "[top]") {
  FramedTable table(second);
  tick(table, sample_of({main_chunk, f, g}));
  tick(table, sample_of({main_chunk, f}));
  tick(table, sample_of({main_chunk, f, gsub}));
  const auto latest = [&](const std::string& name, TopGrouping grouping = {}) {
    for (const TopRow& row : top_rows(table.counts(), grouping)) {
      if (frame_of(table.counts(), row).name == name) return table.latest(row);
    }
    return std::optional<TopSeen>();
  };
  CHECK(latest("f")->stack == Stack{main_chunk, f});
  CHECK(latest("f", {.lines = true})->stack == Stack{main_chunk, f});
  CHECK(latest("g")->stack == Stack{main_chunk, f, g});
  CHECK(latest("main chunk")->stack == Stack{main_chunk, f, gsub});
  CHECK(latest("f", {.threads = true})->pid == 10);
  for (int i = 0; i < 2; ++i) tick(table, sample_of({main_chunk, f}), second);
  CHECK(!latest("g"));  // not within the window
}

TEST_CASE("a file name is typed, and written to or not", "[top]") {
  FramedTable table(second);
  tick(table, sample_of({main_chunk, f}));
  const TopCounts& counts = table.counts();
  TopView view(1, Charset::utf8);
  view.show(counts);
  CHECK(view.press(key("o"), counts) == TopView::Request::none);
  view.propose_file("a.html");
  CHECK(view.is_naming_file());
  for (int i = 0; i < 4; ++i) view.press(key(TopKey::Kind::backspace), counts);
  for (const char* const letter : {"q", ".", "s", "v", "g"})
    CHECK(view.press(key(letter), counts) == TopView::Request::none);
  CHECK(drawn(view, counts, TopTarget(), {80, 24})[4].find("write a profile to: a.q.svg_") != std::string::npos);
  CHECK(view.press(key(TopKey::Kind::enter), counts) == TopView::Request::write);
  CHECK(view.file_name() == "a.q.svg");
  CHECK(!view.is_naming_file());
  view.show_message("written: a.q.svg");
  CHECK(drawn(view, counts, TopTarget(), {80, 24})[4].find("written: a.q.svg") != std::string::npos);
  view.press(key("o"), counts);
  CHECK(view.message().empty());
  CHECK(view.press(key(TopKey::Kind::escape), counts) == TopView::Request::none);
  CHECK(!view.is_naming_file());
  CHECK(view.press(key("q"), counts) == TopView::Request::quit);
}

}  // namespace luaspy::top_view_test
