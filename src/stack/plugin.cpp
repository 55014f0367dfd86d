#include "stack/plugin.h"

#include <algorithm>
#include <array>
#include <vector>

namespace luaspy {
namespace {

using Parts = std::vector<std::string_view>;

Parts parts_of(std::string_view path) {
  Parts parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end != 0) parts.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

template <std::size_t n>
bool is_one_of(std::string_view text, const std::array<std::string_view, n>& all) {
  return std::ranges::find(all, text) != all.end();
}

// The folders in which Neovim looks for Lua (:help 'runtimepath').
constexpr std::array<std::string_view, 11> runtime_folders = {
    "lua", "plugin", "ftplugin", "after", "autoload", "colors", "syntax", "indent", "compiler", "lsp", "ftdetect"};

// Of a Neovim plugin, the folder at `i` is its own.
bool is_neovim_plugin(const Parts& parts, std::size_t i) {
  if (i + 2 >= parts.size() || i == 0 || !is_one_of(parts[i + 1], runtime_folders)) return false;
  const std::string_view kept_in = parts[i - 1];
  if (kept_in == "start" || kept_in == "opt") return i >= 3 && parts[i - 3] == "pack";
  return is_one_of(kept_in, std::array<std::string_view, 3>{"lazy", "plugged", "bundle"});
}

std::string without_ending(std::string_view name) {
  return std::string(name.ends_with(".lua") ? name.substr(0, name.size() - 4) : name);
}

}  // namespace

std::string plugin_of(std::string_view file) {
  const Parts parts = parts_of(file);
  // The innermost: a plugin may lie in the folder of a program that is itself one.
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (is_neovim_plugin(parts, i)) return std::string(parts[i]);
    const bool is_server = i >= 2 && parts[i - 1] == "plugins" && (parts[i - 2] == "kong" || parts[i - 2] == "apisix");
    if (is_server) return without_ending(parts[i]);
    if (parts[i] == "runtime" && i >= 1 && parts[i - 1] == "nvim" && i + 1 < parts.size()) return "(neovim)";
  }
  // Its own modules are part of the executable (src/nvim/lua/executor.c): their chunks are "vim/shared.lua".
  return parts.size() > 1 && parts[0] == "vim" && file.ends_with(".lua") ? "(neovim)" : "";
}

}  // namespace luaspy
