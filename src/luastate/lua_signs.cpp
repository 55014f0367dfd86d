#include "luastate/lua_signs.h"

#include <string.h>

#include <algorithm>

namespace luaspy {
namespace {

// All signs are stored inverted and converted when luaspy runs: otherwise luaspy itself would
// contain them.
volatile const unsigned char inversion = 0xff;

template <std::size_t size>
consteval std::array<unsigned char, size - 1> hidden(const char (&text)[size]) {
  std::array<unsigned char, size - 1> bytes{};
  for (std::size_t i = 0; i + 1 < size; ++i) bytes[i] = static_cast<unsigned char>(text[i]) ^ 0xff;
  return bytes;
}

template <std::size_t size>
std::string shown(const std::array<unsigned char, size>& hidden) {
  const unsigned char mask = inversion;
  std::string text;
  for (const unsigned char byte : hidden) text += static_cast<char>(byte ^ mask);
  return text;
}

// lopcodes.c, luaP_opmodes: one byte for each opcode, the same in all releases of a series. For 5.4
// and 5.5 only the first 64: a beta of 5.5 has fewer opcodes than its releases.
constexpr std::array<unsigned char, 38> opmodes_51 = {
    0x9f, 0x8e, 0xab, 0x9f, 0xaf, 0x8e, 0x93, 0xce, 0xef, 0xc3, 0xab, 0x93, 0x83, 0x83, 0x83, 0x83, 0x83, 0x83, 0x9f,
    0x9f, 0x9f, 0x97, 0xdd, 0x43, 0x43, 0x43, 0x1b, 0x1b, 0xab, 0xab, 0xef, 0x9d, 0x9d, 0x7b, 0xeb, 0xff, 0xae, 0xaf};
constexpr std::array<unsigned char, 40> opmodes_52 = {0x9f, 0x8e, 0xbe, 0xab, 0xaf, 0xaf, 0xa3, 0x93, 0xc3, 0xef,
                                                      0xc3, 0xab, 0x93, 0x83, 0x83, 0x83, 0x83, 0x83, 0x83, 0x9f,
                                                      0x9f, 0x9f, 0x97, 0xdd, 0x43, 0x43, 0x43, 0x7b, 0x1b, 0xab,
                                                      0xab, 0xef, 0x9d, 0x9d, 0xfb, 0x9d, 0xeb, 0xae, 0xaf, 0xe8};
constexpr std::array<unsigned char, 47> opmodes_53 = {
    0x9f, 0x8e, 0xbe, 0xab, 0xaf, 0xaf, 0xa3, 0x93, 0xc3, 0xef, 0xc3, 0xab, 0x93, 0x83, 0x83, 0x83,
    0x83, 0x83, 0x83, 0x83, 0x83, 0x83, 0x83, 0x83, 0x83, 0x9f, 0x9f, 0x9f, 0x9f, 0x97, 0xdd, 0x43,
    0x43, 0x43, 0x7b, 0x1b, 0xab, 0xab, 0xef, 0x9d, 0x9d, 0xfb, 0x9d, 0xeb, 0xae, 0xaf, 0xe8};
constexpr std::array<unsigned char, 64> opmodes_54 = {
    0xf7, 0xf5, 0xf5, 0xf6, 0xf6, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xff, 0xf7, 0xf7, 0xf7, 0xf7, 0xff,
    0xff, 0xff, 0xff, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7,
    0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0x7f, 0x7f,
    0x7f, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xff, 0xff, 0xfb, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef};
constexpr std::array<unsigned char, 64> opmodes_55 = {
    0xf7, 0xf4, 0xf4, 0xf5, 0xf5, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xff, 0xf7, 0xf7, 0xf7, 0xf7, 0xff,
    0xff, 0xff, 0xff, 0xf6, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7,
    0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0x7f, 0x7f,
    0x7f, 0xf7, 0xf7, 0xf7, 0xf7, 0xf7, 0xff, 0xff, 0xfa, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef, 0xef};

struct Signs {
  std::array<std::string, 5> opmodes = {shown(opmodes_51), shown(opmodes_52), shown(opmodes_53), shown(opmodes_54),
                                        shown(opmodes_55)};
  // ltm.c: luaX_eventname. Hosts and libraries also contain some of these names; LuaJIT's are not
  // separate strings (lj_meta.c).
  std::string event = shown(hidden("\0__newindex\0"));
  std::string parser = shown(hidden("\0<eof>\0"));                             // llex.c, luaX_tokens
  std::string comparison = shown(hidden("attempt to compare two %s values"));  // ldebug.c, luaG_ordererror
  // lj_errmsg.h: the messages are one array. Programs that embed LuaJIT also contain its version.
  std::string luajit_messages = shown(hidden("error in error handling\0C++ exception\0"));
  // Luau: lapi.cpp, luau_ident, which linkers may leave out; ltm.cpp, luaT_eventname, which no other
  // Lua has.
  std::string luau_ident = shown(hidden("$Luau: Copyright"));
  std::string luau_event = shown(hidden("\0__namecall\0"));
  std::string luau_version = shown(hidden("\0Luau\0"));  // lbaselib.cpp, luaopen_base: _VERSION
};

const Signs& signs() {
  static const Signs signs;
  return signs;
}

// No version is as long as what a word is cut to.
std::string_view word_at(std::string_view text, std::size_t at, std::string_view allowed) {
  constexpr std::size_t most = 40;
  const std::string_view word = text.substr(at, most);
  return word.substr(0, word.find_first_not_of(allowed));
}

// Not string_view::find, which starts a new search at each byte that equals the first one.
std::size_t find(std::string_view text, std::string_view wanted, std::size_t from = 0) {
  if (from >= text.size()) return text.npos;
  const void* const found = ::memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found != nullptr ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) : text.npos;
}

bool has(std::string_view text, std::string_view wanted) { return find(text, wanted) != text.npos; }

}  // namespace

