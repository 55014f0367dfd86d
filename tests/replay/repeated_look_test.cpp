// Looks that find the same stack again: from the states and native frames that were found to the number of the stack,
// they allocate nothing.

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/mode.h"
#include "luastate/luas.h"
#include "stack/stack_namer.h"
#include "support/count_allocations.h"
#include "support/load_stop.h"

namespace luaspy::replay::repeated_look_test {
namespace {

// A saved stop whose functions may get other names.
struct RenamedStop : SavedStop {
  explicit RenamedStop(SavedStop from) : SavedStop(std::move(from)) {}
  std::uint64_t renamed = 0;
  std::uint64_t descriptions() const override { return renamed; }
};

// The memory of a saved stop, of which a part can no longer be read.
struct PartlyGone : Memory {
  explicit PartlyGone(const Memory& all) : all(all) {}
  bool read(Address address, std::span<std::byte> into) const override {
    return (gone < address || gone >= address + into.size()) && all.read(address, into);
  }

  const Memory& all;
  Address gone = 0;
};

class RepeatedLook {
 public:
  explicit RepeatedLook(const std::string& file)
      : stop(load_stop(file)), live(stop.memory), reader_(live, stop.memory, {}, *stop.machine), namer_(stacks) {
    reader_.try_layouts(layouts_for(stop.version));
  }

  // Returns how often it has allocated after the calls were found.
  std::int64_t look() {
    const Locator::ThreadStack stack = {stop.stack_start, stop.stack};
    reader_.locate({stop.memory, stop.registers, stack}, {}, true, located_);
    const LookMemory look{stop.registers, stack, stop.memory, stop.memory};
    Joined room = std::exchange(joined_, {});
    Walked walked = reader_.walk(located_, look, std::move(room.from.lua));
    Matched matched = match(reader_, stop, look, std::move(walked), stop.natives);
    const std::int64_t before = test::allocations();
    joined_ = join(reader_, stop, std::move(matched), {}, stop.memory, std::move(room));
    id = namer_.name(reader_, stop, joined_, stop.memory);
    return test::allocations() - before;
  }
  std::vector<std::string> lines() const {
    Stack stack = stacks.frames_of(id);
    keep_shown(Mode::merged, stack);
    std::vector<std::string> lines;
    for (const Frame& frame : stack) lines.push_back(describe(frame, true));
    return lines;
  }
  Names& names() { return reader_.names(); }
  // Where the instructions of a Lua function are.
  Address code() const {
    for (const StackCall& call : joined_.calls) {
      if (call.state != nullptr && call.walk->calls[call.call].is_lua()) return call.walk->calls[call.call].code;
    }
    return 0;
  }

  RenamedStop stop;
  PartlyGone live;
  StackTable stacks;
  StackId id = empty_stack;

 private:
  LuaInspector reader_;
  StackNamer namer_;
  Located located_;
  Joined joined_;
};

std::vector<std::string> stop_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(LUASPY_TESTS "/replay/stops")) {
    if (entry.path().extension() == ".stop") files.push_back(entry.path().string());
  }
  return files;
}

}  // namespace

TEST_CASE("allocations are counted", "[replay]") {
  const std::int64_t before = test::allocations();
  auto text = std::make_unique<std::string>(100, 'x');
  text.reset();
  CHECK(test::allocations() - before == 2);
}

TEST_CASE("a look that finds its stack again allocates nothing", "[replay]") {
  for (const std::string& file : stop_files()) {
    INFO(file);
    RepeatedLook repeated(file);
    CHECK(repeated.look() > 0);
    const StackId first = repeated.id;
    // Up to 16 looks read the tables through which LuaJIT has called a function, to compare it (Names::is_true).
    for (int warm = 0; warm < 16; ++warm) (void)repeated.look();
    // package.loaded is read again after 4, 16, 64 … calls of functions that it does not have.
    int allocating = 0;
    for (int i = 0; i < 8; ++i) allocating += repeated.look() != 0 ? 1 : 0;
    CHECK(allocating <= 1);
    repeated.names().stand_still(true);  // it is not read now
    for (int i = 0; i < 8; ++i) CHECK(repeated.look() == 0);
    CHECK(repeated.id == first);
    CHECK(repeated.lines() == repeated.stop.expected);
  }
}

TEST_CASE("a function that cannot be read is tried once in each look", "[replay]") {
  int tried = 0;
  for (const std::string& file : stop_files()) {
    INFO(file);
    RepeatedLook whole(file), repeated(file);
    (void)whole.look();
    repeated.live.gone = whole.code();
    for (int i = 0; i < 2; ++i) {
      (void)repeated.look();
      CHECK(repeated.names().drain_gone() == 1);
    }
    ++tried;
  }
  CHECK(tried >= 11);
}

TEST_CASE("what is known of frames is forgotten with their table and with the names of functions", "[replay]") {
  for (const std::string& file : stop_files()) {
    INFO(file);
    RepeatedLook repeated(file);
    for (int i = 0; i < 2; ++i) (void)repeated.look();
    repeated.stacks = {};
    (void)repeated.stacks.intern(marker("[of another look]"));
    (void)repeated.look();
    CHECK(repeated.lines() == repeated.stop.expected);

    for (auto& [start, frame] : repeated.stop.names) frame.name += "_renamed";
    ++repeated.stop.renamed;
    (void)repeated.look();
    const Stack stack = repeated.stacks.frames_of(repeated.id);
    CHECK(std::ranges::any_of(stack, [](const Frame& frame) { return frame.name.ends_with("_renamed"); }));
    for (const Frame& frame : stack) CHECK((frame.kind != Frame::Kind::native || frame.name.ends_with("_renamed")));
  }
}

}  // namespace luaspy::replay::repeated_look_test
