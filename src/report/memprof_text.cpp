#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "input/luajit_reader.h"
#include "input/memprof_stream.h"
#include "report/luajit_text.h"

namespace luaspy {
namespace {

struct Sizes {
  std::uint64_t count = 0, allocated = 0, freed = 0;
};

// What happened at one place of the program.
struct MemprofRow {
  Sizes sizes;
  std::map<LuajitPlace, Sizes> overrides;  // by where the blocks came from that were moved or freed
};

class MemprofText {
 public:
  MemprofText(const LuajitSymbols& symbols, const MemprofTextOptions& options) : symbols_(symbols), options_(options) {}

  bool add(const MemprofEvent& event) {
    MemprofRow& row = rows_[static_cast<std::size_t>(event.kind)][event.place];
    ++row.sizes.count, row.sizes.allocated += event.new_size, row.sizes.freed += event.old_size;
    if (const std::optional<MemprofBlocks::Block> before = blocks_.apply(event)) {
      Sizes& of = row.overrides[before->place];
      ++of.count, of.allocated += event.new_size, of.freed += before->size;
    }
    return blocks_.has_room();
  }

  std::string text() {
    using Kind = MemprofEvent::Kind;
    if (!options_.leak_only) {
      put_section("ALLOCATIONS", Kind::allocation);
      put_section("REALLOCATIONS", Kind::reallocation);
      put_section("DEALLOCATIONS", Kind::free);
    }
    put_summary();
    put_aliases();
    return std::move(text_);
  }

 private:
  const std::map<LuajitPlace, MemprofRow>& rows(MemprofEvent::Kind kind) const {
    return rows_[static_cast<std::size_t>(kind)];
  }

  std::string size(std::uint64_t bytes) const {
    if (!options_.human_readable || bytes < 1024) return fmt::format("{}B", bytes);
    auto amount = static_cast<double>(bytes) / 1024;
    const char* unit = "KiB";
    for (const char* const larger : {"MiB", "GiB"}) {
      if (amount >= 1024) amount /= 1024, unit = larger;
    }
    amount = std::floor(amount * 100 + 0.5) / 100;  // the reference rounds halves up
    return fmt::format("{:.{}f}{}", amount, amount == std::floor(amount) ? 0 : 2, unit);
  }

  template <typename... Arguments>
  void put(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
  }

  // Names of chunks come from the file.
  std::string text_of(const LuajitPlace& place) const { return printable(symbols_.text(place), 1 << 12); }

  void put_section(std::string_view title, MemprofEvent::Kind kind) {
    std::vector<std::pair<std::string, const MemprofRow*>> sorted;
    for (const auto& [place, row] : rows(kind)) sorted.emplace_back(text_of(place), &row);
    std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) {
      const std::uint64_t count_a = a.second->sizes.count, count_b = b.second->sizes.count;
      return count_a != count_b ? count_a > count_b : a.first < b.first;
    });
    put("{}\n", title);
    for (const auto& [text, row] : sorted) {
      put("{}: {} events\t+{}\t-{}\n", text, row->sizes.count, size(row->sizes.allocated), size(row->sizes.freed));
      if (row->overrides.empty()) continue;
      std::vector<std::string> overrides;
      for (const auto& [place, sizes] : row->overrides) overrides.push_back(text_of(place));
      std::ranges::sort(overrides);
      put("\tOverrides:\n");
      for (const std::string& each : overrides) put("\t\t{}\n", each);
      put("\n");
    }
    put("\n");
  }

  // A block counts for where it was allocated, or reallocated the last time before.
  void put_summary() {
    struct Held {
      std::int64_t bytes = 0;
      std::uint64_t allocations = 0, frees = 0;
    };
    std::map<std::string, Held> held;
    const auto add = [&](const LuajitPlace& place, const Sizes& sizes) {
      Held& of = held[text_of(place)];
      of.bytes += static_cast<std::int64_t>(sizes.allocated - sizes.freed);
      if (sizes.allocated != 0) of.allocations += sizes.count;
      if (sizes.freed != 0) of.frees += sizes.count;
    };
    for (const auto& [place, row] : rows(MemprofEvent::Kind::allocation)) add(place, row.sizes);
    for (const auto kind : {MemprofEvent::Kind::reallocation, MemprofEvent::Kind::free}) {
      for (const auto& [place, row] : rows(kind)) {
        for (const auto& [before, sizes] : row.overrides) add(before, sizes);
      }
    }
    std::vector<std::pair<std::string, Held>> sorted;
    for (const auto& each : held) {
      if (each.second.bytes > 0) sorted.push_back(each);
    }
    std::ranges::stable_sort(sorted, std::greater(), [](const auto& each) { return each.second.bytes; });
    put("HEAP SUMMARY:\n");
    for (const auto& [text, of] : sorted)
      put("{} holds {}: {} allocs, {} frees\n", text, size(static_cast<std::uint64_t>(of.bytes)), of.allocations,
          of.frees);
    put("\n");
  }

  void put_aliases() {
    if (symbols_.aliases().empty()) return;
    put("ALIASES:\n");
    for (std::size_t i = 0; i < symbols_.aliases().size(); ++i) {
      put("function_alias_{}:\n", i + 1);
      std::size_t number = 0;
      for (std::string_view rest = symbols_.aliases()[i]; !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        put("{}\t| {}\n", ++number, printable(line, 1 << 12));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      }
      put("\n");
    }
    put("\n");
  }

  const LuajitSymbols& symbols_;
  const MemprofTextOptions& options_;
  std::map<LuajitPlace, MemprofRow> rows_[4];  // by MemprofEvent::Kind
  MemprofBlocks blocks_;
  std::string text_;
};

}  // namespace

Result<std::string> memprof_text(std::istream& in, const MemprofTextOptions& options, std::string& torn) {
  ByteReader bytes(in);
  LuajitSymbols symbols;
  const Result<std::string> profiler = read_luajit_head(bytes, symbols);
  if (!profiler) return profiler.error();
  if (*profiler != "ljm") return Error{Cause::usage, "This is a stream of LuaJIT's sysprof: its text is -f sysprof."};
  MemprofText text(symbols, options);
  torn = each_memprof_event(bytes, symbols, [&](const MemprofEvent& event) { return text.add(event); });
  return text.text();
}

}  // namespace luaspy
