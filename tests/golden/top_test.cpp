// Whole screens of top, in each form.

#include "support/framed_top.h"
#include "support/golden.h"
#include "support/sample_profile.h"
#include "top/top_lines.h"
#include "top/top_plain.h"

namespace luaspy::golden_top_test {
namespace {

constexpr std::int64_t ms = 1'000'000;

TopCounts sample_counts() {
  FramedTable table(2000 * ms);
  table.set_luajit();
  const Frame main = native("main", "shop"), chunk = lua("main chunk", "/srv/shop/app/main.lua", 0, 30),
              discount = lua("discount", "/srv/shop/app/orders.lua", 11, 15);
  const Frame total = lua("total", "/srv/shop/app/orders.lua", 20, 22),
              fib = lua("fib", "/srv/shop/app/math/numbers.lua", 3, 4),
              gsub = {Frame::Kind::c, "string.gsub", "shop", 0, 0};
  const Frame resize = native("lj_tab_resize", "libluajit-5.1.so.2.1.0"),
              price = lua("Preis_für_größere_Mengen", "/srv/shop/app/orders.lua", 40, 44);
  const Frame waits = {Frame::Kind::marker, "[epoll_wait]", {}, 0, 0};
  for (int i = 0; i < 1000; ++i) {
    const auto add = [&](const ThreadInfo& thread, VmState vm_state, Stack stack, bool asleep = false) {
      FramedSample sample;
      sample.vm_state = vm_state;
      sample.quality.stacks = sample.quality.with_lua = sample.quality.native_complete = 1;
      sample.stack = std::move(stack);
      sample.state = asleep ? Sample::State::sleeping : Sample::State::running;
      sample.stopped_ns = asleep ? 0 : 30'000;
      table.add(thread, 10 * ms, sample);
    };
    const ThreadInfo first = thread_info(4711, 4711, "shop"), second = thread_info(4711, 4712, "shop-worker-number-2");
    switch (i % 10) {
      case 0:
        add(first, VmState::collecting, {main, chunk, total, resize});
        break;
      case 1:
        add(first, VmState::c, {main, chunk, total, gsub});
        break;
      case 2:
        add(first, VmState::recording, {main, chunk, total, fib, fib, fib});
        break;
      case 3:
        add(first, VmState::interpreting, {main, chunk, price});
        break;
      case 9:
        table.add_idle(first);
        break;
      default:
        add(first, VmState::machine_code, {main, chunk, total, discount});
        break;
    }
    add(second, VmState::c, {main, chunk, waits}, true);
    table.end_tick(10 * ms);
  }
  table.add_loss(Loss::late, 12);
  table.add_loss(Loss::moved, 3);
  return table.counts();
}

TopTarget sample_target() {
  TopTarget target;
  target.command = "/usr/bin/shop --config /etc/shop/größen.conf --listen 127.0.0.1:8080 --workers 2";
  target.pid = 4711;
  target.luas = {"LuaJIT 2.1"};
  target.rate = 100;
  target.heap = {1, {12'897'484, 8'000'000, 15'000'000, 1'258'291.2, 3.04}, {12'897'484, 0, 15'000'000, -2048, 0}};
  target.window = 2;
  return target;
}

// `styled`: text that is not plain becomes "{style:text}".
std::string text_of(TopView& view, const TopTarget& target, TopSize size, bool styled = false,
                    const TopPane& pane = {}) {
  static constexpr std::array styles = {"plain",         "bold",    "dim",  "heading", "sorted", "warning", "key",
                                        "hot",           "warm",    "lua",  "c",       "code",   "gc",      "compiler",
                                        "native-thread", "waiting", "idle", "native",  "kernel", "marker"};
  const TopCounts counts = sample_counts();
  view.show(counts);
  std::string text;
  for (const TopLine& line : draw_top(view, counts, target, size, pane)) {
    if (styled && line.selected) text += '>';
    for (const TopSpan& span : line.spans) {
      const bool marked = styled && span.style != TopStyle::plain && !span.text.empty();
      text += marked ? std::string("{") + styles[static_cast<std::size_t>(span.style)] + ':' + span.text + '}'
                     : span.text;
    }
    while (text.ends_with(' ')) text.pop_back();
    text += '\n';
  }
  return text;
}

void press(TopView& view, const char* keys) {
  for (const char* key = keys; *key != '\0'; ++key) {
    view.press(*key == '\n' ? TopKey{TopKey::Kind::enter, {}} : TopKey{TopKey::Kind::character, std::string(1, *key)},
               sample_counts());
  }
}

}  // namespace

TEST_CASE("top: the table", "[golden]") {
  TopView view(1, Charset::utf8);
  golden::check("top.txt", text_of(view, sample_target(), {80, 24}));
  golden::check("top.styled.txt", text_of(view, sample_target(), {100, 30}, true));
  golden::check("top.plain.txt", plain_table(sample_counts(), sample_target()));
}

TEST_CASE("top: 60 columns, ASCII, without colours, ended, by thread and line", "[golden]") {
  TopView view(1, Charset::ascii);
  press(view, "tl/shop\np");
  TopTarget target = sample_target();
  target.ended = true;
  golden::check("top.narrow.txt", text_of(view, target, {60, 20, false}));
}

TEST_CASE("top: 40 columns", "[golden]") {
  TopView view(1, Charset::utf8);
  golden::check("top.40.txt", text_of(view, sample_target(), {40, 20}));
}

TEST_CASE("top: the stack of a row", "[golden]") {
  TopView view(1, Charset::utf8);
  press(view, "d");
  TopPane pane = {true, true, {}};
  for (int i = 20; i > 0; --i)
    pane.rows.push_back(
        {lua("fib", "/srv/shop/app/math/numbers.lua", 3, 4), SourceLine{"return fib(n - 1) + fib(n - 2)"}});
  golden::check("top.pane.txt", text_of(view, sample_target(), {80, 24}, false, pane));
}

TEST_CASE("top: callers and callees, help", "[golden]") {
  TopView view(1, Charset::utf8);
  press(view, "/total\n\n");
  golden::check("top.relations.txt", text_of(view, sample_target(), {80, 24}));
  press(view, "?");
  golden::check("top.help.txt", text_of(view, sample_target(), {60, 24}));
}

}  // namespace luaspy::golden_top_test
