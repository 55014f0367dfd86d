// heap PID ROUNDS: how long a process stands still for luaspy heap, and for the bare copy of the same
// bytes into memory that is there already. Prints a line a round: "SNAPSHOT ONE ALL BYTES", ns:
// luaspy's snapshot, one thread that reads, and one on each CPU.

#include <fmt/format.h>

#include <atomic>
#include <random>
#include <thread>

#include "attach/resident_pages.h"
#include "attach/standstill.h"
#include "heap/memory_image.h"
#include "heapdump/take_snapshot.h"
#include "looks.h"
#include "sampling/session.h"

using namespace luaspy;
using namespace luaspy::bench;

namespace {

bool is_written(const Mapping& mapping) { return mapping.readable && mapping.writable && !mapping.shared; }

// The time in which the target stands still; `bytes` that could be read.
double bare_copy(Session& session, unsigned threads, std::uint64_t& bytes) {
  constexpr std::size_t piece = 4 << 20;
  const Process& process = session.target().process();
  const AddressSpace space = process.address_space();
  const std::vector<AddressRange> pages = ResidentPages(process.pid(), space).find(space, is_written).ranges;
  MemoryImage image;
  require(image.add(pages).has_value(), "not enough memory");
  std::vector<std::pair<Address, std::span<std::byte>>> pieces;
  for (const MemoryImage::Part& part : image.parts()) {
    for (std::size_t at = 0; at < part.size; at += piece)
      pieces.push_back({part.start + at, {part.bytes + at, std::min(piece, part.size - at)}});
  }
  std::atomic<std::size_t> next = 0, read = 0;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < pieces.size();)
      read += session.target().memory().read_some(pieces[i].first, pieces[i].second);
  };
  Standstill standstill(session.target());
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  const auto stood = standstill.resume();
  bytes = read;
  return static_cast<double>(stood.count());
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 3, "usage: heap PID ROUNDS");
  TargetOptions options;
  options.pid = std::stoi(argv[1]);
  SamplerOptions sampler;
  sampler.patience = std::chrono::seconds(2);
  Result<std::unique_ptr<Session>> session = Session::open(options, sampler);
  require(session.has_value(), session ? "" : session.error().text);
  require((*session)->check_lua().has_value(), "no Lua");
  std::mt19937 random(1);
  for (int round = 0; round < std::stoi(argv[2]); ++round) {
    double ns[3] = {};
    std::uint64_t bytes = 0;
    int order[3] = {0, 1, 2};
    std::ranges::shuffle(order, random);
    for (const int kind : order) {
      if (kind != 0) {
        ns[kind] = bare_copy(**session, kind == 1 ? 1 : std::thread::hardware_concurrency(), bytes);
        continue;
      }
      const Result<HeapSnapshot> snapshot = take_snapshot(**session);
      require(snapshot.has_value(), snapshot ? "" : snapshot.error().text);
      ns[0] = static_cast<double>(snapshot->stood_still_ns);
    }
    fmt::print("{} {} {} {}\n", ns[0], ns[1], ns[2], bytes);
  }
}
