#include "report/source_listing.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/text.h"
#include "system/calls.h"

namespace luaspy {
namespace {

constexpr std::size_t most_bytes = 4 << 20;
constexpr int context = 3;  // lines shown on both sides of one that cost something

bool ends_as_path(std::string_view path, std::string_view end) {
  return path.ends_with(end) && !end.empty() &&
         (path.size() == end.size() || end.front() == '/' || path[path.size() - end.size() - 1] == '/');
}

// Expands tabs to columns.
std::string expanded(std::string_view line) {
  std::string text;
  for (const char c : line) {
    if (c == '\t') text.append(4 - text.size() % 4, ' ');
    else if (c != '\r' && c != '\n') text += c;
  }
  return text;
}

bool has_code(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\r\n\f\v");
  return first != line.npos && !line.substr(first).starts_with("--");
}

}  // namespace

std::map<int, LineCost> line_costs(const Profile& profile, const std::string& file, By by) {
  std::map<int, LineCost> lines;
  std::set<int> here;
  for (const auto& [id, amount] : profile.stack_counts()) {
    here.clear();
    const std::vector<FrameId> stack = profile.stack(id);
    for (const FrameId frame_id : stack) {
      const Frame& frame = profile.frames()[frame_id];
      if (frame.kind != Frame::Kind::lua || frame.file != file || frame.line <= 0) continue;
      LineCost& line = lines[frame.line];
      line.is_near |= frame.line_is_near;
      if (here.insert(frame.line).second) line.cost.total += cost(amount, by);
    }
    if (stack.empty()) continue;
    const Frame& innermost = profile.frames()[stack.back()];
    if (innermost.kind == Frame::Kind::lua && innermost.file == file && innermost.line > 0)
      lines[innermost.line].cost.own += cost(amount, by);
  }
  return lines;
}

Result<std::string> find_source(const Profile& profile, const std::string& wanted) {
  std::map<std::string, std::int64_t> files;  // with the number of their frames in all samples
  for (const auto& [id, amount] : profile.stack_counts()) {
    for (const FrameId frame : profile.stack(id)) {
      if (profile.frames()[frame].kind == Frame::Kind::lua) files[profile.frames()[frame].file] += amount.samples;
    }
  }
  if (files.contains(wanted)) return wanted;
  std::vector<std::string> found;
  for (const auto& [file, count] : files) {
    if (ends_as_path(file, wanted) || ends_as_path(wanted, file)) found.push_back(file);
  }
  if (found.size() == 1) return found.front();
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const auto& [file, count] : files) {
    if (found.empty() || std::ranges::find(found, file) != found.end()) order.emplace_back(count, file);
  }
  std::ranges::stable_sort(order, std::greater(), [](const auto& file) { return file.first; });
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 8); ++i)
    names += (i == 0 ? "" : ", ") + displayable(order[i].second, Charset::ascii);
  const std::string asked = displayable(wanted, Charset::ascii);
  if (found.empty())
    return Error{Cause::usage, fmt::format("No sample is in a Lua file {}.{}", asked,
                                           names.empty() ? "" : " Files with samples: " + names)};
  return Error{Cause::usage, fmt::format("Several files end in {}: {}", asked, names)};
}

std::string source_listing(std::string_view text, const std::map<int, LineCost>& lines, std::int64_t whole,
                           const TextStyle& style) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark: lauxlib.c skips it, too
  const std::vector<std::size_t> starts = line_starts(text);
  const int count = static_cast<int>(starts.size()) - (starts.back() == text.size());
  const auto line_text = [&](int line) {
    const std::size_t start = starts[static_cast<std::size_t>(line) - 1];
    return text.substr(
        start, (static_cast<std::size_t>(line) < starts.size() ? starts[static_cast<std::size_t>(line)] : text.size()) -
                   start);
  };
  std::string listing = heading(cost_columns_head(style) + "   Line", style);
  const std::size_t width = cost_columns_width(style);
  const std::string gap = fmt::format("{:>{}}\n", style.charset == Charset::utf8 ? "⋮" : ":", width + 10);
  int shown_to = 0, without_code = 0;
  bool near = false;
  for (int line = 1; line <= count; ++line) {
    const auto next = lines.lower_bound(line - context);
    if (next == lines.end()) break;
    if (next->first > line + context) continue;
    if (line > shown_to + 1) listing += gap;
    shown_to = line;
    const std::string code = displayable(expanded(line_text(line)), style.charset, 200);
    const auto known = lines.find(line);
    if (known == lines.end()) {
      listing += fmt::format("{:{}} {:>9}  {}\n", "", width, line, code);
      continue;
    }
    const auto& [cost, is_near] = known->second;
    near |= is_near;
    without_code += !has_code(line_text(line));
    listing += fmt::format("{}  {:>8}  {}\n", cost_columns(cost, whole, style),
                           fmt::format("{}{}", is_near ? "~" : "", line), code);
  }
  if (shown_to != 0 && shown_to < count) listing += gap;
  if (near) listing += "~: some of its samples are in machine code, which knows its lines only approximately.\n";
  const auto beyond = static_cast<int>(std::distance(lines.upper_bound(count), lines.end()));
  if (beyond != 0 || without_code != 0) {
    listing += fmt::format("The file is not the one that ran: {} of the {} lines with samples {}.\n",
                           beyond + without_code, lines.size(),
                           beyond == 0         ? "have no code here"
                           : without_code == 0 ? "are past its end"
                                               : "have no code here or are past its end");
  }
  return listing;
}

Result<std::string> read_source(const std::string& path, std::int64_t younger_than_s, bool& younger) {
  std::error_code failed;
  const auto refused = [&](std::string_view why) {
    return Error{Cause::usage, fmt::format("Cannot read {}: {}. Use --source-path to say where it is.",
                                           displayable(path, Charset::ascii), why)};
  };
  if (!std::filesystem::exists(path, failed)) return refused("there is no such file");
  if (!std::filesystem::is_regular_file(path, failed)) return refused("it is not a regular file");
  if (std::filesystem::file_size(path, failed) > most_bytes) return refused("it is larger than 4 MiB");
  std::ifstream in(path, std::ios::binary);
  std::string text(most_bytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open()) return refused(system::why_unreadable(path).text());
  if (in.bad()) return refused("it cannot be read");
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.starts_with('\x1b')) return refused("it is precompiled");  // lua.h, LUA_SIGNATURE
  struct stat status {};
  younger = ::stat(path.c_str(), &status) == 0 && status.st_mtim.tv_sec > younger_than_s;
  return text;
}

}  // namespace luaspy
