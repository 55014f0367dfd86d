#include "cli/wrong_usage.h"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cli/suggestion.h"

namespace luaspy {
namespace {

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_option(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

// What a word that begins with "-" is to a command.
struct TypedOption {
  std::string unknown;      // the option that the command does not have; "": it has it
  bool takes_next = false;  // its value is the next word
  bool needs_none = false;  // it has a value, and is a flag
};

TypedOption typed_option(const CLI::App& command, const std::string& word) {
  const auto takes_value = [](const CLI::Option& option) { return option.get_items_expected_max() > 0; };
  if (word.starts_with("--")) {
    const std::size_t end = word.find('=');
    const CLI::Option* const option = command.get_option_no_throw(word.substr(0, end));
    if (option == nullptr) return {word.substr(0, end)};
    const bool has_value = end != std::string::npos;
    return {{}, takes_value(*option) && !has_value, !takes_value(*option) && has_value};
  }
  for (std::size_t i = 1; i < word.size(); ++i) {  // letters together; what follows one with a value is its value
    const std::string letter = std::string("-") + word[i];
    const CLI::Option* const option = command.get_option_no_throw(letter);
    if (option == nullptr) return {letter};
    if (takes_value(*option)) return {{}, i + 1 == word.size()};
  }
  return {};
}

// The command that the first word names; nullptr if it names none.
const CLI::App* named_command(const CLI::App& app, const std::vector<std::string>& words) {
  const auto named = app.get_subcommands(
      [&](const CLI::App* each) { return !words.empty() && each->get_name() == words[0]; });
  return named.empty() ? nullptr : named.front();
}

// Of all commands, or of those that have an option.
std::vector<std::string> names_of_commands(const CLI::App& app, const std::string& with_option = {}) {
  std::vector<std::string> names;
  for (const CLI::App* const each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (with_option.empty() || each->get_option_no_throw(with_option) != nullptr) names.push_back(each->get_name());
  }
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// What there is to say if the words name no command.
std::string no_command(const CLI::App& app, const std::vector<std::string>& words) {
  constexpr std::string_view help = " (luaspy --help)";
  const std::string all = joined(names_of_commands(app), ", ");
  if (words.empty()) return fmt::format("say what to do: luaspy {}{}", all, help);
  if (is_number(words[0]))
    return fmt::format("say what to do with process {0}. Did you mean luaspy record {0}?{1}", words[0], help);
  if (is_option(words[0])) {
    const std::string name = words[0].substr(0, words[0].find('='));
    const std::vector<std::string> having = names_of_commands(app, name);
    if (having.empty()) return fmt::format("luaspy has no option {}. Say what to do: luaspy {}{}", name, all, help);
    return fmt::format("say what to do. Did you mean luaspy {} {}?{}", having.front(), joined(words, " "), help);
  }
  const std::string meant = nearest(words[0], names_of_commands(app));
  if (!meant.empty()) return fmt::format("there is no command {}. Did you mean luaspy {}?", words[0], meant);
  return fmt::format("there is no command {}. There are: {}{}", words[0], all, help);
}

// An option by its name, and a word that has its place instead by what a person calls it.
std::string spoken(const std::string& name) {
  static const std::map<std::string, std::string> words = {{"command", "a command"},
                                                           {"file", "a recording"},
                                                           {"files", "snapshots"},
                                                           {"page", "file to show"},
                                                           {"shell", "shell: bash, zsh or fish"}};
  const auto found = words.find(name);
  return found != words.end() ? found->second : name;
}

// The two options of a sentence of CLI11.
std::pair<std::string, std::string> both_of(const std::string& text, std::string_view between) {
  const std::size_t at = text.find(between);
  if (at == std::string::npos) return {text, {}};
  return {spoken(text.substr(0, at)), spoken(text.substr(at + between.size()))};
}

// CLI11 says how many values it has expected and has received. Its option is the text up to the colon.
std::string wrong_count(const CLI::App& command, const std::string& start, const std::string& what) {
  const std::string option = what.substr(0, what.find(':'));
  const CLI::Option* const counted = command.get_option_no_throw(option);
  if (counted == nullptr) return what;
  if (counted->get_positional())
    return fmt::format("{} takes no more than {} of the words", start, counted->get_items_expected_max());
  if (const int wanted = counted->get_items_expected_min(); wanted > 1)
    return fmt::format("{} needs {} values", option, wanted);
  return what.find("At Most") != std::string::npos ? option + " is given more than once" : option + " needs a value";
}

}  // namespace

std::vector<std::string> meant_words(const CLI::App& app, std::vector<std::string> words) {
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const CLI::App* const command = named_command(app, words);
  if (command == nullptr || command->get_option_no_throw("--pid") == nullptr) return words;
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    if (is_number(words[i])) {
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(i), "--pid");
      break;
    }
    if (!is_option(words[i])) break;  // a command begins here
    const TypedOption typed = typed_option(*command, words[i]);
    if (!typed.unknown.empty()) break;  // the next word may be its value
    if (typed.takes_next) ++i;
  }
  return words;
}

std::string explain_wrong_option(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* const command = named_command(app, words);
  if (command == nullptr) {
    const bool is_unknown = !words.empty() && is_option(words[0]) && !typed_option(app, words[0]).unknown.empty();
    return is_unknown ? no_command(app, words) : std::string();
  }
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    if (!is_option(words[i])) continue;
    const TypedOption typed = typed_option(*command, words[i]);
    if (typed.takes_next) ++i;
    const std::string start = "luaspy " + command->get_name();
    if (typed.needs_none)
      return fmt::format("{} takes no value ({} --help)", words[i].substr(0, words[i].find('=')), start);
    if (typed.unknown.empty()) continue;
    if (const std::string meant = nearest(typed.unknown, names_of_options(*command)); !meant.empty())
      return fmt::format("{} has no option {}. Did you mean {}?", start, typed.unknown, meant);
    const std::vector<std::string> others = names_of_commands(app, typed.unknown);
    return fmt::format(
        "{} has no option {}{} ({} --help)", start, typed.unknown,
        others.empty() ? ""
                       : fmt::format("; luaspy {} {} it", joined(others, ", "), others.size() == 1 ? "has" : "have"),
        start);
  }
  return {};
}

std::string explain(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words) {
  const CLI::App* const command = app.get_subcommands().empty() ? nullptr : app.get_subcommands().front();
  if (command == nullptr) return no_command(app, words);
  const std::string start = "luaspy " + command->get_name(), what = error.what();
  const std::string help = fmt::format(" ({} --help)", start);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> extra = app.remaining(true);
    return fmt::format("{} does not take the word {}{}", start, extra.empty() ? std::string() : extra.front(), help);
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    return fmt::format("say which {}{}", spoken(what.substr(0, what.find(' '))), help);
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const auto [one, other] = both_of(what, " excludes ");
    return fmt::format("{} and {} do not go together{}", one, other, help);
  }
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr) {
    const auto [one, other] = both_of(what, " requires ");
    return fmt::format("{} needs {}{}", one, other, help);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return wrong_count(*command, start, what) + help;
  return what + help;
}

}  // namespace luaspy
