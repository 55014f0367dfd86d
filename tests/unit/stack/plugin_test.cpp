#include "stack/plugin.h"

#include <catch2/catch.hpp>
#include <utility>

namespace luaspy::plugin_test {

TEST_CASE("a plugin is known by the folder of its files", "[unit]") {
  for (const auto& [file, plugin] : {
           std::pair("/home/u/.local/share/nvim/lazy/telescope.nvim/lua/telescope/init.lua", "telescope.nvim"),
           {"/home/u/.local/share/nvim/site/pack/packer/start/nvim-cmp/after/plugin/cmp.lua", "nvim-cmp"},
           {"/home/u/.local/share/nvim/site/pack/deps/opt/mini.nvim/lua/mini/ai.lua", "mini.nvim"},
           {"/home/u/.vim/plugged/nvim-tree.lua/lua/nvim-tree.lua", "nvim-tree.lua"},
           {"/home/u/.vim/bundle/x/plugin/x.lua", "x"},
           {"/usr/share/nvim/runtime/lua/vim/lsp/client.lua", "(neovim)"},
           {"/usr/share/nvim/runtime/pack/dist/opt/matchit/plugin/matchit.lua", "matchit"},
           {"vim/shared.lua", "(neovim)"},
           {"/usr/local/share/lua/5.1/kong/plugins/rate-limiting/handler.lua", "rate-limiting"},
           {"./kong/plugins/acl/groups.lua", "acl"},
           {"/usr/local/apisix/apisix/plugins/prometheus.lua", "prometheus"},
           {"/usr/local/apisix/apisix/plugins/prometheus/exporter.lua", "prometheus"},
       }) {
    CHECK(plugin_of(file) == plugin);
  }
}

TEST_CASE("what only looks like the folder of a plugin is none", "[unit]") {
  for (const char* const file :
       {"", "/", "a.lua", "/srv/lazy/a.lua", "/srv/lazy/app/init.lua", "/srv/start/x/lua/y.lua", "pack/start/lua/x.lua",
        "/opt/plugins/x/y.lua", "/home/u/.config/nvim/init.lua", "kong/plugins", "lua/vim/x.lua", "vim"}) {
    CHECK(plugin_of(file) == "");
  }
}

}  // namespace luaspy::plugin_test
