#include "luastate/definitions.h"

#include <fmt/format.h>

#include <algorithm>

#include "luastate/tokens.h"

namespace luaspy {
namespace {

constexpr std::size_t most_depth = 200;  // llimits.h, LUAI_MAXCCALLS: of nested constructs
constexpr std::size_t most_definitions = 1 << 16;
constexpr std::size_t longest_key = 40;  // bytes, in brackets

// Names are paths: `a.b`, `a["b c"].d`. One that cannot be shown, or would be longer than a name may
// be, is empty, and so is what would follow it. So the names of all definitions take a bounded
// multiple of the source's size.
void extend(std::string& path, std::string_view separator, std::string_view key) {
  if (path.empty()) return;
  if (key.empty() || path.size() + separator.size() + key.size() > longest_definition) path.clear();
  else path.append(separator).append(key);
}

std::string new_path(std::string_view name) {
  return name.size() <= longest_definition ? std::string(name) : std::string();
}

// An expression or a list of them that a name waits for, and the names that were read since.
//
// The text is not parsed into statements: a name after anything but a comma, a dot or a colon
// begins a new list, and `=` makes the list before it the targets of the values that follow.
class Scope {
 public:
  enum class Kind : std::uint8_t { function, block, table, parentheses, brackets };

  explicit Scope(Kind scope_kind) : kind(scope_kind) {}

  Kind kind;
  int definition = -1;         // function: its index
  bool is_repeat = false;      // block: ends with `until`
  std::string base;            // table: its name. parentheses: that of a table that is the first argument
  std::string_view content{};  // brackets: the only token in it, if it can be shown
  int tokens = 0;              // brackets, parentheses: how many there were

  // Is what comes next the value of the target, as a whole, or an operand of `and` and `or`?
  bool at_value = false;
  std::string target() const { return index < targets.size() ? targets[index] : std::string(); }

  void assign(std::vector<std::string> names) {
    targets = std::move(names);
    index = 0;
    at_value = true;
    list.clear();
  }
  void next_target() { at_value = ++index < targets.size(); }
  void forget() {
    targets.clear();
    list.clear();
    at_value = false;
  }

  std::vector<std::string> targets;
  std::size_t index = 0;
  std::vector<std::string> list;  // paths; empty: one that cannot be shown
  bool path_is_value = false;     // the last path began where a value was awaited
};

class Finder {
 public:
  explicit Finder(std::string_view source) : tokens_(source) { scopes_.emplace_back(Scope::Kind::block); }

  std::vector<Definition> find() {
    for (token_ = tokens_.next(); token_.kind != Token::Kind::end; token_ = tokens_.next()) {
      if (!parse()) break;
      previous_ = token_;
    }
    // Functions that have no end are those of a text that was cut, or is no Lua.
    for (const int index : open_) found_[static_cast<std::size_t>(index)].last_line = 0;
    return std::move(found_);
  }

 private:
  Scope& scope() { return scopes_.back(); }

  // False: not a Lua, or too deep.
  bool parse() {
    Scope& now = scope();
    if (now.kind == Scope::Kind::brackets || now.kind == Scope::Kind::parentheses) {
      const bool closes = token_.is("]") || token_.is(")");
      if (!closes) {
        const bool shown = token_.kind == Token::Kind::name || token_.kind == Token::Kind::number ||
                           token_.kind == Token::Kind::string;
        now.content = ++now.tokens == 1 && shown && token_.text.size() <= longest_key ? token_.text
                                                                                      : std::string_view();
        now.base = now.tokens == 1 ? now.base : std::string();
        content_kind_ = token_.kind;
      }
    }
    switch (token_.kind) {
      case Token::Kind::keyword:
        return parse_keyword();
      case Token::Kind::symbol:
        return parse_symbol();
      case Token::Kind::name:
        parse_name();
        return true;
      default:
        // A string after a path is a call's argument.
        if (token_.kind == Token::Kind::string && is_path_end()) spoil_path();
        else now.list.clear();
        now.at_value = false;
        return true;
    }
  }

  bool push(Scope::Kind kind) {
    if (scopes_.size() >= most_depth) return false;
    scopes_.emplace_back(kind);
    return true;
  }

