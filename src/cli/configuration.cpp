#include "cli/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/wrong_usage.h"
#include "system/calls.h"

namespace luaspy {
namespace {

constexpr std::string_view config = "--config";

// What is done once belongs on the command line.
constexpr std::array<std::string_view, 4> typed_only = {"config", "help", "status", "snapshot"};

// The value of --config; "": it is not there.
std::string config_in(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    if (words[i] == config) return i + 1 < words.size() ? words[i + 1] : "";
    if (words[i].starts_with(config) && words[i].substr(config.size()).starts_with('='))
      return words[i].substr(config.size() + 1);
  }
  return {};
}

bool is_typed(const CLI::Option& option, const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    const bool is_name = std::ranges::any_of(option.get_lnames(), [&](const std::string& name) {
      return word == "--" + name || word.starts_with("--" + name + "=");
    });
    return is_name || std::ranges::any_of(option.get_snames(),
                                          [&](const std::string& name) { return word.starts_with("-" + name); });
  });
}

class Configuration {
 public:
  Configuration(const CLI::App& command, const std::vector<std::string>& typed) : command_(command), typed_(typed) {}

  // "": the line is right; else what is wrong.
  std::string add(const std::string& line) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') return {};
    if (line[begin] == '[' || line.find('=') == std::string::npos) return "it has to be KEY = VALUE";
    std::vector<CLI::ConfigItem> items;
    try {
      std::istringstream in(line);
      items = CLI::ConfigTOML().from_config(in);
    } catch (const CLI::Error& error) {
      return error.what();
    }
    if (items.size() != 1 || items[0].inputs.empty()) return "it has to be KEY = VALUE";
    return add(items[0].fullname(), items[0].inputs);
  }
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::string add(const std::string& key, const std::vector<std::string>& values) {
    const std::string name = "--" + key;
    if (std::ranges::find(typed_only, key) != typed_only.end()) return key + " belongs on the command line";
    const CLI::Option* const option = command_.get_option_no_throw(name);
    if (option == nullptr) return explain_wrong_option(*command_.get_parent(), {command_.get_name(), name});
    const bool is_flag = option->get_items_expected_max() == 0;
    const bool takes_all = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    if (!seen_.insert(key).second && !takes_all) return key + " is given more than once";
    if (values.size() > 1 && !takes_all) return key + " takes one value";
    std::vector<std::string> words;
    for (const std::string& value : values) {
      if (is_flag && value != "true" && value != "false") return key + " has to be true or false";
      if (!is_flag) words.push_back(name + "=" + value);
      else if (value == "true") words.push_back(name);
    }
    if (std::string wrong = wrong_in(words); !wrong.empty()) return wrong;
    if (!is_typed(*option, typed_)) words_.insert(words_.end(), words.begin(), words.end());
    return {};
  }

  // By themselves: what an option needs besides may be in another line.
  std::string wrong_in(std::vector<std::string> words) const {
    Options options;
    CLI::App app;
    add_commands(app, options);
    words.insert(words.begin(), command_.get_name());
    try {
      app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::RequiresError&) {
    } catch (const CLI::RequiredError&) {
    } catch (const CLI::ParseError& error) {
      return explain(app, error, words);
    }
    return {};
  }

  const CLI::App& command_;
  const std::vector<std::string>& typed_;
  std::set<std::string> seen_;
  std::vector<std::string> words_;
};

}  // namespace

Result<std::vector<std::string>> with_configuration(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = nullptr;
  for (const CLI::App* const each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!words.empty() && each->get_name() == words[0]) command = each;
  }
  if (command == nullptr || command->get_option_no_throw(std::string(config)) == nullptr) return words;
  const std::string path = config_in(words);
  if (path.empty()) return words;
  if (const system::Failure failure = system::why_unreadable(path))
    return Error{Cause::usage, fmt::format("Cannot read {}: {}.", printable(path), failure.text())};
  std::ifstream in(path);
  Configuration configuration(*command, words);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (const std::string wrong = configuration.add(line); !wrong.empty())
      return Error{Cause::usage, fmt::format("{}:{}: {}", printable(path), number, printable(wrong, 1000))};
  }
  std::vector<std::string> all = {words[0]};
  all.insert(all.end(), configuration.words().begin(), configuration.words().end());
  all.insert(all.end(), words.begin() + 1, words.end());
  return all;
}

}  // namespace luaspy
