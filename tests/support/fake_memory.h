#pragma once
// Memory made from an input: the memory of a saved stop (tests/replay), with changes and missing
// parts, and beyond it a value that the input gives. Counts what is read.

#include <functional>

#include "fuzz.h"
#include "support/load_stop.h"

namespace luaspy::fuzz {

// A saved stop's memory in a form that can be changed and restored quickly.
struct Image {
  struct Run {
    Address start = 0;
    std::vector<std::byte> bytes;
    Address end() const { return start + bytes.size(); }
  };
  std::string name;
  replay::SavedStop stop;
  mutable std::vector<Run> runs;  // ascending; a FakeMemory changes bytes, and restores them
  std::vector<Address> words;     // 8-aligned, not of the C stack: states, CallInfos, closures, Protos …
};
// All of tests/replay/stops, PUC's first.
const std::vector<Image>& images();
std::size_t puc_images();

class FakeMemory : public Memory {
 public:
  // What there is beyond the image: nothing, or a value if the input gives one.
  enum class Beyond { nothing, value };
  // Takes changes from `input` as long as there are any: see change(). The destructor restores the
  // image.
  FakeMemory(const Image& image, Input& input, Beyond beyond = Beyond::value);
  ~FakeMemory() override;
  FakeMemory(const FakeMemory&) = delete;
  FakeMemory& operator=(const FakeMemory&) = delete;

  bool read(Address address, std::span<std::byte> into) const override;

  // The current bytes of the image from `start` on.
  std::vector<std::byte> bytes(Address start, std::size_t size) const;

  struct Counts {
    std::int64_t reads = 0, bytes = 0;
  };
  const Counts& counts() const { return counts_; }
  // Runs `walk` and expects it not to exceed these numbers of reads and bytes.
  void bounded(const char* what, std::int64_t reads, std::int64_t bytes, const std::function<void()>& walk);

 private:
  bool change(Input& input);
  Address any(std::uint32_t number) const { return image_.words[number % image_.words.size()]; }
  void put(Address address, Bytes bytes);
  Image::Run* run_of(Address address) const;

  const Image& image_;
  struct Old {
    Address address;
    std::uint8_t size;
    std::byte bytes[8];
  };
  std::vector<Old> old_;
  struct Range {
    Address start, end;
  };
  std::vector<Range> torn_;
  std::uint64_t elsewhere_ = 0;  // the value of memory outside the image; 0: it cannot be read
  mutable Counts counts_;
};

}  // namespace luaspy::fuzz