void LuaSigns::add_ident(LuaIdent ident) {
  constexpr std::size_t most = 16;
  const auto same = std::ranges::find(idents_, ident.version, &LuaIdent::version);
  if (same != idents_.end()) ++same->copies;
  else if (idents_.size() < most) idents_.push_back(std::move(ident));
}

void LuaSigns::look_at(std::string_view piece, std::size_t size) {
  has_luajit_messages_ = has_luajit_messages_ || has(piece, signs().luajit_messages);
  has_events_ = has_events_ || has(piece, signs().event);
  const std::string& luau = signs().luau_ident;
  for (std::size_t at = find(piece, luau); at < size; at = find(piece, luau, at + 1)) ++luau_idents_;
  has_luau_event_ = has_luau_event_ || has(piece, signs().luau_event);
  has_luau_version_ = has_luau_version_ || has(piece, signs().luau_version);
  if (!has(piece, "Lua") && !has_events_) return;
  has_parser_ = has_parser_ || has(piece, signs().parser);
  has_comparison_ = has_comparison_ || has(piece, signs().comparison);
  constexpr std::string_view digits = "0123456789.";
  for (const std::string_view prefix : {"$LuaVersion: Lua 5.", "$Lua: Lua 5."}) {
    for (std::size_t at = find(piece, prefix); at < size; at = find(piece, prefix, at + 1)) {
      const std::string_view version = word_at(piece, at + prefix.size() - 2, digits);
      // "5.4"; luaspy itself contains the rest of it.
      constexpr std::size_t shortest = 3;
      if (version.size() >= shortest)
        add_ident({std::string(version), std::string(prefix.substr(0, prefix.size() - 2)) + std::string(version), 3});
    }
  }
  if (const std::size_t at = find(piece, "LuaJIT 2."); at != piece.npos && !luajit_) {
    // luajit.h, LUAJIT_VERSION: "LuaJIT 2.1.0-beta3", "LuaJIT 2.1.1761786044".
    std::string_view number = word_at(piece, at + 7, "0123456789.-beta");
    // "LuaJIT 2.0.ROLLING", if it was built from sources whose date is not known.
    number = number.substr(0, number.find_last_not_of(".-") + 1);
    constexpr std::size_t shortest = 3;  // "2.1"
    if (number.size() >= shortest)
      luajit_ = LuaIdent{"LuaJIT " + std::string(number), "LuaJIT " + std::string(number), 2};
  }
  for (std::size_t at = find(piece, "Lua 5."); at != piece.npos && !series_; at = find(piece, "Lua 5.", at + 1)) {
    const bool whole = at > 0 && piece[at - 1] == '\0' && at + 8 <= piece.size() && piece[at + 7] == '\0';
    if (whole && piece[at + 6] >= '1' && piece[at + 6] <= '5')
      series_ = LuaIdent{std::string(piece.substr(at + 4, 3)), std::string(piece.substr(at, 7)), 1};
  }
}

void LuaSigns::look_for_tables(std::string_view piece, std::size_t size) {
  constexpr int most = 16;
  for (std::size_t i = 0; i < series_count; ++i) {
    const std::string& table = signs().opmodes[i];
    for (std::size_t at = find(piece, table); at < size && tables_[i] < most; at = find(piece, table, at + 1))
      ++tables_[i];
  }
}

std::vector<LuaIdent> LuaSigns::found() const {
  std::vector<LuaIdent> found = idents_;
  if (is_luau()) {
    // Luau's lapi.cpp has the ident of the Lua that it was made from, too. A page of a file may be mapped twice, with
    // both.
    const auto origin = std::ranges::find(found, "5.1.4", &LuaIdent::version);
    if (origin != found.end() && (origin->copies -= luau_idents_) <= 0) found.erase(origin);
    found.push_back({"Luau", luau_idents_ > 0 ? "$Luau" : "names of metamethods", 3, 1});
  }
  for (std::size_t i = 0; i < series_count; ++i) {
    const std::string series = "5." + std::to_string(i + 1);
    int named = 0;
    LuaIdent* first = nullptr;
    for (LuaIdent& ident : found) {
      if (!ident.version.starts_with(series)) continue;
      if (first == nullptr) first = &ident;
      named += ident.copies;
    }
    if (first != nullptr) first->copies += std::max(tables_[i] - named, 0);
    else if (tables_[i] > 0) found.push_back({series, "table of opcodes", 3, tables_[i]});
  }
  if (luajit_ && (found.empty() || has_luajit_messages_))
    found.push_back({luajit_->version, luajit_->text, has_luajit_messages_ ? 3 : 2, 1});
  if (!found.empty()) return found;
  // If it has other opcodes, or no parser, only its messages identify it. Then the version that it
  // claims narrows the rows.
  if (has_events_ && has_parser_ && has_comparison_) return {{series_ ? series_->version : "5.?", "messages", 2, 1}};
  if (series_) return {*series_};
  return {};
}

}  // namespace luaspy
