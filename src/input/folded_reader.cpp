#include "input/folded_reader.h"

#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "input/foreign_stacks.h"
#include "input/frame_text.h"
#include "input/line_reader.h"
#include "input/raw_fields.h"

namespace luaspy {
namespace {

struct FoldedLine {
  std::string_view stack;
  std::int64_t count = 0;
};

// Some writers count in fractions.
std::optional<FoldedLine> line_of(std::string_view text) {
  const std::size_t space = text.rfind(' ');
  if (space == std::string_view::npos || space == 0) return std::nullopt;
  const std::string_view digits = text.substr(space + 1);
  double count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (!(count >= 0) || count > static_cast<double>(any_number)) return std::nullopt;
  std::int64_t whole = 0;
  const bool is_whole = std::from_chars(digits.data(), end, whole).ptr == end;
  return FoldedLine{text.substr(0, space), is_whole ? whole : std::llround(count)};
}

}  // namespace

bool is_folded(std::string_view line) { return line_of(line).has_value(); }

Result<std::string> read_folded(std::istream& in, RecordingPart& part) {
  part.count(Unit::samples);
  LineReader lines(in);
  ForeignStacks stacks(part);
  std::map<std::string, FrameId, std::less<>> known;
  const ThreadId thread = stacks.only_thread();
  Sample sample;
  while (const std::optional<std::string_view> text = lines.next()) {
    if (text->empty() || text->starts_with('#')) continue;
    const std::optional<FoldedLine> line = line_of(*text);
    if (!line) return lines.at("no number at its end");
    sample.stack = empty_stack;
    for (std::string_view rest = line->stack;;) {
      const std::string_view frame = rest.substr(0, rest.find(';'));
      auto place = known.find(frame);
      if (place == known.end() && stacks.has_room()) place = known.emplace(frame, stacks.frame(frame_of(frame))).first;
      if (place != known.end()) sample.stack = stacks.stack(sample.stack, place->second);
      if (frame.size() == rest.size()) break;
      rest.remove_prefix(frame.size() + 1);
    }
    if (!stacks.has_room()) return lines.at(ForeignStacks::no_room);
    if (line->count == 0) continue;
    if (!part.tick(0, line->count, line->count) || !part.sample(thread, sample))
      return lines.at("the sum of all counts is too large");
  }
  return lines.torn();
}

}  // namespace luaspy
