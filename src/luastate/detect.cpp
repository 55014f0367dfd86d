#include "luastate/detect.h"

#include <algorithm>

#include "base/text.h"
#include "luastate/luas.h"

namespace luaspy {
namespace {

constexpr std::size_t chunk_size = 1 << 20;
constexpr std::size_t longest_path = 1 << 12;  // PATH_MAX (limits.h); limit for a path that is shown
constexpr std::size_t image_limit = 1 << 30;

// False if some of it could not be read.
template <typename LookAt>
bool for_each_piece(const Memory& memory, const std::vector<ImagePart>& constant, LookAt look_at) {
  bool read = true;
  std::vector<std::byte> buffer;
  for (const ImagePart& range : constant) {
    for (Address at = range.start; at < range.end; at += chunk_size) {
      buffer.resize(std::min<Address>(chunk_size + LuaSigns::overlap, range.end - at));
      // Of a piece that can be read in part, as beyond the end of a file, that part counts.
      const std::size_t readable = memory.read_some(at, buffer);
      read = read && readable == buffer.size();
      if (readable != 0)
        look_at(std::string_view(reinterpret_cast<const char*>(buffer.data()), readable),
                std::min(readable, chunk_size));
    }
  }
  return read;
}

std::vector<LuaIdent> search(const Memory& memory, const std::vector<ImagePart>& constant, bool& read) {
  LuaSigns signs;
  read = for_each_piece(memory, constant,
                        [&](std::string_view piece, std::size_t size) { signs.look_at(piece, size); });
  if (signs.may_have_tables())
    (void)for_each_piece(memory, constant,
                         [&](std::string_view piece, std::size_t size) { signs.look_for_tables(piece, size); });
  return signs.found();
}

constexpr int most_searches = 10;  // of an image that cannot be read as a whole; there may be a reason that stays
bool wants_again(int in_vain) { return in_vain > 0 && in_vain < most_searches; }

}  // namespace

bool Detector::update(const AddressSpace& space, const Memory& memory, KnownImages* known,
                      const VersionOf& version_of) {
  struct Image {
    Address start, end;
    const Mapping* first;
    std::string path;
    bool executable;
    std::vector<ImagePart> mapped, constant;
  };
  std::vector<Image> images;
  for (const Mapping& mapping : space.mappings()) {
    if (mapping.inode == 0) continue;
    if (images.empty() || images.back().first->inode != mapping.inode || images.back().path != mapping.path)
      images.push_back({mapping.start, mapping.end, &mapping, mapping.path, false, {}, {}});
    Image& image = images.back();
    image.end = mapping.end;
    image.executable |= mapping.executable;
    image.mapped.push_back({mapping.start, mapping.end});
    if (mapping.readable && !mapping.writable) image.constant.push_back({mapping.start, mapping.end});
  }
  std::vector<Seen> seen;
  bool changed = false;
  for (const Image& image : images) {
    if (!image.executable || image.end - image.start > image_limit) continue;
    Seen& entry = seen.emplace_back(Seen{image.start, image.path});
    const auto before = std::ranges::find_if(seen_, [&](const Seen& other) { return other.is_same(entry); });
    if (before != seen_.end()) entry.in_vain = before->in_vain;
    if (before != seen_.end() && !wants_again(entry.in_vain)) continue;
    const std::optional<FileVersion> file = known != nullptr && version_of ? version_of(*image.first) : std::nullopt;
    const auto met = file ? known->find(*file) : KnownImages::iterator();
    const bool is_known = file && met != known->end();
    bool read = true;
    const std::vector<LuaIdent> found = is_known ? met->second : search(memory, image.constant, read);
    read = read && (is_known || has_all_constant_parts(memory, image.start, image.mapped));
    entry.in_vain = read || !found.empty() ? 0 : entry.in_vain + 1;
    constexpr std::size_t most_known = 1 << 14;  // of a host on which programs are made anew all the time
    if (file && known->size() >= most_known) known->clear();
    if (file && read && !image.constant.empty()) known->emplace(*file, found);
    for (const LuaIdent& lua : found)
      images_.push_back({printable(image.path, longest_path), image.start, image.end, lua.version, lua.text,
                         lua.strength == 3, layouts_for(lua.version), lua.copies});
    changed |= !found.empty();
  }
  changed |= std::erase_if(images_, [&](const LuaImage& image) {
               return std::ranges::none_of(seen, [&](const Seen& entry) {
                 return entry.start == image.start && printable(entry.path, longest_path) == image.path;
               });
             }) != 0;
  // Programs may mention "Lua 5.3" without containing it: this counts only if nothing better is
  // found.
  if (std::ranges::any_of(images_, &LuaImage::certain))
    std::erase_if(images_, [](const LuaImage& image) { return !image.certain; });
  seen_ = std::move(seen);
  return changed;
}

bool Detector::is_incomplete() const {
  return std::ranges::any_of(seen_, [](const Seen& entry) { return wants_again(entry.in_vain); });
}

std::vector<const Lua*> Detector::layouts() const {
  std::vector<const Lua*> all;
  for (const LuaImage& image : images_) {
    for (const Lua* const layout : image.layouts) {
      if (std::ranges::find(all, layout) == all.end()) all.push_back(layout);
    }
  }
  return all;
}

std::vector<std::string> Detector::searched() const {
  std::vector<std::string> paths;
  for (const Seen& entry : seen_) paths.push_back(printable(entry.path, longest_path));
  return paths;
}

}  // namespace luaspy
