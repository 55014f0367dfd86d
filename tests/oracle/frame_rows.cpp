// Compares rows of call frame information as luaspy and libdw (elfutils) read them: every row of
// every function of real programs and libraries.
//   compare_rows FILE|DIRECTORY…      directories are searched recursively; files other than ELF
//                                     files with call frame information are skipped
// Prints the number of files, functions and rows, how many differ, and the time per row of each.
// Exit code 1 if any differs.

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <fmt/format.h>
#include <libelf.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <set>

#include "arch/x86_64/registers.h"
#include "unwind/frame_table.h"

namespace luaspy {
namespace {

using Ops = std::span<const Dwarf_Op>;
using Slot = FrameRow::Slot;
using Where = FrameRow::Where;
using Clock = std::chrono::steady_clock;

struct Based {
  std::uint8_t number;
  std::int32_t offset;
};

std::optional<std::int32_t> small(Dwarf_Word word) {
  const auto value = static_cast<std::int64_t>(word);
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
    return std::nullopt;
  return static_cast<std::int32_t>(value);
}

// libdw turns DW_CFA_def_cfa into DW_OP_bregx.
std::optional<Based> based(const Dwarf_Op& op) {
  const bool extended = op.atom == DW_OP_bregx;
  if (!extended && (op.atom < DW_OP_breg0 || op.atom > DW_OP_breg31)) return std::nullopt;
  const Dwarf_Word number = extended ? op.number : op.atom - DW_OP_breg0;
  const std::optional<std::int32_t> offset = small(extended ? op.number2 : op.number);
  const unsigned own = own_machine().of_dwarf(number);
  if (own == Machine::no_register || !offset) return std::nullopt;
  return Based{static_cast<std::uint8_t>(own), *offset};
}

bool is_plt(Ops ops) {
  constexpr std::array pattern = {DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, DW_OP_lit0,
                                  DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,   DW_OP_plus};
  if (ops.size() != pattern.size() || ops[4].atom < DW_OP_lit0 || ops[4].atom > DW_OP_lit31 || ops[1].number != 0)
    return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (i != 4 && ops[i].atom != pattern[i]) return false;
  }
  return true;
}

void read_cfa(Ops ops, FrameRow& row) {
  const std::optional<Based> base = ops.empty() ? std::nullopt : based(ops[0]);
  if (!base) return;
  row.number = base->number;
  row.offset = base->offset;
  if (ops.size() == 1) row.cfa = FrameRow::Cfa::offset;
  if (ops.size() == 2 && ops[1].atom == DW_OP_deref) row.cfa = FrameRow::Cfa::word;
  if (is_plt(ops)) row.cfa = FrameRow::Cfa::plt, row.pushed = static_cast<std::uint8_t>(ops[4].atom - DW_OP_lit0);
}

// libdw.h, dwarf_frame_register: without operations, the result is "same value" if there is no
// location, and "undefined" if there is one; otherwise it is an address, or DW_OP_regx. Expressions
// start with the CFA on their stack.
std::optional<Slot> read_slot(Dwarf_Frame* frame, unsigned number) {
  Dwarf_Op room[3];
  Dwarf_Op* first = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_register(frame, static_cast<int>(number), room, &first, &count) != 0) return std::nullopt;
  if (count == 0) return Slot{0, 0, first == nullptr ? Where::same : Where::undefined};
  const Ops ops(first, count);
  if (ops[0].atom == DW_OP_regx && count == 1 && own_machine().of_dwarf(ops[0].number) != Machine::no_register)
    return Slot{0, static_cast<std::uint8_t>(own_machine().of_dwarf(ops[0].number)), Where::in_register};
  if (ops[0].atom != DW_OP_call_frame_cfa || count > 2) return std::nullopt;
  if (count == 1) return Slot{0, 0, Where::at_cfa};
  if (ops[1].atom == DW_OP_plus_uconst) {
    const std::optional<std::int32_t> offset = small(ops[1].number);
    return offset ? std::optional(Slot{*offset, 0, Where::at_cfa}) : std::nullopt;
  }
  const std::optional<Based> base = based(ops[1]);
  return base ? std::optional(Slot{base->offset, base->number, Where::at_register}) : std::nullopt;
}

