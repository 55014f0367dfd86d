#pragma once
// The symbols of C functions, for those that no table of Lua names.

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/memory.h"

namespace luaspy {

class CodeNames {
 public:
  // `ask` is asked once for each function, and gives "" for one that has no symbol.
  void use(std::function<std::string(Address entry)> ask) { ask_ = std::move(ask); }
  // From now on, only what is known already is known: the program is gone.
  void close() { ask_ = {}; }
  void add(Address entry, std::string name) { known_.emplace(entry, std::move(name)); }

  // "ngx_http_lua_ngx_say (ngx_http_lua_module.so)"; "" if it is not known.
  const std::string& name(Address entry) {
    static const std::string none;
    if (const auto known = known_.find(entry); known != known_.end()) return known->second;
    return ask_ ? known_.emplace(entry, ask_(entry)).first->second : none;
  }
  const std::map<Address, std::string>& known() const { return known_; }

 private:
  std::function<std::string(Address)> ask_;
  std::map<Address, std::string> known_;
};

}  // namespace luaspy
