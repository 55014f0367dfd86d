// The data that top collects, and how its keys and its screen use it.

#include <catch2/catch.hpp>

#include "profile/profile.h"
#include "top/top_plain.h"
#include "top/top_text.h"
#include "top_samples.h"

namespace luaspy::top_test {
namespace {

TopCounts::Times times_of(const TopCounts& counts, const std::string& text, TopGrouping grouping = {}) {
  for (const TopRow& row : top_rows(counts, grouping)) {
    if (describe(frame_of(counts, row), grouping.lines) == text) return row.times;
  }
  FAIL("no row " << text);
  return {};
}

std::vector<std::string> names(const TopView& view, const TopCounts& counts) {
  std::vector<std::string> all;
  for (const TopView::Item& item : view.items())
    all.push_back(item.can_be_chosen() ? frame_of(counts, item.row).name : '[' + item.text + ']');
  return all;
}

}  // namespace

TEST_CASE("a function that calls itself counts once in its total", "[top]") {
  FramedTable table(second);
  tick(table, sample_of({main_chunk, f, f, g, f}));
  tick(table, sample_of({main_chunk, f}));
  const TopCounts& counts = table.counts();
  const TopCounts::Times of_f = times_of(counts, "f (a.lua:10)");
  CHECK(of_f.own.all == 20 * ms);
  CHECK(of_f.total.all == 20 * ms);
  CHECK(times_of(counts, "g (a.lua:20)").own.all == 0);
  CHECK(times_of(counts, "g (a.lua:20)").total.all == 10 * ms);
  CHECK(times_of(counts, "main chunk (a.lua)").total.all == 20 * ms);
  CHECK(times_of(counts, "f (a.lua:12)", {.lines = true}).total.all == 20 * ms);

  const TopRelations relations = top_relations(counts, top_rows(counts, {})[1].function);
  REQUIRE(frame_of(counts, relations.function).name == "f");
  REQUIRE(relations.callers.size() == 3);
  CHECK(frame_of(counts, relations.callers[0]).name == "main chunk");
  CHECK(relations.callers[0].times.total.all == 20 * ms);
  CHECK(frame_of(counts, relations.callers[1]).name == "f");
  CHECK(relations.callers[1].times.total.all == 10 * ms);
  REQUIRE(relations.callees.size() == 2);
  CHECK(relations.callees[0].times.total.all == 10 * ms);
}

TEST_CASE("what is too old is not recent any more, and counts since the beginning", "[top]") {
  FramedTable table(second);
  for (int i = 0; i < 100; ++i) tick(table, sample_of({main_chunk, f}));
  for (int i = 0; i < 50; ++i) tick(table, sample_of({main_chunk, g, gsub}, VmState::c));
  const TopCounts& counts = table.counts();
  CHECK(counts.elapsed.recent == second);
  CHECK(counts.elapsed.all == 1500 * ms);
  CHECK(times_of(counts, "f (a.lua:10)").own.recent == 500 * ms);
  CHECK(times_of(counts, "f (a.lua:10)").own.all == second);
  CHECK(times_of(counts, "string.gsub [C]").own.recent == 500 * ms);
  CHECK(counts.activity[static_cast<std::size_t>(Activity::c)].recent == 500 * ms);
  CHECK(counts.activity[static_cast<std::size_t>(Activity::lua)].all == second);
  CHECK(counts.stopped.recent == 10 * ms);
  for (int i = 0; i < 200; ++i) table.add_idle(first), table.end_tick(10 * ms);
  CHECK(counts.idle.recent == second);
  CHECK(times_of(counts, "f (a.lua:10)").total.recent == 0);
  CHECK(times_of(counts, "main chunk (a.lua)").total.all == 1500 * ms);
  for (const TopCounts::Entry& entry : counts.entries) CHECK(entry.times.total.recent == 0);
  table.reset();
  CHECK(top_rows(counts, {}).empty());
  tick(table, sample_of({main_chunk, f}));
  CHECK(times_of(counts, "f (a.lua:10)").own.all == 10 * ms);
  CHECK(counts.elapsed.recent == 10 * ms);
}

TEST_CASE("a thread that sleeps does not run; losses have no function", "[top]") {
  FramedTable table(second);
  FramedSample asleep = sample_of({main_chunk, {Frame::Kind::marker, "[read]", {}, 0, 0}}, VmState::c);
  asleep.state = Sample::State::sleeping;
  tick(table, asleep);
  tick(table, asleep);
  FramedSample lost;
  lost.loss = Loss::refused;
  tick(table, lost);
  table.add_loss(Loss::late, 3);
  const TopCounts& counts = table.counts();
  CHECK(times_of(counts, "[read]").own.all == 20 * ms);
  CHECK(counts.idle.all == 20 * ms);
  CHECK(counts.activity[static_cast<std::size_t>(Activity::c)].all == 0);  // it did not run
  CHECK(losses_text(counts.losses) == "3 late ticks, 1 refused");
  CHECK(counts.threads_now == 1);
}

TEST_CASE("a function has the name that it is called by most", "[top]") {
  FramedTable table(second);
  Frame nameless = f;
  nameless.name = "function";
  for (int i = 0; i < 5; ++i) tick(table, sample_of({main_chunk, nameless}));
  tick(table, sample_of({main_chunk, f}));
  Frame other = f;
  other.name = "other";
  tick(table, sample_of({g, other}));
  CHECK(times_of(table.counts(), "f (a.lua:10)").own.all == 70 * ms);
  tick(table, sample_of({g, g, other}));
  CHECK(times_of(table.counts(), "other (a.lua:10)").own.all == 80 * ms);
}

// As in a profile (profile_test.cpp).
TEST_CASE("a function keeps the name where it lives, and functions that live elsewhere are others", "[top]") {
  FramedTable table(second);
  const auto function = [](const char* name, bool own) {
    Frame frame = {Frame::Kind::lua, name, "a.lua", 10, 10};
    frame.own_name = own;
    return sample_of({main_chunk, frame});
  };
  const auto rows = [&] { return top_rows(table.counts(), {}).size() - 1; };  // without the main chunk
  for (int i = 0; i < 3; ++i) tick(table, function("f", false));
  CHECK(times_of(table.counts(), "f (a.lua:10)").own.all == 30 * ms);
  tick(table, function("shop.buy", true));
  tick(table, function("f", false));
  CHECK(rows() == 1);
  CHECK(times_of(table.counts(), "shop.buy (a.lua:10)").own.all == 50 * ms);
  // The thread's last stack counted for shop.buy: that is not known any more.
  table.add(thread_info(1, 2, "two"), 10 * ms, function("shop.sell", true));
  for (int i = 0; i < 2; ++i) tick(table, function("f", false));
  tick(table, function("shop.buy", true));
  CHECK(rows() == 3);
  CHECK(times_of(table.counts(), "shop.buy (a.lua:10)").own.all == 60 * ms);
  CHECK(times_of(table.counts(), "shop.sell (a.lua:10)").own.all == 10 * ms);
  CHECK(times_of(table.counts(), "f (a.lua:10)").own.all == 20 * ms);
}

TEST_CASE("the collector is told where it is known, and else not claimed", "[top]") {
  FramedTable table(second);
  tick(table, sample_of({main_chunk, f, native("lua5.4+0x100")}));
  CHECK(told(table.counts(), Activity::collecting) == Told::unknown);
  CHECK(told(table.counts(), Activity::machine_code) == Told::absent);
  tick(table, sample_of({main_chunk, f, native("lua5.4+0x100"), native("lua5.4+0x200")}, VmState::collecting));
  CHECK(told(table.counts(), Activity::collecting) == Told::yes);
  CHECK(told(table.counts(), Activity::machine_code) == Told::absent);
  CHECK(table.counts().activity[static_cast<std::size_t>(Activity::collecting)].all == 10 * ms);
  tick(table, sample_of({main_chunk, f}));
  CHECK(table.counts().activity[static_cast<std::size_t>(Activity::lua)].all == 20 * ms);
  tick(table, sample_of({main_chunk, f}, VmState::machine_code));
  CHECK(told(table.counts(), Activity::machine_code) == Told::yes);
}

TEST_CASE("threads share functions, and are told apart where that is asked for", "[top]") {
  FramedTable table(second);
  table.add(first, 10 * ms, sample_of({main_chunk, f}));
  table.add(second_thread, 10 * ms, sample_of({main_chunk, f}));
  table.end_tick(10 * ms);
  const TopCounts& counts = table.counts();
  CHECK(counts.threads_now == 2);
  CHECK(share(times_of(counts, "f (a.lua:10)").own.recent, counts.elapsed.recent) == 200);  // 100 % is one thread
  CHECK(top_rows(counts, {}).size() == 2);
  const std::vector<TopRow> rows = top_rows(counts, {.threads = true});
  REQUIRE(rows.size() == 4);
  CHECK(rows[1].times.own.all == 10 * ms);
  TopView view(1, Charset::utf8);
  view.press(key("t"), counts);
  for (const char* const letter : {"/", "W", "o", "r", "k"}) view.press(key(letter), counts);
  REQUIRE(view.items().size() == 2);
  CHECK(counts.threads[view.items()[0].row.thread].name == "worker");
}

TEST_CASE("memory is bounded when functions and threads come and go", "[top]") {
  FramedTable table(100 * ms);
  for (int i = 0; i < 60'000; ++i) {
    table.add(thread_info(1, i, "short"), 10 * ms, sample_of({lua("made", "made-" + std::to_string(i), 1, 1)}));
    table.end_tick(10 * ms);
  }
  const TopCounts& counts = table.counts();
  CHECK(counts.functions.size() == 50'000);
  CHECK(counts.threads.size() == 1001);
  CHECK(times_of(counts, "[more functions than are kept apart]").own.all == std::int64_t{10'001} * 10 * ms);
}

TEST_CASE("all threads are counted, and each one's time, however many there are", "[top]") {
  constexpr int many = 1501, ticks = 40;
  FramedTable table(second);
  std::int64_t own = 0;
  for (int i = 0; i < ticks; ++i) {
    for (int thread = 0; thread < many; ++thread) {
      const ThreadInfo its = thread_info(7, thread + 1, "its");
      FramedSample sample = sample_of({main_chunk, lua("f" + std::to_string(thread), "a.lua", thread + 1, thread + 1)});
      table.add(its, 10 * ms, sample);
      own += 10 * ms;
    }
    table.add_idle(thread_info(7, 9999, "asleep"));
    table.end_tick(10 * ms);
  }
  const TopCounts& counts = table.counts();
  CHECK(counts.threads_now == many + 1);
  CHECK(counts.ran.recent == many);
  CHECK(threads_text(counts, {}, false) == "1502 threads, 1501 ran");
  CHECK(counts.threads.size() == 1001);
  CHECK(counts.activity[static_cast<std::size_t>(Activity::lua)].all == own);
  CHECK(times_of(counts, "main chunk (a.lua)").total.all == own);
  for (const int thread : {0, 999, 1000, 1001, 1500}) {
    const std::string name = "f" + std::to_string(thread) + " (a.lua:" + std::to_string(thread + 1) + ")";
    CHECK(times_of(counts, name).own.all == ticks * 10 * ms);
  }
  std::int64_t sum = 0, of_threads = 0, of_process = 0;
  for (const TopCounts::Entry& entry : counts.entries) sum += entry.times.own.all;
  for (const TopCounts::ThreadName& thread : counts.threads) of_threads += thread.ran.all;
  for (const TopRow& row : top_rows(counts, {.processes = true})) of_process += row.pid == 7 ? row.times.own.all : 0;
  CHECK(sum == 2 * own);  // by function and by line
  CHECK(of_threads == own);
  CHECK(of_process == own);
  table.begin_window();
  CHECK(counts.ran.recent == 0);
  CHECK(counts.ran.all == many);
}

TEST_CASE("threads that sleep take no row from those that run", "[top]") {
  FramedTable table(second);
  for (int thread = 1; thread <= 2004; ++thread) {
    if (thread < 2002) table.add_idle(thread_info(7, thread, "asleep"));
    else table.add(thread_info(7, thread, "runs"), 10 * ms, sample_of({main_chunk, f}));
  }
  table.end_tick(10 * ms);
  CHECK(threads_text(table.counts(), {}, false) == "2004 threads, 3 ran");
  CHECK(top_rows(table.counts(), {.threads = true}).size() == 6);
  CHECK(table.counts().threads.size() == 3);
  CHECK(table.counts().threads[0].tid == 2002);
  for (int i = 0; i < 200; ++i) table.end_tick(10 * ms);
  CHECK(threads_text(table.counts(), {}, false) == "0 threads, 0 ran");
  CHECK(threads_text(table.counts(), {}, true) == "0 threads, 3 ran");
}

TEST_CASE("how much of the CPU time is in the samples is shown, and doubted if it is little", "[top]") {
  FramedTable table(std::nullopt);
  for (int i = 0; i < 200; ++i) tick(table, sample_of({main_chunk, f}));
  TopTarget target;
  target.rate = 100;
  CHECK(plain_table(table.counts(), target).find("sampled") == std::string::npos);
  target.cpu.lua_ns = 2 * second, target.sampled_cpu_ns = 1960 * ms;
  CHECK_THAT(plain_table(table.counts(), target),
             Catch::Contains(", sampled 98 % of the 2.0 s of CPU time that was used meanwhile\n"));
  CHECK(doubts_of(table.counts(), target).empty());
  target.sampled_cpu_ns = 1160 * ms;
  CHECK_THAT(plain_table(table.counts(), target),
             Catch::Contains("# doubtful: only 58 % of the 2.0 s of CPU time that was used meanwhile was sampled"));
  TopView view(1, Charset::ascii);
  view.show(table.counts());
  std::string screen;
  for (const std::string& line : drawn(view, table.counts(), target, {100, 30})) screen += line + '\n';
  CHECK_THAT(screen, Catch::Contains(" | sampled 58 % | lost nothing"));
}

TEST_CASE("keys: sorting, filter, lines, pages", "[top]") {
  FramedTable table(second);
  for (int i = 0; i < 3; ++i) tick(table, sample_of({main_chunk, f, g}));
  for (int i = 0; i < 2; ++i) tick(table, sample_of({main_chunk, f}));
  tick(table, sample_of({main_chunk, gsub}, VmState::c));
  const TopCounts& counts = table.counts();
  TopView view(1, Charset::utf8);
  view.show(counts);
  CHECK(names(view, counts) == Strings{"g", "f", "string.gsub", "main chunk"});
  view.press(key("s"), counts);
  CHECK(view.sorted_by() == TopView::Column::total_share);
  CHECK(names(view, counts) == Strings{"main chunk", "f", "g", "string.gsub"});
  view.press(key("S"), counts), view.press(key("S"), counts);
  CHECK(view.sorted_by() == TopView::Column::function);
  CHECK(names(view, counts) == Strings{"f", "g", "main chunk", "string.gsub"});
  view.press(key("s"), counts);
  for (const char* const letter : {"/", "A", ".", "l", "q"}) view.press(key(letter), counts);  // q is text here
  CHECK(view.items().empty());
  view.press(key(TopKey::Kind::backspace), counts);
  CHECK(names(view, counts) == Strings{"g", "f", "main chunk"});
  view.press(key(TopKey::Kind::enter), counts);
  CHECK(view.press(key("q"), counts) == TopView::Request::quit);
  view.press(key(TopKey::Kind::escape), counts);
  CHECK(view.filter().empty());
  CHECK(view.items().size() == 4);
  for (const char* const letter : {"/", "^", "F", " ", "|", "g", "s", "u", "b", "$", "|", "["})
    view.press(key(letter), counts);
  CHECK(view.items().empty());  // no regular expression yet: it is searched for as it is
  view.press(key(TopKey::Kind::backspace), counts), view.press(key(TopKey::Kind::backspace), counts);
  CHECK(names(view, counts) == Strings{"f"});
  view.press(key(TopKey::Kind::escape), counts);
  view.press(key("l"), counts);
  CHECK(describe(frame_of(counts, view.items()[1].row), true) == "f (a.lua:12)");
  view.press(key("l"), counts);
  CHECK(view.press(key("r"), counts) == TopView::Request::reset);
  view.press(key("-"), counts);
  CHECK(view.interval() == 2);
  for (int i = 0; i < 20; ++i) view.press(key("+"), counts);
  CHECK(view.interval() == 0.1);
  view.press(key("p"), counts);
  CHECK(view.is_paused());
  view.press(key("?"), counts);
  CHECK(view.page() == TopView::Page::help);
  view.press(key("x"), counts);
  CHECK(view.page() == TopView::Page::table);
}

TEST_CASE("callers and callees, and the way back", "[top]") {
  FramedTable table(second);
  for (int i = 0; i < 3; ++i) tick(table, sample_of({main_chunk, f, g}));
  tick(table, sample_of({main_chunk, f}));
  const TopCounts& counts = table.counts();
  TopView view(1, Charset::utf8);
  view.show(counts);
  view.press(key(TopKey::Kind::down), counts);
  REQUIRE(frame_of(counts, view.items()[view.cursor()].row).name == "f");
  view.press(key(TopKey::Kind::enter), counts);
  CHECK(names(view, counts) == Strings{"[called by]", "main chunk", "[the function]", "f", "[calls]", "[]", "g"});
  CHECK(view.cursor() == 3);
  view.press(key(TopKey::Kind::down), counts);  // skips rows that cannot be chosen
  CHECK(view.cursor() == 6);
  view.press(key(TopKey::Kind::enter), counts);
  CHECK(names(view, counts) == Strings{"[called by]", "f", "[the function]", "g", "[calls]", "[]"});
  view.press(key(TopKey::Kind::escape), counts);
  CHECK(view.cursor() == 6);
  view.press(key(TopKey::Kind::up), counts);
  view.press(key(TopKey::Kind::enter), counts);  // on the function itself: back
  CHECK(view.page() == TopView::Page::table);
  CHECK(frame_of(counts, view.items()[view.cursor()].row).name == "f");
  const Strings lines = drawn(view, counts, {}, {80, 24});
  view.press(key(TopKey::Kind::enter), counts);
  const Strings relations = drawn(view, counts, {}, {80, 24});
  CHECK(relations[7].find(" 100.0  100.0     0.04s  main chunk (a.lua)") != std::string::npos);
  CHECK(relations[11].find("  25.0   25.0     0.01s  (its own work)") != std::string::npos);
  CHECK(relations[12].find("  75.0   75.0     0.03s  g (a.lua:20)") != std::string::npos);
}

TEST_CASE("the cursor stays on its function, and in sight", "[top]") {
  FramedTable table(second);
  for (int i = 1; i <= 40; ++i)
    tick(table, sample_of({lua("f" + std::to_string(i), "many.lua", i, i)}), (100 - i) * ms / 10);
  TopView view(1, Charset::utf8);
  view.show(table.counts());
  const auto here = [&] { return frame_of(table.counts(), view.items()[view.cursor()].row).name; };
  drawn(view, table.counts(), {}, {80, 17});  // ten rows
  REQUIRE(view.room() == 10);
  CHECK(here() == "f1");
  view.press(key(TopKey::Kind::page_down), table.counts());
  view.press(key(TopKey::Kind::down), table.counts());
  CHECK(here() == "f12");
  CHECK(view.first() == 2);
  for (int i = 0; i < 50; ++i) tick(table, sample_of({lua("f12", "many.lua", 12, 12)}), ms);  // moves it to the top
  view.show(table.counts());
  CHECK(here() == "f12");
  CHECK(view.cursor() == 0);
  CHECK(view.first() == 0);
  view.press(key(TopKey::Kind::end), table.counts());
  CHECK(here() == "f40");
  CHECK(view.first() == 30);
  drawn(view, table.counts(), {}, {80, 47});  // there is room for all
  CHECK(view.first() == 0);
  view.press(key(TopKey::Kind::home), table.counts());
  tick(table, sample_of({lua("new", "many.lua", 99, 99)}), 500 * ms);
  view.show(table.counts());
  CHECK(here() == "new");  // without leaving the top, one sees the current first row
}

TEST_CASE("any size, and hostile names", "[top]") {
  FramedTable table(second);
  const Frame hostile = lua(
      "\x1b[2J\xe2\x80\xae\xff\n\t\x9b"
      "31m",
      std::string(3000, 'x') + "\x1b]0;title\x07.lua", 1, 1);
  const Frame wide = lua("日本語の関数名前関数名前関数名前関数名前", "ソース/ファイル.lua", 1, 1),
              accent = lua("e\xcc\x81t\xc3\xa9", "\xcc\x81.lua", 2, 2);
  for (int i = 0; i < 30; ++i) {
    table.add(thread_info(1, 2, "\x1b[31mthread\x07"), 10 * ms,
              sample_of({main_chunk, hostile, wide, accent, lua(std::string(300, 'n'), "b.lua", i, i)}));
    table.end_tick(10 * ms);
  }
  TopTarget target;
  target.command = "lua\x1b[31m " + std::string(500, 'y');
  target.luas = {"Lua 5.4\x1b"};
  for (const Charset charset : {Charset::utf8, Charset::ascii}) {
    TopView view(1, charset);
    for (const char* const page : {"w", "t", "l", "?", "\n", "p"}) {
      view.press(page[0] == '\n' ? key(TopKey::Kind::enter) : key(page), table.counts());
      for (const TopSize size : {TopSize{60, 24}, {80, 24}, {200, 50}, {1, 1}, {7, 3}, {20, 8, false}, {60, 6}}) {
        for (const std::string& line : drawn(view, table.counts(), target, size)) {
          for (const char c : line) {
            const auto byte = static_cast<unsigned char>(c);
            REQUIRE(byte >= 0x20);
            REQUIRE(byte != 0x7f);
            if (charset == Charset::ascii) REQUIRE(byte < 0x80);
          }
          CHECK(line.find("\xe2\x80\xae") == std::string::npos);
        }
      }
    }
  }
  const std::string plain = plain_table(table.counts(), target);
  CHECK(plain.find('\x1b') == std::string::npos);
}

TEST_CASE("functions that begin on the same line are rows of their own", "[unit]") {
  FramedTable table(10 * second);
  const auto function = [](const char* name, std::uint32_t prototype) {
    Frame frame = lua(name, "a.lua", 1, 1);
    frame.prototype = prototype;
    return frame;
  };
  for (const Frame& frame : {function("alpha", 7), function("beta", 9), function("alpha", 7), function("function", 30),
                             function("function", 20), function("late", 20)})
    tick(table, sample_of({main_chunk, frame}));
  const TopCounts counts = table.counts();
  CHECK(times_of(counts, "alpha (a.lua:1)").own.all == 20 * ms);
  CHECK(times_of(counts, "beta (a.lua:1)").own.all == 10 * ms);
  CHECK(times_of(counts, "function (a.lua:1)").own.all == 10 * ms);
  CHECK(times_of(counts, "late (a.lua:1)").own.all == 20 * ms);
}

}  // namespace luaspy::top_test
