// .luaheap files that are cut, damaged, or lie.

#include "heapdump/heap_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "output/gzip.h"
#include "support/dice.h"

namespace luaspy::heap_file_test {
namespace {

constexpr std::size_t first_line = 14;  // "luaspy heap 1\n"

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

const std::string& good_file() {
  static const std::string text = text_of(LUASPY_TESTS "/fuzz/corpus/objects/lua54.luaheap");
  return text;
}

class File {
 public:
  File() : path_(std::filesystem::temp_directory_path() / fmt::format("luaspy-heap-file-{}", ::getpid())) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { std::filesystem::remove(path_); }
  Result<HeapSnapshot> read(std::string_view text) const {
    std::ofstream(path_, std::ios::binary) << text;
    return read_heap_file(path_.string());
  }
  std::string error(std::string_view text) const {
    const Result<HeapSnapshot> snapshot = read(text);
    return snapshot ? "" : snapshot.error().text;
  }
  // Of the file that was read last, its first bytes.
  std::string cut(std::size_t size) const {
    std::filesystem::resize_file(path_, size);
    const Result<HeapSnapshot> snapshot = read_heap_file(path_.string());
    return snapshot ? "" : snapshot.error().text;
  }

 private:
  std::filesystem::path path_;
};

bool is_one_line(const std::string& text) {
  return !text.empty() && text.size() < 300 && text.find('\n') == std::string::npos;
}

// A file of these ranges, with `zeros` bytes.
std::string file_of(const std::string& ranges, std::size_t zeros) {
  std::ostringstream out;
  out << "luaspy heap 1\n"
      << R"({"pid":1,"command":"lua","taken_ns":1,"stood_still_ns":0,"of_one_instant":true,"states":[],"ranges":)"
      << ranges << "}\n";
  {
    Gzip gzip(out, 9);
    gzip.add(std::string(zeros, '\0'));
  }
  return out.str();
}

}  // namespace

TEST_CASE("a .luaheap file that is cut anywhere is refused", "[heap_file][slow]") {
  const std::string& good = good_file();
  REQUIRE(good.size() > 1000);
  const File file;
  const Result<HeapSnapshot> whole = file.read(good);
  REQUIRE(whole.has_value());
  CHECK(whole->states.size() == 1);
  constexpr std::size_t step = 4 / rounds(4);
  for (std::size_t size = good.size() - 1; size >= step; size -= step) {
    const std::string error = file.cut(size);
    if (!is_one_line(error)) {
      INFO(size << " bytes of " << good.size() << ": " << error);
      REQUIRE(is_one_line(error));
    }
  }
  CHECK(file.error("").find("does not begin like one") != std::string::npos);
  CHECK(file.error(std::string_view(good).substr(0, good.size() - 1)).find("ends early") != std::string::npos);
}

TEST_CASE("a .luaheap file with a damaged byte is refused", "[heap_file]") {
  const File file;
  const std::size_t stream = good_file().find('\n', first_line) + 1;
  constexpr std::size_t gzip_head = 10;  // RFC 1952: time and system say nothing
  for (std::size_t at = stream + gzip_head; at < good_file().size(); at += 97) {
    std::string text = good_file();
    text[at] = static_cast<char>(text[at] ^ 0x10);
    INFO(at);
    CHECK(file.error(text).find("damaged") != std::string::npos);
  }
  CHECK(file.error("luaspy heap 2\n" + good_file().substr(first_line)).find("does not begin like one") !=
        std::string::npos);
}

TEST_CASE("a .luaheap file that lies is refused, and takes no memory", "[heap_file]") {
  const File file;
  const auto refused = [&](const std::string& ranges, std::size_t zeros) { return file.error(file_of(ranges, zeros)); };
  CHECK(refused("[[4096,4096]]", 4096).find("no state of a Lua") != std::string::npos);
  CHECK(refused("[[4096,4096]]", 4095).find("ends early") != std::string::npos);
  CHECK(refused("[[4096,4096]]", 4097).find("damaged") != std::string::npos);
  // Sizes, as they are said. No file needs as much memory as it says before its bytes are there.
  CHECK(is_one_line(refused("[[4096,1099511627776]]", 100)));
  CHECK(is_one_line(refused("[[4096,281474976706560]]", 100)));
  constexpr const char* second_line = "its second line is not what it should be";
  for (const char* const ranges :
       {"[[4096,18446744073709551615]]", "[[4096,0]]", "[[-1,4096]]", "[[4096,4096],[8191,4096]]",
        "[[8192,4096],[4096,4096]]", "[[1e300,4096]]", "[[4096]]", "[4096,4096]", "{}", "[[4096,4096,1]]",
        "[[\"4096\",4096]]", "[[[4096],4096]]"}) {
    INFO(ranges);
    CHECK(refused(ranges, 4096).find(second_line) != std::string::npos);
  }
  for (const std::string head : {"{}", "[]", "1", "null", "", "{\"ranges\":[]", "[[[[[[[[[["}) {
    INFO(head);
    CHECK(file.error("luaspy heap 1\n" + head + "\n").find(second_line) != std::string::npos);
  }
  CHECK(file.error("luaspy heap 1\n" + std::string(1 << 20, '[') + "\n").find(second_line) != std::string::npos);
  CHECK(file.error("luaspy heap 1\n" + std::string(1 << 20, ' ')).find("ends early") != std::string::npos);
}

}  // namespace luaspy::heap_file_test
