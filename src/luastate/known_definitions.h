#pragma once
// What the source texts of a target say about its functions: each text is read and searched once.

#include <string>
#include <unordered_map>
#include <vector>

#include "base/source_texts.h"
#include "luastate/definitions.h"
#include "luastate/lua.h"

namespace luaspy {

// Where a function is among those that begin on the same line of one parent.
struct Siblings {
  int parent = -1;  // the parent's definition; -1: the main chunk; unknown: not found
  int number = 0, count = 1;
  static constexpr int unknown = -2;
};

class KnownDefinitions {
 public:
  // Without it, no files are read. `files` must outlive this.
  void use(SourceTexts* files) { files_ = files; }

  // The definitions in the text that the chunk of `prototype` was compiled from: a file, or the text
  // of the chunk itself, which is a string of the target. Empty if it is not available. Valid until
  // the next call. `memory` is the target's.
  const std::vector<Definition>& in_text_of(const Prototype& prototype, const Lua& lua, const Memory& memory);

 private:
  std::vector<Definition> read(const Prototype& prototype, const Lua& lua, const Memory& memory);

  SourceTexts* files_ = nullptr;
  std::unordered_map<std::string, std::vector<Definition>> texts_;  // by Prototype.source, and where it is
  std::size_t kept_ = 0;                                            // definitions
};

// The number of the definition of `prototype` in `all`: the only one at its lines with as many
// parameters; if functions on one line are alike in that, then by their order. `siblings`: nullptr
// if the order is not known. Siblings::unknown: there is none, or it cannot be told.
int find_definition(const std::vector<Definition>& all, const Prototype& prototype, const Siblings* siblings);

}  // namespace luaspy
