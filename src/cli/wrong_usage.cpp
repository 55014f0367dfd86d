#include "cli/wrong_usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "cli/suggestion.h"

namespace luaspy {
namespace {

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

// Whether the value of `word`, which begins with "-", is the next word: of letters together (-sd),
// the last one may have one.
bool takes_value(const CLI::App& command, const std::string& word) {
  const bool is_letters = word.size() > 2 && word[1] != '-';
  const CLI::Option* const option = command.get_option_no_throw(is_letters ? std::string("-") + word.back() : word);
  return option != nullptr && option->get_items_expected_max() > 0;
}

std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

std::vector<std::string> meant_words(const CLI::App& app, std::vector<std::string> words) {
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const auto named = app.get_subcommands(
      [&](const CLI::App* each) { return !words.empty() && each->get_name() == words[0]; });
  const CLI::App* const command = named.empty() ? nullptr : named.front();
  if (command == nullptr || command->get_option_no_throw("--pid") == nullptr) return words;
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    if (is_number(words[i])) {
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(i), "--pid");
      break;
    }
    if (!words[i].starts_with('-')) break;  // a command begins here
    if (takes_value(*command, words[i])) ++i;
  }
  return words;
}

std::string explain(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words) {
  const CLI::App* const command = app.get_subcommands().empty() ? nullptr : app.get_subcommands().front();
  const std::string start = command != nullptr ? "luaspy " + command->get_name() : "luaspy";
  const std::string help = fmt::format(" ({} --help)", start);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && command == nullptr) {
    std::vector<std::string> commands;
    for (const CLI::App* const each : app.get_subcommands([](const CLI::App*) { return true; }))
      commands.push_back(each->get_name());
    if (words.empty() || words[0].starts_with('-'))
      return fmt::format("say what to do: luaspy {}{}", fmt::join(commands, ", "), help);
    const std::string meant = nearest(words[0], commands);
    if (!meant.empty()) return fmt::format("there is no command {}. Did you mean luaspy {}?", words[0], meant);
    return fmt::format("there is no command {}. There are: {}{}", words[0], fmt::join(commands, ", "), help);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> extra = app.remaining(true);
    const std::string word = extra.empty() ? std::string() : extra.front();
    if (!word.starts_with('-')) return fmt::format("{} does not take the word {}{}", start, word, help);
    const std::string name = word.substr(0, word.find('='));
    const std::string meant = nearest(name, names_of_options(command != nullptr ? *command : app));
    return meant.empty() ? fmt::format("{} has no option {}{}", start, name, help)
                         : fmt::format("{} has no option {}. Did you mean {}?", start, name, meant);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string what = error.what(), option = what.substr(0, what.find(':'));
    return what.find("At Most") != std::string::npos ? fmt::format("{} is given more than once{}", option, help)
                                                     : fmt::format("{} needs a value{}", option, help);
  }
  return error.what() + help;
}

}  // namespace luaspy
