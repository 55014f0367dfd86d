#pragma once
// What the source texts of a target say about its functions: each text is searched once.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/source_texts.h"
#include "luastate/definitions.h"
#include "luastate/lua.h"
#include "luastate/twins.h"

namespace luaspy {

class KnownDefinitions {
 public:
  // Without it, no files are read. `files` must outlive this.
  void use(SourceTexts* files) { files_ = files; }

  // The definitions in the text that the chunk of `prototype` was compiled from: a file, which is
  // read once, or the text of the chunk itself, which is a string of the target. Empty if it is not
  // available, or the Proto no longer exists: then its mark (Lua::mark) is not `mark`. Valid until
  // the next call. `memory` is the target's, as it is now.
  std::span<const Definition> in_text_of(const Prototype& prototype, std::uint64_t mark, const Lua& lua,
                                         const Memory& memory);

 private:
  std::span<const Definition> in_file(const std::string& name);
  std::span<const Definition> in_text(std::string_view text);
  void make_room();
  std::span<const Definition> keep(std::vector<Definition>& place, std::vector<Definition> found);

  SourceTexts* files_ = nullptr;
  std::unordered_map<std::string, std::vector<Definition>> by_file_;
  std::unordered_map<std::size_t, std::vector<Definition>> by_text_;  // by a hash of the text
  std::size_t kept_ = 0;                                              // definitions in both
};

// The number of the definition of `prototype` in `all`: the only one at its lines with as many
// parameters; if functions on one line are alike in that, then by their order. `siblings`: nullptr
// if the order is not known. Siblings::unknown: there is none, or it cannot be told.
int find_definition(std::span<const Definition> all, const Prototype& prototype, const Siblings* siblings);

}  // namespace luaspy