  bool parse_keyword() {
    if (token_.is("function")) return parse_function();
    if (token_.is("and") || token_.is("or")) {
      Scope& now = scope();
      now.at_value = now.index < now.targets.size();
      return true;
    }
    if (token_.is("nil") || token_.is("true") || token_.is("false") || token_.is("not")) {
      scope().at_value = false;
      return true;
    }
    if (token_.is("end")) return close_block(false);
    if (token_.is("until")) return close_block(true);
    scope().forget();
    if (token_.is("do") || token_.is("if")) return push(Scope::Kind::block);
    if (!token_.is("repeat")) return true;
    if (!push(Scope::Kind::block)) return false;
    scope().is_repeat = true;
    return true;
  }

  bool close_block(bool by_until) {
    const Scope& now = scope();
    const bool is_block = now.kind == Scope::Kind::block || now.kind == Scope::Kind::function;
    if (!is_block || scopes_.size() == 1 || now.is_repeat != by_until) return false;
    if (now.kind == Scope::Kind::function) {
      found_[static_cast<std::size_t>(now.definition)].last_line = token_.line;
      open_.pop_back();
    }
    const bool is_statement = now.kind == Scope::Kind::block;
    scopes_.pop_back();
    if (is_statement) scope().forget();
    scope().at_value = false;
    scope().list.clear();
    return true;
  }

  bool parse_symbol() {
    const char c = token_.text.size() == 1 ? token_.text[0] : '\0';
    switch (c) {
      case '{':
        return open_table();
      case '(':
        return open_parentheses();
      case '[':
        return push(Scope::Kind::brackets);
      case '}':
        return close(Scope::Kind::table);
      case ')':
        return close(Scope::Kind::parentheses);
      case ']':
        return close_brackets();
      case '=':
        parse_assignment();
        return true;
      case ',':
      case ';':
        parse_separator(c);
        return true;
      case '.':
      case ':':
      case '<':  // of an attribute
      case '>':
        return true;
      default:
        scope().list.clear();
        scope().at_value = false;
        return true;
    }
  }

  void parse_assignment() {
    Scope& now = scope();
    if (now.kind == Scope::Kind::table) {
      // `name =` or `[key] =`: the path is one key long.
      const std::string key = now.list.size() == 1 ? std::move(now.list[0]) : std::string();
      const bool is_bare_index = now.base.empty() && key.starts_with('[') && !key.starts_with("[\"");
      now.assign({key.empty() || is_bare_index ? std::string() : joined(now.base, key)});
    } else if (now.kind == Scope::Kind::block || now.kind == Scope::Kind::function) {
      now.assign(std::move(now.list));
    }
  }

  void parse_separator(char c) {
    Scope& now = scope();
    if (now.kind == Scope::Kind::table || c == ';') return now.forget();
    if (!now.targets.empty()) now.next_target();
  }

  // Of a key as it is written in a table constructor: `name`, or `["…"]`.
  static std::string joined(std::string_view table, std::string_view key) {
    if (table.empty()) return new_path(key);
    std::string whole(table);
    extend(whole, key.starts_with('[') ? "" : ".", key);
    return whole;
  }

  bool is_after_path() const { return previous_.kind == Token::Kind::name || previous_.is("]"); }
  bool is_path_end() { return is_after_path() && !scope().list.empty(); }
  void spoil_path() {
    if (!scope().list.empty()) scope().list.back().clear();
  }

  void parse_name() {
    Scope& now = scope();
    if (previous_.is("<") && (token_.text == "const" || token_.text == "close")) return;
    if (previous_.is(".") || previous_.is(":")) {
      if (!now.list.empty()) extend(now.list.back(), previous_.text, token_.text);
      return;
    }
    if (!previous_.is(",") || now.kind == Scope::Kind::table) now.list.clear();
    now.list.push_back(new_path(token_.text));
    now.path_is_value = now.at_value;
    now.at_value = false;
  }

  bool open_table() {
    Scope& now = scope();
    std::string base = now.at_value ? now.target() : std::string();
    if (now.kind == Scope::Kind::parentheses && now.tokens == 1) base = now.base;
    spoil_path();
    now.at_value = false;
    if (!push(Scope::Kind::table)) return false;
    scope().base = std::move(base);
    return true;
  }

  // The first argument of setmetatable is what it returns.
  bool open_parentheses() {
    Scope& now = scope();
    const bool passes_on = is_path_end() && now.path_is_value && now.list.back() == "setmetatable";
    std::string base = passes_on ? now.target() : std::string();
    spoil_path();
    now.at_value = false;
    if (!push(Scope::Kind::parentheses)) return false;
    scope().base = std::move(base);
    return true;
  }

