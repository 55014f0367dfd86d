#pragma once
// The names of the functions of a walk, by the rule of function_name.h. Runs after the stop, on live
// memory, which may have changed since. So everything is cached by address, checked against what the
// stop saw, and read again if it differs.

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/frame.h"
#include "luastate/code_names.h"
#include "luastate/function_copies.h"
#include "luastate/function_name.h"
#include "luastate/host_scripts.h"
#include "luastate/known_definitions.h"
#include "luastate/loaded_functions.h"
#include "luastate/prototype.h"
#include "luastate/twins.h"
#include "luastate/value.h"
#include "luastate/value_path.h"
#include "luastate/walk.h"
#include "luastate/word_table.h"

namespace luaspy {

class Lua;

// A call as a frame shows it: numbers and words, so that it takes no allocation to make one again. Equal calls have
// equal labels as long as Names::forgotten() stays the same.
struct CallLabel {
  Word name = nullptr, file = nullptr;  // of a C function: "" if Lua has no name for it; file: ""
  Address entry = 0;                    // C: the function that is shown (label_call)
  std::uint32_t prototype = 0;
  int line_defined = 0, line = 0;
  Frame::Kind kind = Frame::Kind::c;
  bool own_name = false, line_is_near = false;

  bool operator==(const CallLabel&) const = default;
  // All that Lua says of it.
  Frame frame() const;
  struct Hash {
    std::size_t operator()(const CallLabel& label) const;
  };
};

class Names {
 public:
  explicit Names(const Memory& memory) : memory_(memory) {}

  const Memory& memory() const { return memory_; }
  // Where the texts of Lua files come from; without it they are not looked at. `files` must outlive
  // this.
  void use_sources(SourceTexts* files) { definitions_.use(files); }
  // Where the symbols of C functions come from; without it they have none. `code` must outlive this.
  void use_code(CodeNames* code) { code_ = code; }
  // The Protos of the Lua functions that it has read, in no order. Some may be gone.
  std::vector<Address> known_prototypes() const;
  // The symbol of a C function; "" if it is not known.
  std::string symbol(Address entry) const { return code_ != nullptr ? code_->name(entry) : ""; }

  // Where the calls of a walk were found.
  struct Context {
    const Lua& lua;
    Address G = 0;
    const Memory& stopped;  // what the stop read; other memory cannot be read from it
  };

  // The Lua function of `call`; nullptr if its Proto no longer exists, since the collector may free
  // it once the function has returned. Valid until the next call of any other function of this, and
  // without its `children` if frame() was called for it before.
  const Prototype* prototype(const Lua& lua, const LuaCall& call);

  // From now on, this is the function at that address. Of a function that was there before:
  struct Kept {
    bool replaced = false;  // it was another one
    int alike = 1;          // so many copies in a row were the same
  };
  Kept keep(FunctionCopy copy);
  // How many functions were gone when they were asked for, since the last call.
  int drain_gone() { return std::exchange(gone_, 0); }
  // A look begins: what could not be read in the last one is tried again.
  void begin_look() { ++look_; }
  // Changes when this has become too large and has begun again, after which words are others. That can be in any call
  // of label(), prototype() and keep().
  std::uint64_t forgotten() const { return forgotten_; }
  // The frames of functions whose place is not known, since the last call.
  struct WithoutPlace {
    int gone = 0, no_debug_info = 0;
  };
  WithoutPlace drain_without_place() { return std::exchange(without_place_, {}); }

  // What is shown of `call`. `caller` is the call outside of it in the same coroutine, nullptr if there
  // is none or it is not known. `pc` is the next instruction of a Lua call.
  //
  // LuaJIT has none of LuaCall.tail, and LuaCall.inner is always `called`. A name that the caller's expression does
  // not confirm is therefore left out (luajit/callee.cpp). LuaCall.fresh means there that the
  // function was called through a C frame (FRAME_C, FRAME_CP).
  CallLabel label(const Context& context, const LuaCall& call, const LuaCall* caller, Address pc);

  // The C function that the frame of `call` stands for, if that is LuaJIT's FFI; else 0.
  Address ffi_function(const Context& context, const LuaCall& call, const LuaCall* caller);

  // The name of a C function (LuaCall.key), or of a Lua function (its Proto), where it lives; empty
  // if it is not there.
  std::string loaded_name(const Context& context, Address key_or_proto);

  // The chunk of a Lua function that was defined at this place, as frames call it.
  std::string chunk_of(const Context& context, Address proto, const FunctionPlace& place);

  // The SHA-1 of the script of Redis, Valkey or KeyDB that the function belongs to, 40 digits; "" if it is none of
  // these, or not known. Valid until the next call of label().
  std::string_view host_script(const LuaCall& call) const { return scripts_.known_script_of(call.proto, call.mark); }

