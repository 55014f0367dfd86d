// Heaps (objects). An input is a .luaheap file, all of it hostile; or the number of a copied heap and
// what to ask, then changes to its memory (fake_memory.h), which is looked at as it is, or made a file
// again. That file's second line is the input's, too.

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sstream>

#include "fuzz.h"
#include "heap/heap_analysis.h"
#include "heapdump/heap_file.h"
#include "heaps.h"
#include "luastate/jit_reader.h"
#include "output/gzip.h"

namespace luaspy::fuzz {
namespace {

constexpr std::string_view magic = "luaspy heap 1\n";

void read_file_of(std::string_view bytes, unsigned questions, const Analyses& before) {
  const int file = ::memfd_create("heap", MFD_CLOEXEC);
  expect(file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
         "the input is a file");
  const Result<HeapSnapshot> snapshot = read_heap_file(fmt::format("/proc/self/fd/{}", file));
  ::close(file);
  if (!snapshot) return expect_printable(snapshot.error().text, 300, "an error");
  const Analyses analyses = analyse(*snapshot, *snapshot->memory);
  ask(questions, *snapshot, analyses, before);
}

// The heap as a file, with another second line unless `head` is empty.
std::string file_of(const CopiedHeap& heap, const FakeMemory& memory, std::string_view head) {
  std::vector<AddressRange> ranges;
  for (const Image::Run& run : heap.image.runs) ranges.push_back({run.start, run.end()});
  std::ostringstream out;
  if (head.empty()) {
    std::ostringstream whole;
    write_heap_file(whole, heap.snapshot, ranges);
    const std::string text = whole.str();
    out << text.substr(0, text.find('\n', magic.size()) + 1);
  } else {
    out << magic << head << '\n';
  }
  {
    Gzip gzip(out, 1);  // its destructor writes the end
    for (const AddressRange& range : ranges) {
      const std::vector<std::byte> bytes = memory.bytes(range.start, range.end - range.start);
      gzip.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
  }
  return out.str();
}

// What a compiler has decided: as much of it as there is to ask.
void look_at_compiler(const Lua& lua, const Memory& memory, Address G) {
  constexpr std::uint64_t most = 1 << 14;
  const std::unique_ptr<JitReader> reader = make_jit_reader(lua, memory, G);
  if (reader == nullptr) return;
  (void)reader->is_on();
  const std::optional<JitInstant> now = reader->instant();
  expect(!now || now->penalties.size() <= 64, "there are 64 penalties at most");
  std::vector<Address> prototypes;
  (void)reader->find_prototypes(most, prototypes);
  for (const JitTrace& trace : reader->traces()) prototypes.push_back(reader->prototype_of(trace.start));
  if (now) {
    for (const JitPenalty& penalty : now->penalties) {
      (void)reader->is_blacklisted(penalty.start);
      prototypes.push_back(reader->prototype_of(penalty.start));
      expect_printable(reader->reason(penalty.reason, now->last.detail, ""), 100, "a reason");
    }
  }
  for (const Address prototype : prototypes) {
    const std::optional<JitFunction> function = reader->function(prototype);
    if (!function) continue;
    for (const JitStart& start : function->starts)
      expect(start.position == 0 || start.position < function->lines.size() || function->lines.empty(),
             "a trace begins in its function");
  }
  (void)reader->strings(most);
}

}  // namespace

void objects(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with(magic.substr(0, magic.size() / 2))) return read_file_of(text, everything, {});
  Input input(bytes);
  const CopiedHeap& heap = copied_heaps()[input.take<std::uint8_t>() % copied_heaps().size()];
  // All at once would take longer than it finds more.
  const auto choice = input.take<std::uint8_t>();
  const unsigned questions = choice % 8 < 7 ? 1U << choice % 8 : everything;
  const bool as_file = (choice & 0x08) != 0;
  const std::string_view head = as_file ? input.text(input.take<std::uint16_t>()) : std::string_view();
  FakeMemory memory(heap.image, input, FakeMemory::Beyond::nothing);
  if (as_file) return read_file_of(file_of(heap, memory, head), questions, heap.analyses);
  memory.bounded("compilers", 2'000'000, 1 << 30, [&] {
    for (const HeapSnapshot::State& state : heap.snapshot.states) look_at_compiler(*state.lua, memory, state.G);
  });
  memory.bounded("a heap", 60'000'000, std::int64_t{4} << 30, [&] {
    const Analyses analyses = analyse(heap.snapshot, memory);
    ask(questions, heap.snapshot, analyses, heap.analyses);
  });
}

}  // namespace luaspy::fuzz