bool read_slots(Dwarf_Frame* frame, FrameRow& row) {
  std::int32_t lowest = 0, highest = std::numeric_limits<std::int32_t>::min();
  const std::span<const std::uint8_t> callee_saved = own_machine().callee_saved;
  for (std::size_t i = 0; i <= callee_saved.size(); ++i) {
    const bool saved = i < callee_saved.size();
    const std::uint8_t number = saved ? callee_saved[i] : std::uint8_t{x86_64::rip};
    const auto dwarf = std::ranges::find(own_machine().by_dwarf, number) - own_machine().by_dwarf.begin();
    std::optional<Slot> slot = read_slot(frame, static_cast<unsigned>(dwarf));
    if (!slot) return false;
    // elfutils 0.188, x86_64_cfi.c: its default rules, for registers without call frame
    // information, name rax where they mean rbx.
    if (number == x86_64::rbx && slot->where == Where::undefined) slot->where = Where::same;
    (saved ? row.saved[i] : row.return_address) = *slot;
    if (slot->where == Where::at_cfa)
      lowest = std::min(lowest, slot->offset), highest = std::max(highest, slot->offset);
  }
  if (lowest >= -128 && highest <= -8) row.lowest = lowest;
  return true;
}

class Reference {
 public:
  explicit Reference(std::span<const std::byte> file) {
    elf_version(EV_CURRENT);
    elf_ = elf_memory(reinterpret_cast<char*>(const_cast<std::byte*>(file.data())), file.size());
    if (elf_ != nullptr) frames_ = dwarf_getcfi_elf(elf_);
  }
  ~Reference() {
    if (frames_ != nullptr) dwarf_cfi_end(frames_);
    if (elf_ != nullptr) elf_end(elf_);
  }
  bool works() const { return frames_ != nullptr; }
  // `end`: where the row ends; 0: there is no information.
  FrameRow at(Address pc, Address& end) const {
    Dwarf_Frame* found = nullptr;
    end = 0;
    if (dwarf_cfi_addrframe(frames_, pc, &found) != 0) return {};
    const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> frame(found, std::free);
    FrameRow row;
    Dwarf_Addr from = 0;
    const int return_address = dwarf_frame_info(found, &from, &end, &row.interrupted);
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    if (return_address != own_machine().dwarf_return_address || dwarf_frame_cfa(found, &ops, &count) != 0) return {};
    read_cfa({ops, count}, row);
    return row.cfa != FrameRow::Cfa::unknown && read_slots(found, row) ? row : FrameRow{};
  }

 private:
  Elf* elf_ = nullptr;
  Dwarf_CFI_s* frames_ = nullptr;
};

struct Counts {
  std::int64_t files = 0, functions = 0, rows = 0, said = 0, differ = 0;
  Clock::duration own{}, theirs{};
};

void compare(const std::string& path, Counts& counts) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto file = std::as_bytes(std::span(text));
  const FrameTable table(file, 0);
  const FrameIndex& functions = table.index();
  const Reference reference(file);
  if (functions.size() == 0 || !reference.works()) return;
  ++counts.files;
  const std::int64_t differ_before = counts.differ;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    // Up to the next start: the range in between may also contain addresses that belong to no function.
    const Address start = functions[i].start, next = i + 1 < functions.size() ? functions[i + 1].start : ~Address{0};
    ++counts.functions;
    for (Address pc = start, end = 0; pc < next; pc = end) {
      const Clock::time_point t0 = Clock::now();
      const FrameRow expected = reference.at(pc, end);
      const Clock::time_point t1 = Clock::now();
      const FrameRow row = table.at(own_machine(), pc, start, ~Address{0});
      counts.theirs += t1 - t0, counts.own += Clock::now() - t1;
      if (end == 0) break;
      ++counts.rows;
      counts.said += row.cfa != FrameRow::Cfa::unknown;
      if (row == expected && table.at(own_machine(), end - 1, start, ~Address{0}) == expected) continue;
      if (counts.differ++ == differ_before) fmt::print(stderr, "  {}: row at {:x} differs\n", path, pc);
    }
  }
}

bool run(int argc, char** argv) {
  Counts counts;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      compare(argv[i], counts);
      continue;
    }
    std::set<std::uintmax_t> sizes;  // the same library comes with many packages
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (entry.is_regular_file() && !entry.is_symlink() && entry.file_size() > 4096 &&
          sizes.insert(entry.file_size()).second)
        compare(entry.path().string(), counts);
    }
  }
  const auto each = [&](Clock::duration time) {
    return counts.rows == 0
               ? 0.
               : static_cast<double>(std::chrono::nanoseconds(time).count()) / static_cast<double>(counts.rows);
  };
  fmt::print(
      "{} files, {} functions, {} rows ({} fit into a row), {} differ; a row takes {:.0f} ns, by libdw {:.0f} ns\n",
      counts.files, counts.functions, counts.rows, counts.said, counts.differ, each(counts.own), each(counts.theirs));
  return counts.files > 0 && counts.differ == 0;
}

}  // namespace
}  // namespace luaspy

int main(int argc, char** argv) { return luaspy::run(argc, argv) ? 0 : 1; }
