#include "support/fake_memory.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace luaspy::fuzz {
namespace {

Image load(const std::filesystem::path& path) {
  Image image;
  image.name = path.stem().string();
  image.stop = replay::load_stop(path.string());
  for (const auto& [address, byte] : image.stop.memory.bytes()) {
    if (image.runs.empty() || image.runs.back().end() != address) image.runs.push_back({address, {}});
    image.runs.back().bytes.push_back(byte);
    const bool on_stack = address >= image.stop.stack_start &&
                          address - image.stop.stack_start < image.stop.stack.size();
    if (address % 8 == 0 && !on_stack) image.words.push_back(address);
  }
  image.stop.memory.bytes().clear();  // it is in `runs`
  return image;
}

std::vector<Image>& loaded_images() {
  static std::vector<Image> loaded = [] {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(LUASPY_TESTS "/replay/stops"))
      paths.push_back(entry.path());
    std::ranges::sort(paths);  // those of LuaJIT come last
    std::vector<Image> images;
    for (const auto& path : paths) images.push_back(load(path));
    return images;
  }();
  return loaded;
}

}  // namespace

const std::vector<Image>& images() { return loaded_images(); }

std::size_t puc_images() {
  static const auto count = static_cast<std::size_t>(std::ranges::count_if(
      loaded_images(), [](const Image& image) { return !image.stop.version.starts_with("LuaJIT"); }));
  return count;
}

FakeMemory::FakeMemory(const Image& image, Input& input, Beyond beyond) : image_(image) {
  constexpr int most_changes = 64;
  for (int i = 0; i < most_changes && change(input); ++i) {
  }
  if (beyond == Beyond::nothing) elsewhere_ = 0;
}

FakeMemory::~FakeMemory() {
  for (auto old = old_.rbegin(); old != old_.rend(); ++old) {
    Image::Run* const run = run_of(old->address);
    std::copy_n(old->bytes, old->size, run->bytes.begin() + static_cast<std::ptrdiff_t>(old->address - run->start));
  }
}

// A byte for the kind of change, three for the place, and eight for the value.
bool FakeMemory::change(Input& input) {
  if (input.empty()) return false;
  const auto what = input.take<std::uint8_t>();
  std::uint32_t where = input.take<std::uint8_t>();
  where |= std::uint32_t{input.take<std::uint16_t>()} << 8;
  auto value = input.take<std::uint64_t>();
  const Address address = any(where);
  const Bytes bytes = std::as_bytes(std::span(&value, 1));
  switch (what % 8) {
    case 0:
      put(address, bytes);
      break;
    case 1:
      put(address + 4, bytes.first(4));
      break;
    case 2:
      put(address + (what >> 5), bytes.first(1));
      break;
    case 3:
      value = any(static_cast<std::uint32_t>(value)) + (value >> 32) % 64;
      put(address, bytes);
      break;  // a pointer to something else: cycles, wrong types
    case 4:
      value = address;
      put(address, bytes);
      break;  // to itself
    case 5:
      torn_.push_back({address, address + 1 + value % 8192});
      break;
    case 6:
      elsewhere_ = value;
      break;
    default:
      put(address, bytes.first(4));
      break;
  }
  return true;
}

Image::Run* FakeMemory::run_of(Address address) const {
  std::vector<Image::Run>& runs = image_.runs;
  const auto after = std::ranges::upper_bound(runs, address, {}, &Image::Run::start);
  return after == runs.begin() || address >= std::prev(after)->end() ? nullptr : &*std::prev(after);
}

void FakeMemory::put(Address address, Bytes bytes) {
  Image::Run* const run = run_of(address);
  if (run == nullptr || bytes.size() > run->end() - address) return;
  const auto at = run->bytes.begin() + static_cast<std::ptrdiff_t>(address - run->start);
  Old old{address, static_cast<std::uint8_t>(bytes.size()), {}};
  std::copy_n(at, bytes.size(), old.bytes);
  old_.push_back(old);
  std::ranges::copy(bytes, at);
}

bool FakeMemory::read(Address address, std::span<std::byte> into) const {
  ++counts_.reads;
  counts_.bytes += static_cast<std::int64_t>(into.size());
  expect(into.size() <= std::size_t{1} << 26, "no read is larger than 64 MiB");
  if (into.empty()) return true;
  for (const Range& range : torn_) {
    if (address < range.end && into.size() > range.start - std::min(range.start, address)) return false;
  }
  for (std::size_t done = 0; done < into.size();) {
    const Address at = address + done;
    const Image::Run* const run = run_of(at);
    if (run == nullptr && (elsewhere_ == 0 || at < lowest_address || at >= address_limit)) return false;
    std::size_t size = into.size() - done;
    if (run != nullptr) {
      size = std::min<std::size_t>(size, run->end() - at);
      std::copy_n(run->bytes.begin() + static_cast<std::ptrdiff_t>(at - run->start), size,
                  into.begin() + static_cast<std::ptrdiff_t>(done));
    } else {
      const auto next = std::ranges::upper_bound(image_.runs, at, {}, &Image::Run::start);
      if (next != image_.runs.end()) size = std::min<std::size_t>(size, next->start - at);
      size = std::min<std::size_t>(size, address_limit - at);
      for (std::size_t i = 0; i < size; ++i) into[done + i] = static_cast<std::byte>(elsewhere_ >> (at + i) % 8 * 8);
    }
    done += size;
  }
  return true;
}

std::vector<std::byte> FakeMemory::bytes(Address start, std::size_t size) const {
  std::vector<std::byte> bytes(size);
  const Image::Run* const run = run_of(start);
  if (run != nullptr)
    std::copy_n(run->bytes.begin() + static_cast<std::ptrdiff_t>(start - run->start),
                std::min<std::size_t>(size, run->end() - start), bytes.begin());
  return bytes;
}

void FakeMemory::bounded(const char* what, std::int64_t reads, std::int64_t bytes, const std::function<void()>& walk) {
  const Counts before = counts_;
  walk();
  const std::int64_t more_reads = counts_.reads - before.reads, more_bytes = counts_.bytes - before.bytes;
  if (more_reads <= reads && more_bytes <= bytes) return;
  std::fprintf(stderr, "%s: %lld reads, %lld bytes\n", what, static_cast<long long>(more_reads),
               static_cast<long long>(more_bytes));
  expect(false, "a walk reads no more than it may");
}

}  // namespace luaspy::fuzz
