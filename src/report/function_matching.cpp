#include "report/function_matching.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "profile/function_table.h"

namespace luaspy {
namespace {

using Numbers = std::vector<std::size_t>;  // of functions in a FunctionTable
constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

bool is_function(const Frame& frame) { return frame.kind == Frame::Kind::lua && frame.line_defined > 0; }
bool is_named(const Frame& frame) { return frame.kind == Frame::Kind::lua && frame.name != "function"; }

// How far the functions of a file have moved, by the lines of `before`.
using Shifts = std::map<int, int>;

int shift_at(const Shifts& shifts, int line) {
  if (shifts.empty()) return 0;
  const auto behind = shifts.upper_bound(line);
  return behind == shifts.begin() ? behind->second : std::prev(behind)->second;
}

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

// Pairs of equal lines; both are ascending.
Pairs equal(const std::vector<int>& ones, const std::vector<int>& others) {
  Pairs pairs;
  for (std::size_t i = 0, j = 0; i < ones.size() && j < others.size();) {
    if (ones[i] == others[j]) pairs.emplace_back(i++, j++);
    else ++(ones[i] < others[j] ? i : j);
  }
  return pairs;
}

// Pairs of equal order with the least sum of distances, of all with as many pairs as there can be.
// Both are ascending. Functions that change their order are rare, and their pairs would be guesses.
Pairs nearest(const std::vector<int>& ones, const std::vector<int>& others) {
  constexpr std::size_t most = 1 << 22;  // sums: a recording may say anything
  if (std::min(ones.size(), others.size()) * std::max(ones.size(), others.size()) > most) return equal(ones, others);
  const bool swapped = ones.size() > others.size();
  const std::vector<int>&few = swapped ? others : ones, &many = swapped ? ones : others;
  const std::size_t spare = many.size() - few.size();
  // best[i][j]: the first i of `few`, the last of them paired with one up to i + j of `many`.
  constexpr std::int64_t impossible = std::numeric_limits<std::int64_t>::max();
  std::vector<std::vector<std::int64_t>> best(few.size() + 1, std::vector<std::int64_t>(spare + 1, 0));
  for (std::size_t i = 1; i <= few.size(); ++i) {
    for (std::size_t j = 0; j <= spare; ++j) {
      const std::int64_t paired = best[i - 1][j] + std::abs(std::int64_t{few[i - 1]} - many[i - 1 + j]);
      best[i][j] = std::min(paired, j > 0 ? best[i][j - 1] : impossible);
    }
  }
  Pairs pairs;
  std::size_t j = spare;
  for (std::size_t i = few.size(); i > 0; --i) {
    while (j > 0 && best[i][j] == best[i][j - 1]) --j;
    pairs.emplace_back(swapped ? i - 1 + j : i - 1, swapped ? i - 1 : i - 1 + j);
  }
  return pairs;
}

class Matcher {
 public:
  Matcher(const FunctionTable& before, const FunctionTable& after)
      : before_(before), after_(after), of_before_(before.texts.size(), none), is_taken_(after.texts.size()) {}

  // By function of `before`: the one of `after`, or none.
  const Numbers& match() {
    match_others();
    const auto itself = [](const std::string& file) { return file; };
    match_names(itself);
    match_lines(itself);
    match_names(base_name);
    match_lines(base_name);
    const auto any = [](const Frame& frame) { return is_named(frame) ? frame.name : std::string(); };
    pair_unique(any, any);
    return of_before_;
  }
  const std::vector<std::string>& ambiguous() const { return ambiguous_; }

 private:
  struct Group {
    Numbers before, after;  // by line
  };

  // What is not a Lua function, and main chunks: the text says all.
  void match_others() {
    std::map<std::string_view, std::size_t> known;
    for (std::size_t i = 0; i < after_.texts.size(); ++i) {
      if (!is_function(after_.functions[i])) known.emplace(after_.texts[i], i);
    }
    for (std::size_t i = 0; i < before_.texts.size(); ++i) {
      const auto found = known.find(before_.texts[i]);
      if (found != known.end() && !is_function(before_.functions[i])) pair(i, found->second);
    }
  }

  // Functions of the same name and file, of which `file_of` says what has to be the same.
  template <typename FileOf>
  void match_names(const FileOf& file_of) {
    std::map<std::pair<std::string, std::string>, Group> groups;  // by file and name
    for_left([&](const Frame& frame, std::size_t i, Numbers Group::*side) {
      if (frame.kind == Frame::Kind::lua) (groups[{file_of(frame.file), frame.name}].*side).push_back(i);
    });
    std::map<std::string, Shifts> shifts;
    for (auto& [key, group] : groups) {
      std::ranges::sort(group.before, {}, [&](std::size_t i) { return place_of(before_.functions[i]); });
      std::ranges::sort(group.after, {}, [&](std::size_t i) { return place_of(after_.functions[i]); });
      if (group.before.size() != 1 || group.after.size() != 1) continue;
      const Frame &one = before_.functions[group.before[0]], &other = after_.functions[group.after[0]];
      if (!is_named(one)) continue;
      if (is_function(one) && is_function(other))
        shifts[key.first][one.line_defined] = other.line_defined - one.line_defined;
      pair(group.before[0], group.after[0]);
      group = {};
    }
    for (const auto& [key, group] : groups) {
      if (!group.before.empty() && !group.after.empty()) match_group(group, key.second, shifts[key.first]);
    }
    shifts_.merge(shifts);
  }

