#pragma once
// The values of options. CLI11's own validators answer with ranges of 300 digits and with names of
// C++ types.

#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <vector>

#include "base/text.h"

namespace luaspy {

// A number from `least` to `most`. `above`: more than `least`.
CLI::Validator number(double least, double most, bool above = false);
// Seconds; "90s", "5m" and "1h" become them.
CLI::Validator seconds(double least, double most, bool above = false);
CLI::Validator whole_number(int least, int most);
CLI::Validator percentage(double least, double most);  // "5" or "5%"
CLI::Validator positive_seconds();                     // up to 1e9

CLI::Validator label();           // "coroutine", "request", or NAME=EXPR
CLI::Validator wanted_label();    // NAME=PATTERN
CLI::Validator process_number();  // or "auto"
// The formats of a profile, and those that only one command has.
std::vector<std::string> format_names(const std::vector<std::string>& more = {});
CLI::Validator format_name(const std::vector<std::string>& more = {});

CLI::Validator one_of(const std::vector<std::string>& choices);  // one of these words

// What to say of a word that is none of `choices`.
std::string not_one_of(const std::string& word, const std::vector<std::string>& choices);

// A key of `values`, in any case. `choices`: the keys, in the order in which they are shown.
template <typename T>
CLI::Validator one_of(const std::map<std::string, T>& values, const std::vector<std::string>& choices) {
  return CLI::Validator(
      [values, choices](std::string& word) {
        const auto found = values.find(CLI::detail::to_lower(word));
        if (found == values.end()) return not_one_of(word, choices);
        word = std::to_string(static_cast<int>(found->second));
        return std::string();
      },
      '{' + joined(choices, ",") + '}');
}

}  // namespace luaspy
