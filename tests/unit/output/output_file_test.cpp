// Where profiles are written: never where another user has put a link.

#include "output/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "output/write_options.h"
#include "support/sample_profile.h"

namespace luaspy::output_file_test {
namespace {

class Scratch {
 public:
  Scratch() : path_((std::filesystem::temp_directory_path() / "luaspy-test-XXXXXX").string()) {
    REQUIRE(::mkdtemp(path_.data()) != nullptr);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(path_); }
  std::string operator()(const std::string& name) const { return path_ + "/" + name; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

OutputFile opened(const std::string& path) {
  Result<OutputFile> output = OutputFile::open({path, "folded", ""});
  REQUIRE(output);
  return std::move(*output);
}

std::string folded() {
  std::ostringstream text;
  find_format("folded")->write(sample_profile(), {}, text);
  return text.str();
}

}  // namespace

TEST_CASE("a file is replaced as a whole, and nothing else is written", "[unit]") {
  const Scratch folder;
  const std::string path = folder("profile"), victim = folder("victim");
  write(victim, "untouched");
  std::filesystem::create_symlink(victim, path + ".part");  // what a name that can be foreseen leads to
  write(path, "before");
  std::filesystem::permissions(path, std::filesystem::perms{0600});
  OutputFile output = opened(path);
  CHECK(text_of(path) == "before");
  for (int round = 0; round < 2; ++round) {
    REQUIRE(output.rewrite(sample_profile(), {}));
    CHECK(text_of(path) == folded());
    CHECK(std::filesystem::status(path).permissions() == std::filesystem::perms{0600});
    CHECK(folder.files() == 3);
    write(path, "by somebody else");
  }
  CHECK(text_of(victim) == "untouched");
}

TEST_CASE("what was there stays until what replaces it is whole", "[unit]") {
  const Scratch folder;
  const std::string path = folder("profile");
  write(path, "before");
  const auto fails = [](const Result<void>& written) {
    CHECK(!written);
    CHECK(written.error().cause == Cause::output);
  };
  // The limit is for all files of this process. SIGXFSZ would end it.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{1, before.rlim_max};
  OutputFile output = opened(path), fresh = opened(folder("fresh"));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  const Result<void> written = output.write(sample_profile(), {}), rewritten = output.rewrite(sample_profile(), {}),
                     of_fresh = fresh.write(sample_profile(), {}),
                     of_text = system::write_file(path, [](std::ostream&out) { out << "more than a byte"; });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, ignored);
  for (const Result<void>& each : {written, rewritten, of_fresh, of_text}) fails(each);
  CHECK(text_of(path) == "before");
  CHECK(folder.files() == 1);
}

TEST_CASE("a profile for which there is no room is kept elsewhere", "[unit]") {
  const Scratch folder, other;
  const std::string gone = folder("gone");
  const char* const temporary = std::getenv("TMPDIR");
  const std::string former = temporary != nullptr ? temporary : "";
  std::filesystem::create_directory(gone);
  OutputFile output = opened(gone + "/profile.folded");
  std::filesystem::remove_all(gone);
  REQUIRE(::setenv("TMPDIR", other("").c_str(), 1) == 0);
  const Result<void> written = output.write(sample_profile(), {});
  if (former.empty()) ::unsetenv("TMPDIR");
  else ::setenv("TMPDIR", former.c_str(), 1);
  REQUIRE(!written);
  CHECK(written.error().cause == Cause::output);
  REQUIRE(other.files() == 1);
  const std::string kept = std::filesystem::directory_iterator(other(""))->path().string();
  CHECK_THAT(written.error().text, Catch::Contains("The profile is in ") && Catch::Contains("/profile-") &&
                                       Catch::Contains(".folded instead."));
  CHECK_THAT(written.error().text, Catch::Contains(std::filesystem::path(kept).filename().string()));
  CHECK(text_of(kept) == folded());
  CHECK(std::filesystem::status(kept).permissions() == std::filesystem::perms{0600});
}

TEST_CASE("a recording that is replaced stays as the old one", "[unit]") {
  const Scratch folder;
  const std::string format = GENERATE("raw", "flamegraph", "folded"), path = folder("profile"), old = path + ".old";
  INFO(format);
  write(path, "first");
  write(folder("empty"), "");
  for (const char* const name : {"profile", "empty", "new"}) {
    Result<OutputFile> output = OutputFile::open({folder(name), format, ""});
    REQUIRE(output);
    std::ostream& out = format == "raw" ? output->stream_behind() : output->stream();
    CHECK(text_of(folder(name)) == (format != "raw" && std::string(name) == "profile" ? "first" : ""));
    out << "second";
    REQUIRE(output->finish());
    CHECK(text_of(folder(name)) == "second");
  }
  const bool keeps = format != "folded";
  CHECK(std::filesystem::exists(old) == keeps);
  if (keeps) CHECK(text_of(old) == "first");
  CHECK(folder.files() == (keeps ? 4 : 3));  // no other .old
  // The next one replaces that.
  OutputFile again = std::move(*OutputFile::open({path, format, ""}));
  for (int round = 0; round < 2; ++round) {
    again.stream() << "third";
    REQUIRE(again.finish());
  }
  CHECK(text_of(path) == "third");
  if (keeps) CHECK(text_of(old) == "second");
}

TEST_CASE("a link that lies where the old one goes is replaced, not followed", "[unit]") {
  const Scratch folder;
  const std::string path = folder("profile"), victim = folder("victim");
  write(path, "first");
  write(victim, "untouched");
  std::filesystem::create_symlink(victim, path + ".old");
  OutputFile output = std::move(*OutputFile::open({path, "raw", ""}));
  output.stream_behind() << "second";
  REQUIRE(output.finish());
  CHECK(text_of(victim) == "untouched");
  CHECK(!std::filesystem::is_symlink(path + ".old"));
  CHECK(text_of(path + ".old") == "first");
}

TEST_CASE("one's own link is followed, and stays", "[unit]") {
  const Scratch folder;
  const bool rewrites = GENERATE(false, true), dangles = GENERATE(false, true);
  std::filesystem::create_directory(folder("there"));
  const std::string path = folder("profile"), target = folder("there/profile");
  if (!dangles) write(target, "before, and longer than what follows: " + std::string(10'000, 'x'));
  std::filesystem::create_symlink("there/profile", path);
  OutputFile output = opened(path);
  REQUIRE((rewrites ? output.rewrite(sample_profile(), {}) : output.write(sample_profile(), {})));
  CHECK(std::filesystem::is_symlink(path));
  CHECK(text_of(target) == folded());
}

TEST_CASE("a link of another user is not followed", "[unit]") {
  const Scratch folder;
  const bool dangles = GENERATE(false, true);
  const std::string path = folder("profile"), victim = folder("victim");
  if (!dangles) write(victim, "untouched");
  std::filesystem::create_symlink(victim, path);
  constexpr uid_t other = 65534;
  if (::geteuid() != 0) {
    // Only root can make a link of another user: the system does not let this one do it.
    CHECK(::lchown(path.c_str(), other, other) != 0);
    return;
  }
  REQUIRE(::lchown(path.c_str(), other, other) == 0);
  const Result<OutputFile> output = OutputFile::open({path, "folded", ""});
  REQUIRE(!output);
  CHECK_THAT(output.error().text, Catch::Contains("is a symbolic link of another user (uid 65534), to " + victim));
  CHECK(std::filesystem::exists(victim) == !dangles);
  if (!dangles) CHECK(text_of(victim) == "untouched");
}

TEST_CASE("a name that nobody has given is that of no link, either", "[unit]") {
  const Scratch folder;
  std::filesystem::create_symlink(folder("nothing"), folder("luaspy-lua-7.html"));
  CHECK(unused_name(folder("luaspy-lua-7"), ".html") == folder("luaspy-lua-7-2.html"));
}

TEST_CASE("an open file is written where it is, and a file without content is removed", "[unit]") {
  const Scratch folder;
  const std::string path = folder("open"), unwritten = folder("unwritten");
  const FileDescriptor file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  OutputFile output = opened(fmt::format("/proc/self/fd/{}", file.number()));
  CHECK(!output.is_file());
  REQUIRE(output.rewrite(sample_profile(), {}));
  CHECK(text_of(path) == folded());
  OutputFile none = opened(unwritten);
  CHECK(std::filesystem::exists(unwritten));
  none.discard();
  CHECK(!std::filesystem::exists(unwritten));
  std::array<int, 2> pipe{};
  REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
  const FileDescriptor reads(pipe[0]), writes(pipe[1]);
  OutputFile to_pipe = opened(fmt::format("/dev/fd/{}", writes.number()));
  CHECK(!to_pipe.is_file());
  REQUIRE(to_pipe.rewrite(sample_profile(), {}));
  std::string read(folded().size(), '\0');
  CHECK(::read(reads.number(), read.data(), read.size()) == static_cast<ssize_t>(read.size()));
  CHECK(read == folded());
}

TEST_CASE("a name may have the time and the process in it", "[unit]") {
  CHECK(name_with_time("100%-%x-%.html", 7) == "100%-%x-%.html");
  CHECK(name_with_time("a-%p-%p.html%", 7) == "a-7-7.html%");
  const std::string named = name_with_time("%t.html", 7);
  REQUIRE(named.size() == std::string("20261126-041752.html").size());
  CHECK(named[8] == '-');
  CHECK(named.find_first_not_of("0123456789-") == std::string("20261126-041752").size());
}

TEST_CASE("a name is that of the program, whatever is in it", "[unit]") {
  CHECK(default_stem("/opt/my game/the game", 7) == "luaspy-the game-7");
  CHECK(default_stem("/usr/bin/lua5.4 (deleted)", 7) == "luaspy-lua5.4-7");
  CHECK(default_stem("", 7) == "luaspy-7");
}

}  // namespace luaspy::output_file_test
