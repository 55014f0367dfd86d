#include "cli/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "alloc/memprof.h"
#include "base/label_expression.h"
#include "cli/suggestion.h"
#include "output/format.h"

namespace luaspy {

CLI::Validator number(double least, double most, bool above) {
  return CLI::Validator(
      [=](const std::string& word) {
        double value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error != std::errc() || end != word.data() + word.size() || std::isnan(value))
          return fmt::format("{} is not a number", word);
        if (above && value <= least) return fmt::format("it has to be more than {}", least);
        if (value < least || value > most) return fmt::format("it has to be from {} to {}", least, most);
        return std::string();
      },
      "");
}

CLI::Validator percentage(double least, double most) {
  return CLI::Validator(
      [=](std::string& word) {
        if (word.ends_with('%')) word.pop_back();
        return number(least, most)(word);
      },
      "");
}

CLI::Validator whole_number(int least, int most) {
  return CLI::Validator(
      [=](const std::string& word) {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error == std::errc::result_out_of_range || (error == std::errc() && (value < least || value > most)))
          return fmt::format("it has to be from {} to {}", least, most);
        const bool is_whole = error == std::errc() && end == word.data() + word.size();
        return is_whole ? std::string() : fmt::format("{} is not a whole number", word);
      },
      "");
}

CLI::Validator label() {
  return CLI::Validator(
      [](const std::string& word) -> std::string {
        static const std::vector<std::string> choices = {"request",   "trace",  "phase",    "fiber",
                                                         "coroutine", "plugin", "NAME=EXPR"};
        if (std::ranges::find(choices, word) != choices.end()) return "";
        if (word.find('=') == std::string::npos) return not_one_of(word, choices);
        return label_expression(word) ? ""
                                      : fmt::format(
                                            "{} is not NAME=EXPR, such as id=req.id: the name of a variable, "
                                            "and of fields",
                                            word);
      },
      "");
}

CLI::Validator wanted_label() {
  return CLI::Validator(
      [](const std::string& word) {
        return word.find('=') != std::string::npos ? std::string() : fmt::format("{} is not NAME=PATTERN", word);
      },
      "");
}

CLI::Validator seconds(double least, double most, bool above) {
  return CLI::Validator(
      [=](std::string& word) {
        static const std::vector<std::pair<std::string_view, double>> units = {
            {"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}};
        const auto unit = std::ranges::find_if(units, [&](const auto& each) { return word.ends_with(each.first); });
        std::string plain = unit != units.end() ? word.substr(0, word.size() - unit->first.size()) : word;
        double value = 0;
        const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
        const bool is_number = error == std::errc() && end == plain.data() + plain.size();
        if (is_number && unit != units.end()) word = fmt::format("{}", value * unit->second);
        return number(least, most, above)(word);
      },
      "");
}

CLI::Validator positive_seconds() {
  constexpr double most = 1e9;
  return seconds(0, most, true);
}

CLI::Validator process_number() {
  return CLI::Validator(
      [](const std::string& word) {
        int value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        const bool is_pid = error == std::errc() && end == word.data() + word.size() && value > 0;
        return is_pid || word == "auto"
                   ? std::string()
                   : fmt::format("{} is not a process number; luaspy ps lists those of Lua programs", word);
      },
      "");
}

std::vector<std::string> format_names(const std::vector<std::string>& more) {
  std::vector<std::string> names;
  for (const Format& format : formats()) names.emplace_back(format.name);
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

CLI::Validator format_name(const std::vector<std::string>& more) {
  const std::vector<std::string> names = format_names(more);
  return CLI::Validator(
      [names](const std::string& word) {
        if (std::ranges::find(names, word) != names.end()) return std::string();
        if (word == memprof_format.name)
          return fmt::format("only luaspy alloc writes {}: it shows what was allocated, and nothing else", word);
        return not_one_of(word, names);
      },
      '{' + joined(names, ",") + '}');
}

CLI::Validator one_of(const std::vector<std::string>& choices) {
  return CLI::Validator(
      [choices](const std::string& word) {
        return std::ranges::find(choices, word) != choices.end() ? std::string() : not_one_of(word, choices);
      },
      '{' + joined(choices, ",") + '}');
}

std::string not_one_of(const std::string& word, const std::vector<std::string>& choices) {
  const std::string meant = nearest(word, choices);
  return meant.empty() ? fmt::format("{} is not one of: {}", word, joined(choices, ", "))
                       : fmt::format("{} is not one of: {}. Did you mean {}?", word, joined(choices, ", "), meant);
}

}  // namespace luaspy
