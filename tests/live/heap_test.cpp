// luaspy heap on real Luas: objects are counted as the program counts them, sizes add up to what
// Lua says, and paths and holders are those of the program.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include "support/harness.h"

namespace luaspy::live::heap_test {
namespace {

using nlohmann::json;

json parsed(const Finished& finished) {
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  return json::parse(finished.out);
}

json heap_of(pid_t pid, const Words& options = {}) {
  return parsed(luaspy(Words{"heap", "--json", "--lines", "1000", "--pid", std::to_string(pid)} + options));
}

const json& only_state(const json& heap) {
  REQUIRE(heap.at("states").size() == 1);
  return heap.at("states").at(0);
}

// The class of that name and type; null if there is none.
json class_in(const json& state, const std::string& type, const std::string& name) {
  for (const json& each : state.at("classes")) {
    if (each.at("type") == type && each.at("class") == name) return each;
  }
  return {};
}

std::int64_t count_of(const json& state, const std::string& type, const std::string& name) {
  const json found = class_in(state, type, name);
  return found.is_null() ? 0 : found.at("count").get<std::int64_t>();
}

// What the program says that it has made: "300 table {body, id, when}".
void check_made(const json& state, const std::vector<std::string>& made) {
  CHECK(made.size() >= 9);
  for (const std::string& line : made) {
    std::istringstream words(line);
    std::int64_t count = 0;
    std::string type, name;
    words >> count >> type;
    std::getline(words >> std::ws, name);
    INFO(line);
    CHECK(count_of(state, type, name) == count);
  }
}

std::string text_of(const Words& options) {
  const Finished finished = luaspy(Words{"heap"} + options);
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  return finished.out;
}

Words luas() {
  return prepared({"debian-lua5.1-bookworm", "debian-lua5.2-bookworm", "debian-lua5.3-bookworm",
                   "debian-lua5.4-bookworm", "debian-lua5.5-sid", "debian-luajit-bookworm", "debian-luajit-trixie",
                   "luajit-2.0.20260330-gc32"});
}

Words luas_of_all_numbers() {
  Words names = luas();
  for (const TargetSpec& spec : numbers()) names.push_back(spec.name);
  return names;
}

}  // namespace

TEST_CASE("a heap at rest is counted to the byte, by class and by holder", "[heap][luas][smoke]") {
  const std::string name = GENERATE_COPY(from_range(luas_of_all_numbers()));
  INFO(name);
  Running running(lua({workload("objects.lua"), "wait"}, name));
  const std::vector<std::string> made = running.read_until("READY");
  const json heap = heap_of(running.pid());
  CHECK(heap.at("stood_still_ms") == 0);  // it sleeps: nothing has to be stopped
  CHECK(heap.at("of_one_instant") == true);
  const json& state = only_state(heap);
  CHECK(state.at("complete") == true);
  CHECK(state.at("difference_bytes") == 0);
  check_made(state, made);
  // Only weak references.
  CHECK(count_of(state, "table", "{gone}") == 0);
  CHECK(count_of(state, "table", "{lost_key}") == 0);
  CHECK(count_of(state, "table", "{lost}") == 0);
  // Retained: by one object, and by all of a class.
  const json link = class_in(state, "table", "{next_link, number}");
  const json first = class_in(state, "table", "{number}");
  CHECK(link.at("retained") == link.at("bytes").get<std::int64_t>() + first.at("bytes").get<std::int64_t>());
  const json keys = class_in(state, "table", "{key}"), values = class_in(state, "table", "{of_key}");
  const bool has_ephemerons = name.find("lua5.1") == std::string::npos && name.find("lua-5.1") == std::string::npos &&
                              name.find("luajit") == std::string::npos;
  if (has_ephemerons)
    CHECK(keys.at("retained") == keys.at("bytes").get<std::int64_t>() + values.at("bytes").get<std::int64_t>());
  else CHECK(keys.at("retained") == keys.at("bytes"));
  // Every object is in one class and one type.
  std::int64_t in_classes = 0, in_types = 0;
  for (const json& each : state.at("classes")) in_classes += each.at("count").get<std::int64_t>();
  for (const json& each : state.at("types")) in_types += each.at("live").at("count").get<std::int64_t>();
  CHECK(in_classes == state.at("live").at("count"));
  CHECK(in_types == state.at("live").at("count"));
}

TEST_CASE("paths are in Lua's words", "[heap][luas]") {
  const std::string name = GENERATE_COPY(from_range(luas()));
  INFO(name);
  const Folder folder;
  Running running(lua({workload("objects.lua"), "wait"}, name));
  running.read_until("READY");
  const std::string file = folder.path("objects.luaheap");
  REQUIRE(luaspy({"heap", "--pid", std::to_string(running.pid()), "-o", file}).status == 0);
  const auto path = [&](const std::string& what) { return text_of({file, "--lines", "1", "--path", what}); };
  CHECK(path("{body, id, when}").find("store.records[") != std::string::npos);
  CHECK(path("Account").find("store.accounts[") != std::string::npos);
  CHECK(path("{only}").find("store.reader → upvalue upvalue_only") != std::string::npos);
  CHECK(path("{count}").find(" → upvalue held") != std::string::npos);
  CHECK(path("{session}").find(" → local session of function (") != std::string::npos);
  CHECK(path("{next_link, number}").find("store.chain") != std::string::npos);
  const std::string records = text_of({file, "--class", "{body, id, when}"});
  CHECK(records.find("300 tables {body, id, when}") != std::string::npos);
  CHECK(records.find("store.records\n") != std::string::npos);
  CHECK(text_of({file, "--retained-by", "{next_link, number}"}).find("99 tables") == std::string::npos);
  CHECK(luaspy({"heap", file, "--class", "nothing like it"}).status == 2);
}

// What the report prints of objects and classes is what --object, --path and --class take.
TEST_CASE("what heap prints of an object or a class can be given back", "[heap][luas]") {
  const std::string name = GENERATE_COPY(
      from_range(prepared({"debian-lua5.1-bookworm", "debian-lua5.4-bookworm", "debian-luajit-bookworm"})));
  INFO(name);
  const Folder folder;
  const std::string script = folder.write(
      "sessions.lua",
      "local Account = {}\n"
      "Account.__index, Account.__name = Account, 'Account'\n"
      "package.loaded.bank = {Account = Account}\n"
      "sessions, accounts = {}, {}\n"
      "for i = 1, 200 do sessions['s' .. i] = {log = {line = {number = i}}} end\n"
      "for i = 1, 50 do accounts[i] = setmetatable({i}, Account) end\n"
      "local function keeper(kept) return function() return kept end end\n"
      "for i = 1, 40 do debug.getregistry()['f_' .. i] = keeper({only = i}) end\n"
      "print('READY') io.flush() io.read()\n"
      "for i = 1, 200 do local l = sessions['s' .. i].log l.more = {fresh = i} end\n"
      "print('READY') io.flush() io.read()\n");
  Running running(lua({script}, name));
  running.read_until("READY");
  const std::string file = folder.path("before.luaheap"), now = folder.path("now.luaheap");
  const Finished kept = luaspy({"heap", "--pid", std::to_string(running.pid()), "-o", file});
  REQUIRE(kept.status == 0);
  CHECK(kept.out.empty());  // the file takes the place of the report
  CHECK(std::ranges::count(kept.err, '\n') == 1);
  CHECK(kept.err.find("was not stopped: none of its threads ran") != std::string::npos);
  const std::string report = text_of({file, "--lines", "30"});
  CHECK(report.find("  was not stopped: none of its threads ran\n") != std::string::npos);
  // Each row of the table of objects, by its address and by its path.
  const std::regex object_row("\n +[0-9.]+ [KM]?i?B +[0-9.]+ [KM]?i?B  (.*?) = .* at (0x[0-9a-f]+)");
  int rows = 0, paths = 0;
  for (std::sregex_iterator row(report.begin(), report.end(), object_row), end; row != end; ++row, ++rows) {
    const std::string path = (*row)[1], address = (*row)[2];
    CAPTURE(path, address);
    CHECK(text_of({file, "--object", address}).find(" at " + address) != std::string::npos);
    if (path.find("…") != std::string::npos) continue;  // steps are left out
    ++paths;
    CHECK(text_of({file, "--object", path}).find(" at " + address) != std::string::npos);
  }
  CHECK(rows > 10);
  CHECK(paths > 10);
  // Each row of the table of classes, by its number and by its words.
  const std::regex class_row("\n +[0-9.]+ [KM]?i?B +[0-9.]+ [KM]?i?B +([0-9,]+) +(#[0-9]+)  (.*)");
  int classes = 0;
  for (std::sregex_iterator row(report.begin(), report.end(), class_row), end; row != end; ++row, ++classes) {
    const std::string count = (*row)[1], number = (*row)[2], words = (*row)[3];
    CAPTURE(count, number, words);
    const std::string of_number = text_of({file, "--class", number});
    CHECK(of_number.starts_with(count + ' '));
    CHECK(text_of({file, "--class", words}) == of_number);
  }
  CHECK(classes > 5);
  CHECK(text_of({file, "--path", "registry"}).find("registry = {") != std::string::npos);
  CHECK(text_of({file, "--object", "globals.sessions.s1"}).find("\n  sessions.s1\n") != std::string::npos);
  CHECK(text_of({file, "--object", "globals"}).find("<globals>") != std::string::npos);
  CHECK(text_of({file, "--class", "accounts[7]"}).find("50 tables Account") != std::string::npos);
  for (const std::string what : {"#9999", "sessions.s1.nothing", "0x123", "0xnothing"})
    CHECK(luaspy({"heap", file, "--object", what}).status == 2);
  // Holders whose paths differ in one key are one row.
  CHECK(text_of({file, "--class", "{line}"}).find(" sessions[…] (200)\n") != std::string::npos);
  CHECK(text_of({file, "--class", "{number}"}).find(" sessions[…].log (200)\n") != std::string::npos);
  CHECK(std::regex_search(text_of({file, "--class", "{only}"}),
                          std::regex(" registry\\[…\\] → upvalue kept.* \\((39|40)\\)\n")));
  running.send("\n");
  running.read_until("READY");
  REQUIRE(luaspy({"heap", "--pid", std::to_string(running.pid()), "-o", now}).status == 0);
  const std::string grown = text_of({"--diff", file, now});
  INFO(grown);
  // LuaJIT's stack or trace may still have one of them.
  CHECK(std::regex_search(
      grown, std::regex("^sessions\\[…\\]\\.log \\((199|200)\\) got \\+(199|200) \\{fresh\\} \\(table\\): \\+")));
}

// What each shell offers at the end of these words, in a folder with the snapshot and with luaspy in its path.
TEST_CASE("shells complete the classes and objects of a snapshot, and ask no process", "[heap]") {
  const Folder folder;
  Running program(
      lua({"-e",
           "cache = {} for i = 1, 500 do cache[i] = {body = i, id = i} end print('READY') io.stdout:flush() "
           "io.read()"}));
  program.read_until("READY");
  std::filesystem::create_symlink(luaspy_program, folder.path("luaspy"));
  const std::string pid = std::to_string(program.pid());
  REQUIRE(luaspy({"heap", "-o", folder.path("now.luaheap"), "--pid", pid}).status == 0);
  const auto in = [&](const Words& shell, const std::string& script, const Words& words) {
    return run(Words{"env", "-C", folder.path(), "HOME=" + folder.path(), "LC_ALL=C.UTF-8",
                     fmt::format("PATH={}:{}", folder.path(), std::getenv("PATH"))} +
               shell + Words{"-c", script} + words)
        .out;
  };
  const auto bash = [&](const Words& words) {
    return in({"bash"},
              "source <(luaspy completion bash); COMP_WORDS=(luaspy heap \"$@\") COMP_CWORD=$(($# + 1)); _luaspy; "
              "printf '%s|' \"${COMPREPLY[@]}\"",
              Words{"bash"} + words);
  };
  const std::string objects = luaspy({"heap", folder.path("now.luaheap")}).out;
  std::smatch cache;
  REQUIRE(std::regex_search(objects, cache, std::regex("  cache = .* at (0x[0-9a-f]+)\n")));
  const std::string address = cache[1];
  CHECK(bash({"now.luaheap", "--class", "{b"}).starts_with("\\{body\\,\\ id\\}\\ \\(table\\)|"));
  CHECK(bash({"now.luaheap", "--class", "'{b"}).starts_with("{body, id} (table)|"));
  CHECK(bash({"now.luaheap", "--object", address.substr(0, address.size() - 1)}).find(address + "|") !=
        std::string::npos);
  CHECK(bash({"now.luaheap", "--object", "pack"}) == "package.loaded|");
  CHECK(bash({"--pid", pid, "--class", ""}) == "|");
  const auto fish = [&](const std::string& line) {
    return in({"fish", "--no-config"}, "luaspy completion fish | source; complete -C $argv[1]", {line});
  };
  CHECK(fish("luaspy heap now.luaheap --object ").find(address + "\tcache = ") != std::string::npos);
  CHECK(fish("luaspy heap now.luaheap --class ").find("\t{body, id} (table)\n") != std::string::npos);
  CHECK(fish("luaspy heap now.luaheap --class ").find("0x") == std::string::npos);
  // zsh completes in its line editor only: in a terminal, where a key shows the line.
  const std::string line = in(
      {"zsh", "-f"},
      "luaspy completion zsh > luaspy.zsh; zmodload zsh/zpty; zpty terminal zsh -f -i; zpty -w terminal \"show() { zle "
      "-I; "
      "print -r -- \\\"LINE<\\$BUFFER>\\\"; }; zle -N show; bindkey '^G' show; autoload -U compinit; compinit -u -D; "
      "source "
      "luaspy.zsh; PROMPT=READY'>'\"; zpty -r terminal seen '*READY>*'; zpty -w -n terminal \"luaspy heap now.luaheap "
      "--object $1\"$'\\t\\C-g'; zpty -r terminal seen '*LINE<*>*'; print -r -- \"${${seen##*LINE<}%%>*}\"; zpty -d "
      "terminal",
      {"zsh", address.substr(0, address.size() - 1)});
  CHECK(line == "luaspy heap now.luaheap --object " + address + " \n");
}

TEST_CASE("what holds a tenth is named, and lists and trees by their first object", "[heap][luas]") {
  const std::string name = GENERATE_COPY(from_range(prepared({"debian-lua5.1-bookworm", "debian-lua5.4-bookworm"})));
  INFO(name);
  Running running(lua({workload("heap_page.lua")}, name));
  running.read_until("READY");
  const json heap = heap_of(running.pid());
  const json& suspects = only_state(heap).at("suspects");
  REQUIRE(suspects.size() == 2);
  CHECK(suspects[0].at("holder").at("path") == "list");
  CHECK(suspects[0].at("holds")[0].at("class") == "{next, value}");
  CHECK(suspects[0].at("holds")[0].at("count") == 99'998);
  CHECK(suspects[0].at("retained") == suspects[0].at("holder").at("retained"));
  // Beside the list, which holds most of what is there.
  CHECK(suspects[1].at("holder").at("path") == "turns.left");
  std::int64_t count = 0;
  for (const json& held : suspects[1].at("holds")) count += held.at("count").get<std::int64_t>();
  CHECK(count == 23'998);
}

TEST_CASE("a kept snapshot and a core file say what the process said", "[heap][luas]") {
  const std::string name = GENERATE_COPY(from_range(luas()));
  INFO(name);
  const Folder folder;
  Running running(lua({workload("objects.lua"), "wait"}, name));
  running.read_until("READY");
  const json live = only_state(heap_of(running.pid()));
  const std::string file = folder.path("objects.luaheap");
  REQUIRE(luaspy({"heap", "--pid", std::to_string(running.pid()), "-o", file}).status == 0);
  CHECK(only_state(parsed(luaspy({"heap", "--json", "--lines", "1000", file}))) == live);
  REQUIRE(run({"gcore", "-o", folder.path("gcore"), std::to_string(running.pid())}).status == 0);
  const std::string core = folder.path(fmt::format("gcore.{}", running.pid()));
  CHECK(only_state(parsed(luaspy({"heap", "--json", "--lines", "1000", "--core", core}))) == live);
  // Of the same process, nothing has grown.
  const Finished same = luaspy({"heap", "--diff", file, file});
  CHECK(same.status == 0);
  CHECK(same.out.find("Nothing has grown.") == 0);
}

TEST_CASE("a heap in use is read at any instant", "[heap][luas]") {
  const std::string name = GENERATE_COPY(from_range(luas()));
  INFO(name);
  Running running(lua({workload("objects.lua"), "work"}, name));
  const std::vector<std::string> made = running.read_until("READY");
  for (int look = 0; look < 20; ++look) {
    const json heap = heap_of(running.pid());
    CHECK(heap.at("of_one_instant") == true);
    CHECK(heap.at("stood_still_ms") > 0);
    const json& state = only_state(heap);
    CHECK(state.at("complete") == true);
    CHECK(std::abs(state.at("difference_bytes").get<std::int64_t>()) <=
          std::max<std::int64_t>(state.at("counter_bytes").get<std::int64_t>() / 10'000, 256));
    check_made(state, made);
  }
}

// `--rss` needs all of the memory, so it copies all of it.
TEST_CASE("of a process that is mostly not Lua, only Lua's pages are copied", "[heap][luas]") {
  const std::string version = GENERATE("5.1", "5.4");
  const Folder folder;
  const std::string program = compile(folder, "c_heap", source_version(version));
  constexpr std::int64_t all = 300 << 20;
  SECTION("asleep") {
    Running running({program, "300", workload("objects.lua"), "wait"});
    const std::vector<std::string> made = running.read_until("READY");
    const json few = heap_of(running.pid());
    const json whole = heap_of(running.pid(), {"--rss"});
    CHECK(whole.at("resident").at("rss").get<std::int64_t>() > all);
    CHECK(!few.contains("resident"));
    CHECK(few.at("copied_bytes").get<std::int64_t>() * 5 < all);
    CHECK(whole.at("copied_bytes").get<std::int64_t>() >= all);
    CHECK(few.at("stood_still_ms") == 0);
    CHECK(few.at("of_one_instant") == true);
    CHECK(only_state(few) == only_state(whole));
    check_made(only_state(few), made);
    const std::string file = folder.path("few.luaheap");
    REQUIRE(luaspy({"heap", "--pid", std::to_string(running.pid()), "-o", file}).status == 0);
    CHECK(only_state(parsed(luaspy({"heap", "--json", "--lines", "1000", file}))) == only_state(whole));
  }
  SECTION("at work") {
    Running running({program, "300", workload("objects.lua"), "work"});
    const std::vector<std::string> made = running.read_until("READY");
    for (int look = 0; look < 5; ++look) {
      const json heap = heap_of(running.pid());
      CHECK(heap.at("copied_bytes").get<std::int64_t>() * 5 < all);
      CHECK(heap.at("stood_still_ms") > 0);
      const json& state = only_state(heap);
      CHECK(state.at("complete") == true);
      check_made(state, made);
    }
  }
}

TEST_CASE("resident memory goes with a file that is written, and with nothing that is not this process now", "[heap]") {
  const Folder folder;
  Running running(lua({workload("objects.lua"), "wait"}));
  running.read_until("READY");
  const std::string pid = std::to_string(running.pid()), file = folder.path("objects.luaheap");
  const Finished both = luaspy({"heap", "--rss", "--pid", pid, "-o", file});
  CHECK(both.status == 0);
  CHECK(both.out.find("Resident memory: ") != std::string::npos);
  CHECK(luaspy({"heap", file}).status == 0);
  const std::vector<Words> refused = {{"--pid", pid, "--every", "1"},
                                      {"--pid", pid, "-o", "-", "-f", "jsonl"},
                                      {"--diff", file, file},
                                      {"--core", file},
                                      {file}};
  for (const Words& options : refused) {
    const Finished finished = luaspy(Words{"heap", "--rss"} + options);
    INFO(finished.err);
    CHECK(finished.status == 2);
    CHECK(finished.out.empty());
    CHECK(std::ranges::count(finished.err, '\n') == 1);
  }
}

TEST_CASE("states are found wherever they are in much memory", "[heap][luas]") {
  const Folder folder;
  // Before Lua's memory, from its address on: more than a search that must not take long looks at.
  Running running({compile(folder, "far_state", source_version("5.4"))});
  running.read_until("READY");
  CHECK(only_state(heap_of(running.pid())).at("live").at("count") > 0);
}

TEST_CASE("a leak is named first", "[heap][luas]") {
  const std::string name = GENERATE_COPY(from_range(luas()));
  INFO(name);
  const Folder folder;
  const std::string script = folder.write(
      "leak.lua",
      "local app = {sessions = {}}\n"
      "package.loaded.app = app\n"
      "local all = {}\n"
      "for i = 1, 50000 do all[i] = {value = i} end\n"
      "print('READY') io.flush()\n"
      "local n = 0\n"
      "while true do\n"
      "  n = n + 1\n"
      "  if n % 50 == 0 then app.sessions[#app.sessions + 1] = {user = n, token = 't' .. n} end\n"
      "  local junk = {n, {n}}\n"
      "end\n");
  Running running(lua({script}, name));
  running.read_until("READY");
  const Finished finished = luaspy({"heap", "--every", "0.3", "--count", "3", "--pid", std::to_string(running.pid())});
  INFO(finished.out << finished.err);
  REQUIRE(finished.status == 0);
  CHECK(finished.out.find("package.loaded.app.sessions got +") == 0);
  CHECK(finished.out.find(" {token, user} (table): +") < finished.out.find('\n'));
}

}  // namespace luaspy::live::heap_test