  // Reads package.loaded now, which takes milliseconds. Needed only before stand_still(true): else
  // it is read when a function is asked for that is not known.
  void read_loaded(const Lua& lua, Address G) { loaded_.read(lua, memory_, G); }
  // Does the whole target stand still from now on, waiting for luaspy? As long as it does, neither
  // package.loaded nor source texts are read: names are made of what is known. A function that is
  // first seen then is looked for when it is next named. Call with false when the target runs again.
  void stand_still(bool still) { stands_still_ = still; }

 private:
  // What an instruction calls.
  struct Called {
    struct Verdict {
      int looks = 0;
      bool settled = false, is_true = false;
    };
    Word name;
    bool is_general = false;  // the name of an iterator or a metamethod
    ValuePath path;
    std::unordered_map<Address, Verdict> verdicts;  // by callee: is it really called by that name?
  };
  struct Entry {
    std::uint64_t mark = 0;
    Prototype prototype;
    std::unordered_map<int, Called> callees;  // by instruction
    std::uint32_t identity = 0;               // Frame.prototype; 0: not computed yet
    bool is_told_apart = false;               // from others of its identity, by its name
    Word file = nullptr;                      // chunk_name() of its source, or that of its HostScripts
    bool may_be_script = false;               // of a host, and it is not known of which
    Word defined_as = nullptr;                // the name in its Definition
    bool is_identified = false;               // its Definition was searched, and its functions were told apart
    bool was_missed = false;                  // it was not in package.loaded when it was first looked for
    std::uint64_t fingerprint = 0;            // of the Prototype
    std::size_t size = 0;                     // about as many bytes
    int alike = 0;                            // copies in a row that were this function
  };
  // What a function is called by itself.
  struct OwnName {
    Word text;
    bool is_own = false;  // as FunctionName::is_own
  };
  void make_room();
  Entry* entry(const Lua& lua, const LuaCall& call);
  Entry& put(Address proto, std::uint64_t mark, Prototype prototype);
  OwnName lua_name(const Context& context, Entry& entry, const LuaCall& call);
  Word c_name(const LoadedFunctions::Function* found);
  Word c_name(const Context& context, const LuaCall& call, const LuaCall* caller);
  template <typename Make>
  OwnName loaded_word(const void* what, Make make);
  Word iterator_of(const Context& context, const LuaCall& call, Word called);
  std::pair<Value::Type, Value::Type> first_upvalues(const Context& context, const LuaCall& call) const;
  Word called_as(const Context& context, const LuaCall& call, const LuaCall* caller);
  bool is_true(Called& called, const Context& context, const LuaCall& call, const LuaCall& caller);
  void name_script(const Context& context, Entry& entry);
  void identify(const Lua& lua, Entry& entry);
  void name_children(const Lua& lua, const Prototype& parent);
  void distinguish(Entry& entry, const std::string& called_as);

  const Memory& memory_;
  WordTable words_;
  std::uint64_t forgotten_ = 0;
  std::unordered_map<Address, Entry> prototypes_;  // by Proto
  // Functions that could not be read: a function may have many calls in one look.
  struct Unreadable {
    std::uint64_t mark = 0, look = 0;
  };
  std::unordered_map<Address, Unreadable> unreadable_;  // by Proto
  std::uint64_t look_ = 1;
  LoadedFunctions loaded_;
  HostScripts scripts_;
  KnownDefinitions definitions_;
  std::unordered_map<Address, Word> iterators_;  // by LuaCall.key: a few, near functions of Lua's library
  // The names of what loaded_ knows: of functions, and of closures that have their own (LoadedFunctions::Name), by
  // their addresses there. Valid for one reading.
  std::unordered_map<const void*, OwnName> loaded_words_;
  int loaded_reading_ = 0;
  Twins twins_;
  // The local variables in which functions were defined, by Proto.
  struct Given {
    std::uint64_t mark = 0;
    std::string name;
  };
  std::unordered_map<Address, Given> given_;
  // What functions of one place and identity are called, each in the look that first had a name for it.
  std::unordered_map<std::uint64_t, std::vector<std::string>> called_;
  CodeNames* code_ = nullptr;
  bool stands_still_ = false;
  int gone_ = 0;
  WithoutPlace without_place_;
  std::size_t kept_bytes_ = 0;  // in prototypes_
};

// A chunk's name as Lua shows it (lobject.c, luaO_chunkid), but with file names uncut: "@a/b.lua"
// is "a/b.lua", "=stdin" is "stdin", source text is [string "first line..."].
std::string chunk_name(const std::string& source);

}  // namespace luaspy
