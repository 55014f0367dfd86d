#include "luastate/detect.h"

#include <string.h>

#include <algorithm>
#include <optional>

#include "luastate/layouts/luajit.h"

namespace luaspy {
namespace {

constexpr std::size_t chunk_size = 1 << 20;
constexpr std::size_t overlap = 64;  // longer than what is read of an ident
constexpr std::size_t image_limit = 1 << 30;

std::string_view word_at(std::string_view text, std::size_t at, std::string_view allowed) {
  const std::size_t end = text.find_first_not_of(allowed, at);
  return text.substr(at, std::min(end, text.size()) - at);
}

std::optional<LuaIdent> find_ident(std::string_view text) {
  constexpr std::string_view digits = "0123456789.";
  for (const std::string_view prefix : {"$LuaVersion: Lua 5.", "$Lua: Lua 5."}) {
    const std::size_t at = text.find(prefix);
    if (at == text.npos) continue;
    const std::string_view version = word_at(text, at + prefix.size() - 2, digits);
    constexpr std::size_t shortest = 3;   // "5.4"; luaspy itself has the rest of it
    if (version.size() < shortest) continue;
    return LuaIdent{std::string(version), std::string(prefix.substr(0, prefix.size() - 2)) + std::string(version), 3};
  }
  if (const std::size_t at = text.find("LuaJIT 2."); at != text.npos) {
    // luajit.h, LUAJIT_VERSION: "LuaJIT 2.1.0-beta3", "LuaJIT 2.1.1761786044".
    const std::string_view number = word_at(text, at + 7, "0123456789.-beta");
    constexpr std::size_t shortest = 3;   // "2.1"
    if (number.size() >= shortest) return LuaIdent{"LuaJIT " + std::string(number), "LuaJIT " + std::string(number), 2};
  }
  for (std::size_t at = text.find("Lua 5."); at != text.npos; at = text.find("Lua 5.", at + 1)) {
    const bool whole = at > 0 && text[at - 1] == '\0' && at + 8 <= text.size() && text[at + 7] == '\0';
    if (whole && text[at + 6] >= '1' && text[at + 6] <= '5') return LuaIdent{std::string(text.substr(at + 4, 3)), std::string(text.substr(at, 7)), 1};
  }
  return std::nullopt;
}

// Not string_view::find, which begins anew at each byte that is as the first one.
bool has(std::string_view text, std::string_view wanted) { return ::memmem(text.data(), text.size(), wanted.data(), wanted.size()) != nullptr; }

// `read`: set if any of it could be.
std::optional<LuaIdent> search(const Memory& memory, Address start, Address end, bool& read) {
  std::optional<LuaIdent> best;
  bool has_messages = false;
  std::vector<std::byte> buffer;
  for (Address at = start; at < end; at += chunk_size) {
    buffer.resize(std::min<Address>(chunk_size + overlap, end - at));
    if (!memory.read(at, buffer)) continue;
    read = true;
    const std::string_view text(reinterpret_cast<const char*>(buffer.data()), buffer.size());
    // lj_errmsg.h: the messages are one array. Programs that LuaJIT is in name its version, too.
    constexpr std::string_view messages("error in error handling\0C++ exception\0", 38);
    has_messages |= has(text, messages);
    const std::optional<LuaIdent> found = has(text, "Lua") ? find_ident(text) : std::nullopt;
    if (found && (!best || found->strength > best->strength)) best = found;
    if (best && best->strength == 3) break;
  }
  if (best && best->strength == 2 && has_messages) best->strength = 3;
  return best;
}

}  // namespace

std::vector<Dialect> rows_for(const std::string& version) {
  if (version.starts_with("LuaJIT")) return {{nullptr, &layout_rows::luajit_gc64}, {nullptr, &layout_rows::luajit_gc32}};
  std::vector<Dialect> rows;
  const std::string_view series = std::string_view(version).substr(0, 3);
  const int patch = version.size() == 5 ? version[4] - '0' : -1;
  for (const Layout& row : layouts()) {
    if (row.series == series) rows.push_back({&row, nullptr});
  }
  // Newest first, but the row that the version names before all; a release newer than every row gets the newest.
  std::ranges::reverse(rows);
  std::stable_partition(rows.begin(), rows.end(), [&](const Dialect& row) { return patch >= row.puc->first_patch && patch <= row.puc->last_patch; });
  return rows;
}

std::vector<Dialect> all_rows() {
  std::vector<Dialect> rows;
  for (const Layout& row : layouts()) rows.push_back({&row, nullptr});
  std::ranges::reverse(rows);
  const std::vector<Dialect> luajit = rows_for("LuaJIT");
  rows.insert(rows.end(), luajit.begin(), luajit.end());
  return rows;
}

bool Detector::update(const AddressSpace& space, const Memory& memory, KnownImages* known) {
  struct Image {
    Address start, end;
    std::uint64_t device, inode;
    std::string path;
    bool executable;
    std::vector<const Mapping*> constant;
  };
  std::vector<Image> images;
  for (const Mapping& mapping : space.mappings()) {
    if (mapping.inode == 0) continue;
    if (images.empty() || images.back().inode != mapping.inode || images.back().path != mapping.path)
      images.push_back({mapping.start, mapping.end, mapping.device, mapping.inode, mapping.path, false, {}});
    Image& image = images.back();
    image.end = mapping.end;
    image.executable |= mapping.executable;
    if (mapping.readable && !mapping.writable) image.constant.push_back(&mapping);
  }
  std::vector<Seen> seen;
  bool changed = false;
  for (const Image& image : images) {
    if (!image.executable || image.end - image.start > image_limit) continue;
    const Seen entry{image.start, image.path};
    seen.push_back(entry);
    if (std::ranges::find(seen_, entry) != seen_.end()) continue;
    const auto key = std::tuple(image.device, image.inode, image.path);
    const auto met = known != nullptr ? known->find(key) : KnownImages::iterator();
    const bool is_known = known != nullptr && met != known->end();
    std::optional<LuaIdent> best = is_known ? met->second : std::nullopt;
    bool read = false;
    for (const Mapping* mapping : image.constant) {
      if (is_known) break;
      const std::optional<LuaIdent> found = search(memory, mapping->start, mapping->end, read);
      if (found && (!best || found->strength > best->strength)) best = found;
    }
    if (known != nullptr && read) known->emplace(key, best);
    if (!best) continue;
    images_.push_back({image.path, image.start, image.end, best->version, best->text, best->strength == 3, rows_for(best->version)});
    changed = true;
  }
  changed |= std::erase_if(images_, [&](const LuaImage& image) {
    return std::ranges::find(seen, Seen{image.start, image.path}) == seen.end();
  }) != 0;
  // Programs mention "Lua 5.3" without having one: that counts only where nothing better is.
  if (std::ranges::any_of(images_, &LuaImage::certain)) std::erase_if(images_, [](const LuaImage& image) { return !image.certain; });
  seen_ = std::move(seen);
  return changed;
}

std::vector<Dialect> Detector::rows() const {
  std::vector<Dialect> all;
  for (const LuaImage& image : images_) {
    for (const Dialect& row : image.rows) {
      if (std::ranges::find(all, row) == all.end()) all.push_back(row);
    }
  }
  return all;
}

std::vector<std::string> Detector::searched() const {
  std::vector<std::string> paths;
  for (const Seen& entry : seen_) paths.push_back(entry.path);
  return paths;
}

}  // namespace luaspy
