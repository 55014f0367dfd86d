#include "heapdump/heap_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "base/parsed_json.h"
#include "base/text.h"
#include "heapdump/heap_room.h"
#include "luastate/luas.h"
#include "output/gzip.h"
#include "system/calls.h"

namespace luaspy {
namespace {

constexpr std::string_view magic = "luaspy heap 1\n";
constexpr std::size_t longest_symbol = 256;
constexpr std::size_t longest_command = 1 << 12;

Error unreadable(const std::string& path, std::string_view why) {
  return {Cause::usage, fmt::format("{} is not a heap snapshot that luaspy can read: {}.", printable(path), why)};
}

// Fills the image from a gzip stream. False: it is broken, or ends early, or is longer.
bool inflate_into(std::istream& in, const MemoryImage& image) {
  constexpr int gzip_window = MAX_WBITS + 16;
  constexpr std::size_t piece = 1 << 18;
  z_stream stream{};
  if (::inflateInit2(&stream, gzip_window) != Z_OK) return false;
  std::vector<char> compressed(piece);
  // Fills `out`, and says how the stream goes on: Z_OK, Z_STREAM_END, or an error.
  const auto fill = [&](std::span<std::byte> out) {
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    int status = Z_OK;
    while (status == Z_OK && stream.avail_out != 0) {
      if (stream.avail_in == 0) {
        in.read(compressed.data(), static_cast<std::streamsize>(compressed.size()));
        stream.next_in = reinterpret_cast<Bytef*>(compressed.data());
        stream.avail_in = static_cast<uInt>(in.gcount());
      }
      status = ::inflate(&stream, Z_NO_FLUSH);
    }
    return status;
  };
  bool good = true;
  for (const MemoryImage::Part& part : image.parts()) {
    constexpr std::size_t most = 1U << 30;
    for (std::size_t done = 0; good && done < part.size; done += most) {
      const int status = fill({part.bytes + done, std::min(most, part.size - done)});
      good = stream.avail_out == 0 && (status == Z_OK || status == Z_STREAM_END);
    }
  }
  // The end of the stream has a checksum.
  std::byte one_more{};
  good = good && fill({&one_more, 1}) == Z_STREAM_END && stream.avail_out == 1;
  ::inflateEnd(&stream);
  return good;
}

// A line without its end; nullopt if it is longer, or the file ends in it.
std::optional<std::string> read_line(std::istream& in, std::size_t most) {
  constexpr std::size_t piece = 1 << 16;
  std::string line;
  while (line.size() < most) {
    const std::size_t old = line.size();
    line.resize(old + std::min(piece, most - old));
    in.getline(line.data() + old, static_cast<std::streamsize>(line.size() - old));
    const auto count = static_cast<std::size_t>(in.gcount());
    if (in.eof() || count == 0) return std::nullopt;
    if (!in.fail()) {
      line.resize(old + count - 1);  // without the line's end
      return line;
    }
    line.resize(old + count);
    in.clear();
  }
  return std::nullopt;
}

struct Head {
  std::uint64_t pid = 0, taken_ns = 0, stood_still_ns = 0;
  bool of_one_instant = true, of_process = false;
  std::string command;
  struct State {
    Address G = 0, main = 0;
    std::string lua;
  };
  std::vector<State> states;
  std::vector<std::pair<Address, std::string>> functions;
  std::vector<AddressRange> ranges;
  std::uint64_t bytes = 0;  // of all ranges
};

bool parse(const Json& object, const char* key, std::uint64_t most, std::uint64_t& into) {
  const std::optional<std::uint64_t> number = object.at(key).as_unsigned();
  into = number.value_or(0);
  return number && into <= most;
}

bool parse(const Json& object, const char* key, std::string& into) {
  const std::string* const text = object.at(key).as_text();
  if (text != nullptr) into = *text;
  return text != nullptr;
}

// Ranges ascend and do not overlap.
bool parse_range(const Json& range, Head& head) {
  const std::span<const Json> numbers = range.elements();
  if (numbers.size() != 2 || !numbers[0].as_unsigned() || !numbers[1].as_unsigned()) return false;
  const Address start = *numbers[0].as_unsigned(), size = *numbers[1].as_unsigned();
  if (size == 0 || start >= address_limit || size > address_limit - start ||
      (!head.ranges.empty() && start < head.ranges.back().end))
    return false;
  head.ranges.push_back({start, start + size});
  head.bytes += size;
  return true;
}

// States ascend: none is there twice.
bool parse_state(const Json& state, Head& head) {
  Head::State& its = head.states.emplace_back();
  return parse(state, "global_State", address_limit, its.G) && parse(state, "main", address_limit, its.main) &&
         parse(state, "lua", its.lua) && (head.states.size() == 1 || head.states[head.states.size() - 2].G < its.G);
}

bool parse_function(const Json& function, Head& head) {
  auto& [entry, symbol] = head.functions.emplace_back();
  if (!parse(function, "entry", address_limit, entry) || !parse(function, "symbol", symbol)) return false;
  symbol = printable(symbol, longest_symbol);
  return true;
}

// Ranges are taken while they are parsed: as values they would take many times their text's memory.
std::optional<Head> parse_head(const std::string& line) {
  constexpr std::size_t deepest = 3;
  Head head;
  bool good = true;
  const auto keep = [&](std::string_view member, const Json& value) {
    if (member != "ranges" || !value.is_array()) return true;
    good = good && parse_range(value, head);
    return false;
  };
  const std::optional<Json> json = parsed_json(line, deepest, keep);
  constexpr std::uint64_t most_ns = std::numeric_limits<std::int64_t>::max();
  if (!good || !json || !parse(*json, "pid", std::numeric_limits<int>::max(), head.pid) ||
      !parse(*json, "command", head.command) || !parse(*json, "taken_ns", most_ns, head.taken_ns) ||
      !parse(*json, "stood_still_ns", most_ns, head.stood_still_ns))
    return std::nullopt;
  const Json &ranges = json->at("ranges"), &states = json->at("states");
  if (!ranges.is_array() || !ranges.elements().empty()) return std::nullopt;  // all of them were taken out
  const std::optional<bool> of_one_instant = json->at("of_one_instant").as_bool();
  if (!of_one_instant || !states.is_array()) return std::nullopt;
  head.of_one_instant = *of_one_instant;
  head.of_process = json->at("of_process").as_bool().value_or(false);
  for (const Json& state : states.elements())
    if (!parse_state(state, head)) return std::nullopt;
  const Json* const functions = json->find("functions");
  if (functions == nullptr) return head;
  if (!functions->is_array()) return std::nullopt;
  for (const Json& function : functions->elements())
    if (!parse_function(function, head)) return std::nullopt;
  return head;
}

}  // namespace

// ---- UsedPages

UsedPages::UsedPages(const MemoryImage& image) : image_(image) {
  for (const MemoryImage::Part& part : image.parts()) used_.emplace_back((part.size + page_size - 1) / page_size);
}

bool UsedPages::read(Address address, std::span<std::byte> into) const {
  if (!image_.read(address, into)) return false;
  use(address, into.size());
  return true;
}

void UsedPages::use(Address address, std::uint64_t size) const {
  const auto& parts = image_.parts();
  if (last_ >= parts.size() || address < parts[last_].start || address >= parts[last_].end()) {
    const auto after = std::ranges::upper_bound(parts, address, {}, &MemoryImage::Part::start);
    if (after == parts.begin()) return;
    last_ = static_cast<std::size_t>(std::prev(after) - parts.begin());
  }
  const MemoryImage::Part& part = parts[last_];
  if (address >= part.end()) return;
  std::vector<bool>& used = used_[last_];
  const std::uint64_t first = (address - part.start) / page_size;
  const std::uint64_t end = std::min<std::uint64_t>(address - part.start + size, part.size);
  for (std::uint64_t page = first; page * page_size < end; ++page) used[page] = true;
}

std::vector<AddressRange> UsedPages::ranges() const {
  std::vector<AddressRange> all;
  for (std::size_t i = 0; i < used_.size(); ++i) {
    const MemoryImage::Part& part = image_.parts()[i];
    for (std::size_t page = 0; page < used_[i].size(); ++page) {
      if (!used_[i][page]) continue;
      const Address start = part.start + page * page_size, end = std::min(start + page_size, part.end());
      if (!all.empty() && all.back().end == start) all.back().end = end;
      else all.push_back({start, end});
    }
  }
  return all;
}

// ---- The file

void write_heap_file(std::ostream& out, const HeapSnapshot& snapshot, const std::vector<AddressRange>& ranges) {
  constexpr int fastest = 1;
  Json functions = Json::array(), its_ranges = Json::array(), states = Json::array();
  for (const auto& [entry, symbol] : snapshot.code->known()) {
    if (!symbol.empty()) functions.add({{"entry", entry}, {"symbol", printable(symbol, longest_symbol)}});
  }
  for (const AddressRange& range : ranges) its_ranges.add(std::vector<Address>{range.start, range.end - range.start});
  for (const HeapSnapshot::State& state : snapshot.states)
    states.add({{"global_State", state.G},
                {"lua", state.lua->name()},
                {"main", state.lua->main_thread(*snapshot.memory, state.G)}});
  const Json head = {{"command", printable(snapshot.command, longest_command)},
                     {"functions", std::move(functions)},
                     {"of_one_instant", snapshot.of_one_instant},
                     {"of_process", snapshot.of_process},
                     {"pid", snapshot.pid},
                     {"ranges", std::move(its_ranges)},
                     {"states", std::move(states)},
                     {"stood_still_ns", snapshot.stood_still_ns},
                     {"taken_ns", snapshot.taken_ns}};
  out << magic << head.line();
  Gzip gzip(out, fastest);
  std::vector<std::byte> bytes;
  for (const AddressRange& range : ranges) {
    constexpr Address piece = 1 << 20;
    for (Address at = range.start; at < range.end; at += piece) {
      bytes.resize(std::min(piece, range.end - at));
      if (!snapshot.memory->read(at, bytes)) std::ranges::fill(bytes, std::byte{0});
      gzip.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
  }
}

Result<HeapSnapshot> read_heap_file(const std::string& path) {
  constexpr std::size_t longest_head = 64 << 20;
  system::Failure failure{0};
  if (!system::open_file(path, O_RDONLY, &failure))
    return Error{Cause::usage, fmt::format("Cannot open {}: {}.", printable(path), failure.text())};
  std::ifstream in(path, std::ios::binary);
  std::string begin(magic.size(), '\0');
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  if (begin != magic) return unreadable(path, "it does not begin like one");
  const std::optional<std::string> line = read_line(in, longest_head);
  if (!line) return unreadable(path, "it ends early");
  std::optional<Head> head = parse_head(*line);
  if (!head) return unreadable(path, "its second line is not what it should be");
  if (const Result<void> room = check_room(head->bytes, 0); !room) return room.error();
  auto image = std::make_shared<MemoryImage>();
  if (const Result<void> added = image->add(head->ranges, MemoryImage::Pages::when_filled); !added)
    return added.error();
  if (!inflate_into(in, *image)) return unreadable(path, "it ends early, or is damaged");
  HeapSnapshot snapshot;
  snapshot.pid = static_cast<int>(head->pid);
  snapshot.command = printable(head->command, longest_command);
  snapshot.taken_ns = static_cast<std::int64_t>(head->taken_ns);
  snapshot.stood_still_ns = static_cast<std::int64_t>(head->stood_still_ns);
  snapshot.of_one_instant = head->of_one_instant;
  snapshot.of_process = head->of_process || snapshot.stood_still_ns != 0;
  for (auto& [entry, symbol] : head->functions) snapshot.code->add(entry, std::move(symbol));
  for (const Head::State& state : head->states) {
    for (const Lua* const row : all_layouts()) {
      const Lua* const lua = row->name() == state.lua ? row->recognise_main(*image, state.main, state.G) : nullptr;
      if (lua == nullptr) continue;
      snapshot.states.push_back({state.G, lua});
      break;
    }
  }
  if (snapshot.states.empty()) return unreadable(path, "there is no state of a Lua that this luaspy knows");
  snapshot.bytes = image->bytes();
  const Result<void> room = check_room(0, std::min(snapshot.bytes, heap_bytes(*image, snapshot.states)));
  if (!room) return room.error();
  snapshot.memory = std::move(image);
  return snapshot;
}

}  // namespace luaspy
