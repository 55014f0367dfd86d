#include "cli/help_layout.h"

#include <fmt/format.h>

#include "base/text.h"

namespace luaspy {
namespace {

bool is_command(const CLI::Option& word) { return word.get_name(true) == "command"; }

// "FILE"; without such a text its choices, "bash|zsh|fish".
std::string bare_word(const CLI::Option& word) {
  const std::string& text = word.get_option_text();
  return text != " " ? text : joined(choices_of(word), "|");
}

class HelpLayout : public CLI::Formatter {
 public:
  HelpLayout() {
    constexpr std::size_t descriptions_at = 26;
    column_width(descriptions_at);
    label("Positionals", "Arguments");
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = "Usage: " + name;
    if (!app->get_subcommands([](const CLI::App*) { return true; }).empty()) return usage + " COMMAND [options]\n";
    usage += " [options]";
    for (const CLI::Option* const word :
         app->get_options([](const CLI::Option* each) { return each->get_positional(); }))
      usage += " " + word_as_typed(*word);
    return usage + "\n";
  }
  std::string make_description(const CLI::App* app) const override { return app->get_description() + "\n"; }
  std::string make_option_name(const CLI::Option* option, bool is_word) const override {
    if (!is_word) return Formatter::make_option_name(option, false);
    return is_command(*option) ? "COMMAND" : bare_word(*option);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() ? std::string() : Formatter::make_option_opts(option);
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_layout() { return std::make_shared<HelpLayout>(); }

std::string word_as_typed(const CLI::Option& word) {
  if (is_command(word)) return "[-- COMMAND [ARGUMENT...]]";
  return word.get_required() ? bare_word(word) : fmt::format("[{}]", bare_word(word));
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

}  // namespace luaspy