  bool close(Scope::Kind kind) {
    if (scope().kind != kind || scopes_.size() == 1) return false;
    scopes_.pop_back();
    return true;
  }

  // `path[key]`, or the key of a table constructor. Other expressions in brackets cannot be shown.
  bool close_brackets() {
    const Scope brackets = std::move(scope());
    if (!close(Scope::Kind::brackets)) return false;
    Scope& now = scope();
    std::string key;
    if (!brackets.content.empty() && content_kind_ == Token::Kind::string)
      key = is_name(brackets.content) ? std::string(brackets.content) : fmt::format("[\"{}\"]", brackets.content);
    else if (!brackets.content.empty()) key = fmt::format("[{}]", brackets.content);
    const bool begins = now.kind == Scope::Kind::table && now.targets.empty() && now.list.empty();
    if (begins) now.list = {key};
    else if (!now.list.empty() && (key.empty() || now.list.back().empty())) spoil_path();
    else if (!now.list.empty()) now.list.back() = joined(now.list.back(), key);
    return true;
  }

  bool parse_function() {
    if (found_.size() >= most_definitions) return false;
    Definition definition;
    definition.parent = open_.empty() ? -1 : open_.back();
    const int line = token_.line;
    const bool is_local = previous_.is("local");
    Scope& outer = scope();
    token_ = tokens_.next();
    const bool is_statement = token_.kind == Token::Kind::name;
    bool has_self = false;
    if (is_statement) {
      outer.forget();
      definition.name = new_path(token_.text);
      for (token_ = tokens_.next(); token_.is(".") || token_.is(":"); token_ = tokens_.next()) {
        has_self |= token_.is(":");
        const std::string_view separator = token_.text;
        token_ = tokens_.next();
        if (token_.kind != Token::Kind::name) return false;
        extend(definition.name, separator, token_.text);
      }
    } else if (outer.at_value) {
      definition.name = outer.target();
    }
    outer.at_value = false;
    outer.list.clear();
    if (!token_.is("(")) return false;
    definition.line = is_statement && !is_local ? line : token_.line;
    if (!parse_parameters(definition, has_self)) return false;
    if (!push(Scope::Kind::function)) return false;
    scope().definition = static_cast<int>(found_.size());
    open_.push_back(scope().definition);
    found_.push_back(std::move(definition));
    return true;
  }

  // Up to the closing parenthesis.
  bool parse_parameters(Definition& definition, bool has_self) {
    definition.parameters = has_self ? 1 : 0;
    bool is_variable = false;
    for (token_ = tokens_.next(); !token_.is(")"); token_ = tokens_.next()) {
      if (token_.is("...")) is_variable = true;  // 5.5: a name may follow
      else if (token_.kind == Token::Kind::name && !is_variable)
        has_self |= ++definition.parameters == 1 && token_.text == "self";
      else if (token_.kind != Token::Kind::name && !token_.is(",")) return false;
    }
    if (!definition.name.empty() && has_self) {
      const PathParts parts = path_parts(definition.name);
      if (!parts.table.empty() && is_name(parts.key)) definition.name = name_in_table(parts.table, parts.key, true);
    }
    return true;
  }

  Tokens tokens_;
  Token token_, previous_;
  Token::Kind content_kind_ = Token::Kind::end;  // of the last token in brackets
  std::vector<Scope> scopes_;
  std::vector<int> open_;  // the functions around, outermost first
  std::vector<Definition> found_;
};

}  // namespace

std::vector<Definition> definitions(std::string_view source) { return Finder(source).find(); }

std::string name_in_table(std::string_view table, std::string_view key, bool takes_self) {
  if (table.empty()) return std::string(key);
  std::string name(table);
  if (!is_name(key)) return name.append("[\"").append(key).append("\"]");
  name += takes_self && !key.starts_with("__") ? ':' : '.';
  return name.append(key);
}

PathParts path_parts(std::string_view path) {
  if (path.ends_with(']')) {
    const std::size_t bracket = path.rfind('[');
    return bracket != path.npos ? PathParts{path.substr(0, bracket), path.substr(bracket)} : PathParts{{}, path};
  }
  const std::size_t end = path.find_last_of(".:");
  return end != path.npos ? PathParts{path.substr(0, end), path.substr(end + 1)} : PathParts{{}, path};
}

}  // namespace luaspy
