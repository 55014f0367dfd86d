#include "unwind/libunwind_cursor.h"

#include <libunwind.h>

#include <algorithm>

// libunwind's search in a table with the form of .eh_frame_hdr. It is exported for remote unwinders
// (perf uses it, too), but no public header declares it.
extern "C" int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t*, unw_proc_info_t*, int,
                                                  void*);

namespace luaspy {
namespace {

// What libunwind's callbacks read.
struct Source {
  const Modules& modules;
  const Machine& machine;
  const Memory* stack = nullptr;     // nullptr except during a step: tables are also searched at other times
  std::span<const std::byte> index;  // of the module that is searched: pairs, at index_at
  Registers registers;
  int reads_left = 0;  // limits a step or a search: call frame information may be as long as a file
  static constexpr int most_reads = 1 << 16;
};

Source& source(void* argument) { return *static_cast<Source*>(argument); }

// Where libunwind finds the index of a module: no address of a target.
constexpr Address index_at = 0x8000'0000'0000'0000;

int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, int need_info, void* argument) {
  const Module* const module = source(argument).modules.find(ip);
  if (module == nullptr || module->frame_index().size() == 0) return -UNW_ENOINFO;
  const FrameIndex& index = module->frame_index();
  source(argument).index = index.pairs();
  unw_dyn_info_t table{};
  table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  table.start_ip = module->lowest();
  table.end_ip = module->end();
  table.u.rti.segbase = index.base() + module->bias();
  table.u.rti.table_data = index_at;
  table.u.rti.table_len = index.pairs().size() / sizeof(unw_word_t);
  const int status = UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, info, need_info, argument);
  if (status != 0) return status;
  return ip >= info->start_ip && ip < info->end_ip ? 0 : -UNW_ENOINFO;
}

void put_unwind_info(unw_addr_space_t, unw_proc_info_t*, void*) {}
int no_dynamic_info(unw_addr_space_t, unw_word_t*, void*) { return -UNW_ENOINFO; }

int access_memory(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write, void* argument) {
  Source& from = source(argument);
  const auto bytes = std::as_writable_bytes(std::span(value, 1));
  if (write != 0) return -UNW_EREADONLYREG;
  if (from.reads_left-- <= 0) return -UNW_EINVAL;
  if (address >= index_at && address - index_at + sizeof *value <= from.index.size()) {
    *value = load<unw_word_t>(from.index, address - index_at);  // whole pairs, and libunwind reads aligned words
    return 0;
  }
  if (from.stack != nullptr && from.stack->read(address, bytes)) return 0;
  const Module* const module = from.modules.find(address);
  return module != nullptr && module->read(address, bytes) ? 0 : -UNW_EINVAL;
}

// libunwind's numbers of registers are DWARF's (libunwind-x86_64.h, libunwind-aarch64.h).
int access_register(unw_addr_space_t, unw_regnum_t dwarf, unw_word_t* value, int write, void* argument) {
  const Registers& registers = source(argument).registers;
  if (write != 0 || dwarf < 0) return -UNW_EBADREG;
  const unsigned number = source(argument).machine.of_dwarf(static_cast<std::uint64_t>(dwarf));
  if (number == Machine::no_register || !registers.knows(number)) return -UNW_EBADREG;
  *value = registers[number];
  return 0;
}

int no_float_register(unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) { return -UNW_EBADREG; }
int no_resume(unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; }
int no_name(unw_addr_space_t, unw_word_t, char*, std::size_t, unw_word_t*, void*) { return -UNW_ENOINFO; }

Registers read_cursor(const Machine& machine, unw_cursor_t& cursor) {
  Registers registers;
  unw_word_t value = 0;
  for (std::size_t dwarf = 0; dwarf < machine.by_dwarf.size(); ++dwarf) {
    const std::uint8_t number = machine.by_dwarf[dwarf];
    if (std::ranges::find(machine.callee_saved, number) == machine.callee_saved.end()) continue;
    if (unw_get_reg(&cursor, static_cast<int>(dwarf), &value) == 0) registers.set(number, value);
  }
  if (unw_get_reg(&cursor, UNW_REG_SP, &value) == 0) registers.set_sp(value);
  if (unw_get_reg(&cursor, UNW_REG_IP, &value) == 0) registers.set_pc(value);
  return registers;
}

}  // namespace

struct LibunwindCursor::Space {
  Space(const Modules& modules, const Machine& machine) : source{modules, machine, nullptr, {}, {}, 0} {
    accessors.find_proc_info = find_proc_info;
    accessors.put_unwind_info = put_unwind_info;
    accessors.get_dyn_info_list_addr = no_dynamic_info;
    accessors.access_mem = access_memory;
    accessors.access_reg = access_register;
    accessors.access_fpreg = no_float_register;
    accessors.resume = no_resume;
    accessors.get_proc_name = no_name;
    space = unw_create_addr_space(&accessors, 0);
    unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
    unw_set_cache_size(space, 4096, 0);
  }
  ~Space() { unw_destroy_addr_space(space); }

  unw_accessors_t accessors{};
  unw_addr_space_t space = nullptr;
  Source source;
  unw_cursor_t cursor;
};

LibunwindCursor::LibunwindCursor(const Modules& modules, const Machine& machine)
    : space_(std::make_unique<Space>(modules, machine)) {}
LibunwindCursor::~LibunwindCursor() = default;

void LibunwindCursor::forget() {
  leave();
  unw_flush_cache(space_->space, 0, 0);
}

bool LibunwindCursor::find(Address address, Address& start, Address& end) const {
  unw_proc_info_t info{};
  space_->source.reads_left = Source::most_reads;
  if (find_proc_info(space_->space, address, &info, 0, &space_->source) != 0) return false;
  start = info.start_ip;
  end = info.end_ip;
  return true;
}

Stepped LibunwindCursor::step(const NativeFrame& from, Address lookup, const Memory& stack, Registers& caller) {
  Source& reads = space_->source;
  reads.stack = &stack;
  reads.reads_left = Source::most_reads;
  if (!goes_on_) {
    reads.registers = from.registers;
    reads.registers.set_pc(lookup);  // libunwind assumes that the first frame was not calling
    goes_on_ = unw_init_remote(&space_->cursor, space_->space, &reads) == 0;
  }
  const int status = goes_on_ ? unw_step(&space_->cursor) : -UNW_ENOINFO;
  if (status > 0) caller = read_cursor(reads.machine, space_->cursor);
  else leave();
  reads.stack = nullptr;
  if (status < 0) return Stepped::unknown;
  return status > 0 ? Stepped::caller : Stepped::root;
}

}  // namespace luaspy