  void match_group(const Group& group, const std::string& name, const Shifts& shifts) {
    // An unnamed function further away is as likely to be another one.
    constexpr int near = 30;  // lines
    std::vector<int> lines, others;
    for (const std::size_t i : group.before) {
      const int line = before_.functions[i].line_defined;
      lines.push_back(line + shift_at(shifts, line));
    }
    for (const std::size_t i : group.after) others.push_back(after_.functions[i].line_defined);
    std::int64_t distance = 0;
    for (const auto& [one, other] : nearest(lines, others)) {
      const std::int64_t apart = std::abs(std::int64_t{lines[one]} - others[other]);
      if (name == "function" && apart > near) continue;
      distance += apart;
      pair(group.before[one], group.after[other]);
    }
    if (distance == 0) return;
    const Frame& first = after_.functions[group.after[0]];
    ambiguous_.push_back(group.before.size() == 1 && group.after.size() == 1
                             ? fmt::format("The {} of {} on line {} is taken for the one that was on line {}.", name,
                                           first.file, others[0], before_.functions[group.before[0]].line_defined)
                             : fmt::format("{} in {}: {} before and {} after, matched by the nearest lines.",
                                           name == "function" ? "Functions without a name" : "`" + name + "`",
                                           first.file, group.before.size(), group.after.size()));
  }

  // A function that has another name in its place.
  template <typename FileOf>
  void match_lines(const FileOf& file_of) {
    const auto key = [&](const Frame& frame, int line) {
      return is_function(frame) ? fmt::format("{}:{}", file_of(frame.file), line) : std::string();
    };
    pair_unique(
        [&](const Frame& frame) {
          return key(frame, frame.line_defined + shift_at(shifts_[file_of(frame.file)], frame.line_defined));
        },
        [&](const Frame& frame) { return key(frame, frame.line_defined); });
  }

  // Pairs those whose keys only one on each side has; "" is no key.
  template <typename Key, typename OtherKey>
  void pair_unique(const Key& key, const OtherKey& other_key) {
    std::map<std::string, Group> groups;
    for_left([&](const Frame& frame, std::size_t i, Numbers Group::*side) {
      (groups[side == &Group::before ? key(frame) : other_key(frame)].*side).push_back(i);
    });
    for (const auto& [text, group] : groups) {
      if (!text.empty() && group.before.size() == 1 && group.after.size() == 1) pair(group.before[0], group.after[0]);
    }
  }

  // Visits what has no pair yet.
  template <typename See>
  void for_left(const See& see) const {
    for (std::size_t i = 0; i < of_before_.size(); ++i) {
      if (of_before_[i] == none) see(before_.functions[i], i, &Group::before);
    }
    for (std::size_t i = 0; i < is_taken_.size(); ++i) {
      if (!is_taken_[i]) see(after_.functions[i], i, &Group::after);
    }
  }
  static std::tuple<int, int> place_of(const Frame& frame) { return {frame.line_defined, frame.twin}; }
  void pair(std::size_t before, std::size_t after) { of_before_[before] = after, is_taken_[after] = true; }

  const FunctionTable &before_, &after_;
  Numbers of_before_;
  std::vector<bool> is_taken_;
  std::map<std::string, Shifts> shifts_;  // by file
  std::vector<std::string> ambiguous_;
};

}  // namespace

FunctionMatching match_functions(Profile& before, const Profile& after) {
  const FunctionTable functions_before = functions_of(before, false), functions_after = functions_of(after, false);
  Matcher matcher(functions_before, functions_after);
  const Numbers& matches = matcher.match();
  FunctionMatching matching;
  const std::set<std::string_view> texts(functions_after.texts.begin(), functions_after.texts.end());
  StackTable::Frames renamed = before.frames();
  for (std::size_t i = 0; i < renamed.size(); ++i) {
    Frame& frame = renamed[FrameId{static_cast<std::uint32_t>(i)}];
    const std::uint32_t function = functions_before.of_frame[FrameId{static_cast<std::uint32_t>(i)}];
    const std::string& text = functions_before.texts[function];
    if (matches[function] == none) {
      if (frame.kind == Frame::Kind::lua && texts.contains(text)) {
        frame.name += " [before]";
        matching.moved.emplace(describe(frame, false), text);
      }
      continue;
    }
    const std::string& other_text = functions_after.texts[matches[function]];
    if (text == other_text) continue;
    const Frame& other = functions_after.functions[matches[function]];
    if (frame.line > 0) frame.line = std::max(frame.line + other.line_defined - frame.line_defined, 1);
    frame.name = other.name, frame.file = other.file, frame.twin = other.twin;
    frame.line_defined = other.line_defined, frame.prototype = other.prototype, frame.own_name = other.own_name;
    matching.moved.emplace(other_text, text);
  }
  before.show_as(std::move(renamed));
  matching.ambiguous = matcher.ambiguous();
  return matching;
}

}  // namespace luaspy
