#pragma once
// Memory that an input makes: the memory of a saved stop (tests/replay), changed here and there,
// torn, and beyond it what the input says. Counts what is read of it.

#include <functional>

#include "fuzz.h"
#include "support/load_stop.h"

namespace luaspy::fuzz {

// A saved stop's memory in a form that is fast to change and to change back.
struct Image {
  struct Run {
    Address start = 0;
    std::vector<std::byte> bytes;
    Address end() const { return start + bytes.size(); }
  };
  std::string name;
  replay::SavedStop stop;
  std::vector<Run> runs;       // ascending
  std::vector<Address> words;  // 8-aligned, not of the C stack: states, CallInfos, closures, Protos …
};
// All of tests/replay/stops, PUC's first.
const std::vector<Image>& images();
std::size_t puc_images();

class FakeMemory : public Memory {
 public:
  // Takes changes from `input` as long as there are any: see change(). The image is as it was once
  // this is gone.
  FakeMemory(const Image& image, Input& input);
  ~FakeMemory() override;
  FakeMemory(const FakeMemory&) = delete;
  FakeMemory& operator=(const FakeMemory&) = delete;

  bool read(Address address, std::span<std::byte> into) const override;

  // The bytes from `start` on that the image has, as they are now.
  std::vector<std::byte> bytes(Address start, std::size_t size) const;

  struct Counts {
    std::int64_t reads = 0, bytes = 0;
  };
  const Counts& counts() const { return counts_; }
  // Runs `walk` and expects it not to read more than that.
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
  std::uint64_t elsewhere_ = 0;  // what is in memory that the image does not have; 0: it cannot be read
  mutable Counts counts_;
};

}  // namespace luaspy::fuzz
