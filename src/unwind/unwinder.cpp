#include "unwind/unwinder.h"

#include <algorithm>
#include <utility>

namespace luaspy {

Unwinder::Unwinder(const Modules& modules, const Machine& machine, Source source)
    : modules_(modules), machine_(machine), source_(source), libunwind_(modules, machine), places_(first_places) {
  rows_.emplace_back();  // unknown_row
}

void Unwinder::forget() {
  libunwind_.forget();
  places_.assign(first_places, {});
  place_count_ = 0;
  row_numbers_.clear();
  rows_.resize(1);
  linked_.clear();
}

Unwinder::Range Unwinder::function(Address address) const { return place(address).function; }

const Unwinder::Place& Unwinder::place(Address lookup) const {
  Place& found = slot(lookup);
  if (found.known && (found.row != no_row || found.entries == entries_.size())) return found;
  Place place{lookup, {}, no_row, static_cast<std::uint32_t>(entries_.size()), true};
  const Module* const module = modules_.find(lookup);
  if (libunwind_.find(lookup, place.function.start, place.function.end)) {
    const FrameTable* const table = source_ == Source::rows ? module->frames() : nullptr;
    place.row = table != nullptr ? number_of(table->at(machine_, lookup, place.function.start, place.function.end))
                                 : unknown_row;
  } else if (module != nullptr) {
    place.function = function_without_tables(*module, lookup);
  }
  place.is_return = return_at(module, lookup + 1);
  if (found.known) return found = place;
  if (place_count_ >= most_places) {
    places_.assign(first_places, {});
    place_count_ = 0;
  } else if (2 * place_count_ >= places_.size()) {
    std::vector<Place> old(2 * places_.size());
    old.swap(places_);
    for (const Place& each : old) {
      if (each.known) slot(each.lookup) = each;
    }
  }
  ++place_count_;
  return slot(lookup) = place;
}

// The slot that holds the place, or that is free for it: the table is never more than half full.
Unwinder::Place& Unwinder::slot(Address lookup) const {
  const std::size_t mask = places_.size() - 1;
  std::size_t at = (lookup * 0x9e37'79b9'7f4a'7c15) >> 32 & mask;
  while (places_[at].known && places_[at].lookup != lookup) at = (at + 1) & mask;
  return places_[at];
}

std::uint32_t Unwinder::number_of(const FrameRow& row) const {
  if (row.cfa == FrameRow::Cfa::unknown) return unknown_row;
  const auto known = row_numbers_.find(row);
  if (known != row_numbers_.end()) return known->second;
  if (rows_.size() >= most_rows) return unknown_row;
  rows_.push_back(row);
  return row_numbers_[row] = static_cast<std::uint32_t>(rows_.size() - 1);
}

Unwinder::Range Unwinder::function_without_tables(const Module& module, Address address) const {
  if (!module.executes(address))
    return {};  // its bytes are missing: the nearest known function may be an unrelated one
  const std::vector<Address>& targets = module.call_targets(machine_.code);
  const auto next = std::ranges::upper_bound(targets, address);
  Range range;
  if (next != targets.begin()) range = {*std::prev(next), next != targets.end() ? *next : address + 1};
  const auto next_entry = entries_.upper_bound(address);
  if (next_entry != entries_.begin() && *std::prev(next_entry) >= std::max(range.start, module.lowest()))
    range.start = *std::prev(next_entry);
  if (next_entry != entries_.end() && *next_entry < range.end) range.end = *next_entry;
  if (const std::optional<Symbol> symbol = module.symbol(address); symbol && symbol->start >= range.start)
    range.start = symbol->start;
  return range;
}

std::vector<Unwinder::Range> Unwinder::functions(const Module& module) const {
  std::vector<Address> starts;
  const FrameIndex& index = module.frame_index();
  for (std::size_t i = 0; i < index.size(); ++i) starts.push_back(index[i].start + module.bias());
  // The tables of a program do not cover object files that were compiled without them.
  Range known;
  for (const Address target : module.call_targets(machine_.code)) {
    if (!libunwind_.find(target, known.start, known.end)) starts.push_back(target);
  }
  std::ranges::sort(starts);
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < starts.size(); ++i)
    ranges.push_back({starts[i], i + 1 < starts.size() ? starts[i + 1] : module.end()});
  return ranges;
}

bool Unwinder::add_entry(Address entry) {
  constexpr std::size_t limit = 1 << 16;
  return entries_.size() < limit && entries_.insert(entry).second;
}

// Each frame is built in its final place: copying registers that have just been written one by one
// stalls the CPU.
Unwinder::End Unwinder::unwind(const Registers& registers, const Memory& stack, const FrameRule* rule,
                               std::vector<NativeFrame>& frames, std::size_t limit) {
  libunwind_.leave();
  Way way{stack, rule};
  bool may_be_root = false;  // nothing has called what the frame returns to: either a stack begins there, or a handler
  NativeFrame& first = frames.emplace_back();
  first.registers = registers;
  first.pc = first.lookup = registers.pc();
  first.sp = registers.sp();
  for (std::size_t count = 0; count < limit; ++count) {
    frames.emplace_back();
    NativeFrame& frame = frames[frames.size() - 2];
    NativeFrame& next = frames.back();
    const bool innermost = way.innermost = count == 0;
    const Stepped stepped = step(frame, way, next);
    if (std::exchange(may_be_root, false) && !(stepped == Stepped::caller && is_called_by(next))) {
      frames.pop_back();
      return End::root;
    }
    if (stepped != Stepped::caller) {
      frames.pop_back();
      return stepped == Stepped::root ? End::root : End::lost;
    }
    // A signal handler's caller was interrupted, not calling; one byte back is still the same
    // function except at its first instruction.
    next.pc = next.registers.pc();
    next.lookup = next.pc - 1;
    frame.cfa = next.sp = next.registers.sp();
    way.guessed |= next.step == Step::scan;
    if (way.guessed || way.interrupted || place(frame.lookup).is_return == Place::Return::of_handler) continue;
    // Where a stack begins, there is something in place of a return address.
    const bool is_certain = next.step == Step::cfi && (frame.step == Step::cfi || frame.step == Step::rule);
    if (is_certain && modules_.cannot_execute(next.pc)) {
      frames.pop_back();
      return End::root;
    }
    if (place(next.lookup).is_return == Place::Return::of_none) {
      next.lookup = next.pc;
      next.function = function(next.pc).start;
      if (!innermost) return End::root;
      may_be_root = true;
      libunwind_.leave();  // it would look up the instruction before
    }
  }
  frames.pop_back();
  return End::limit;
}

// Where an exception is thrown (libgcc's _Unwind_RaiseException, and LuaJIT's lj_err_throw by it), the
// innermost frame for an instant returns to the handler, which nothing has called. Its frame is an ordinary
// one, unlike that of code where a stack begins: with information, and a caller that has called it.
bool Unwinder::is_called_by(const NativeFrame& caller) const {
  const Address pc = caller.registers.pc();
  return caller.step != Step::code && caller.step != Step::scan && modules_.find(pc) != nullptr &&
         place(pc - 1).is_return == Place::Return::of_call;
}

// Steps from a frame to the next outer one, and sets `registers` and `step` of that one; way.interrupted is
// about that one then.
Stepped Unwinder::step(NativeFrame& frame, Way& way, NativeFrame& next) {
  const Memory& stack = way.stack;
  const Place& place = this->place(frame.lookup);
  const std::uint32_t row = place.row;
  frame.function = place.function.start;
  Registers& caller = next.registers;
  if (way.rule != nullptr && way.rule->step(frame, stack, caller) && caller.sp() > frame.sp) {
    libunwind_.leave();
    way.interrupted = false;
    next.step = Step::rule;
    return Stepped::caller;
  }
  next.step = Step::cfi;
  // Without call frame information libunwind would try frame pointers unchecked; step_by_scan
  // checks what it finds.
  const Stepped stepped = row != no_row ? step_by_tables(frame, row, way, caller) : Stepped::unknown;
  if (stepped == Stepped::root) return stepped;
  if (stepped == Stepped::caller && caller.pc() == 0) return Stepped::root;
  if (stepped == Stepped::caller && (way.innermost || caller.sp() > frame.sp)) return stepped;
  libunwind_.leave();
  way.interrupted = false;
  if (is_entry(frame.lookup) || (!way.innermost && never_returns(frame.pc))) return Stepped::root;
  // Its bytes are missing: what looks like a return address above may be a stale one.
  if (const Module* const module = modules_.find(frame.lookup); module != nullptr && !module->executes(frame.lookup))
    return Stepped::unknown;
  next.step = Step::code;
  if (step_by_code(frame, stack, caller)) return Stepped::caller;
  if (!way.innermost && !way.guessed && begins_stack(frame, stack)) return Stepped::root;
  next.step = Step::scan;
  return step_by_scan(frame, stack, caller) ? Stepped::caller : Stepped::unknown;
}

// way.interrupted: on entry it is about `from`, on return about the caller.
Stepped Unwinder::step_by_tables(const NativeFrame& from, std::uint32_t row, Way& way, Registers& caller) {
  const Address lookup = way.interrupted ? from.pc : from.lookup;
  // Once libunwind has begun, it continues: it keeps what it has learned about the frame.
  if (source_ == Source::rows && !libunwind_.goes_on()) {
    if (way.interrupted) row = place(from.pc).row;
    const FrameRow& said = rows_[row != no_row ? row : unknown_row];
    const Stepped stepped = said.step(machine_, from, way.stack, caller);
    if (stepped != Stepped::unknown) {
      way.interrupted = said.interrupted;
      return stepped;
    }
  }
  way.interrupted = false;
  return libunwind_.step(from, lookup, way.stack, caller);
}

// For programs without call frame information that would mark the outermost frame (static programs
// without .eh_frame_hdr and section headers): the code at which a program starts calls main's caller, and nothing calls
// it.
bool Unwinder::is_entry(Address address) const {
  constexpr Address longest = 64;  // crt1.o's _start is 38 to 48 bytes
  const Module* const module = modules_.find(address);
  return module != nullptr && module->entry() != 0 && address >= module->entry() && address < module->entry() + longest;
}

// What is not known to be anything else counts as the return address of a call. Fiber
// libraries put other addresses where a stack begins: of a function (makecontext: __start_context; a
// function that reports that a fiber has returned), or of a place that is only jumped to. A signal
// handler returns to code that nothing has called, too; what was interrupted is below it.
Unwinder::Place::Return Unwinder::return_at(const Module* module, Address address) const {
  using Return = Place::Return;
  std::array<std::byte, MachineCode::most_call_bytes> bytes;
  const auto before = std::span(bytes).first(machine_.code.call_bytes);
  if (before.empty() || module == nullptr || !module->executes(address) || !module->executes(address - before.size()) ||
      !module->read(address - before.size(), before))
    return Return::of_call;
  std::array<std::byte, MachineCode::most_signal_return_bytes> code;
  if (module->read(address, code) && machine_.code.returns_from_signal(code)) return Return::of_handler;
  const bool follows_call = machine_.code.call_before(address, before).kind != CallSite::Kind::none;
  return follows_call ? Return::of_call : Return::of_none;
}

// For an outermost function that was started by a jump or a return, and has no call frame
// information: straight code up to its call of the function that runs on the stack. If there is no
// return address where its own would be, it has none.
bool Unwinder::begins_stack(const NativeFrame& frame, const Memory& stack) const {
  constexpr std::size_t largest = 1 << 12;
  const Module* const module = modules_.find(frame.lookup);
  if (module == nullptr || frame.function == 0 || frame.pc < frame.function || frame.pc - frame.function > largest)
    return false;
  const std::size_t after_call = frame.pc - frame.function;
  std::vector<std::byte> code(after_call + largest);
  while (!module->read(frame.function, code)) {
    if (code.size() == after_call) return false;
    code.resize(after_call + (code.size() - after_call) / 2);  // it may be the last of its module
  }
  const std::optional<std::int64_t> depth = machine_.code.depth_of_straight_code(code, after_call);
  if (!depth) return false;
  const Address entry_sp = frame.sp + static_cast<Address>(*depth);
  const std::optional<Address> address = machine_.return_address(frame.registers, entry_sp, {}, stack);
  return address && match_return(*address, frame) == Match::none;
}

// makecontext makes a fiber's outermost function return to the start of __start_context.
bool Unwinder::begins_function(Address address) const {
  const Module* const module = modules_.find(address);
  if (module == nullptr || return_at(module, address) != Place::Return::of_none) return false;
  const std::optional<Symbol> symbol = module->symbol(address);
  return symbol && symbol->start == address;
}

// The same for a thread and a fiber: the code at which they start has no call frame information if
// it is assembly, or if the program has none.
bool Unwinder::never_returns(Address pc) const {
  constexpr std::size_t most_bytes = 48;
  const Module* const module = modules_.find(pc);
  std::array<std::byte, most_bytes> code;
  std::size_t size = code.size();
  while (size != 0 && (module == nullptr || !module->read(pc, std::span(code).first(size))))
    size /= 2;  // the code may be the last of its module
  return machine_.code.ends_here(std::span(code).first(size));
}

bool Unwinder::step_by_code(const NativeFrame& from, const Memory& stack, Registers& caller) const {
  constexpr std::size_t largest = 1 << 17;
  const Module* const module = modules_.find(from.lookup);
  if (module == nullptr || from.function == 0 || from.pc < from.function || from.pc - from.function > largest)
    return false;
  std::vector<std::byte> code(from.pc - from.function);
  if (!module->read(from.function, code)) return false;
  const std::optional<FrameShape> shape = machine_.code.shape_of_frame(code, code.size());
  if (!shape) return false;
  Address entry_sp = from.sp + static_cast<Address>(shape->depth);
  const unsigned frame_pointer = machine_.frame_pointer();
  if (shape->frame_pointer && from.registers.knows(frame_pointer))
    entry_sp = from.registers[frame_pointer] + static_cast<Address>(*shape->frame_pointer);
  if (entry_sp < from.sp) return false;
  const auto slot_of = [&](const FrameShape::Saved& saved) { return entry_sp - static_cast<Address>(saved.below); };
  const auto link = std::ranges::find(shape->saved, machine_.link_register, &FrameShape::Saved::number);
  const std::optional<Address> address = machine_.return_address(
      from.registers, entry_sp, link != shape->saved.end() ? std::optional(slot_of(*link)) : std::nullopt, stack);
  if (!address) return false;
  if (match_return(*address, from) == Match::none && !begins_function(*address)) return false;
  caller = {};
  for (const unsigned number : machine_.callee_saved) {
    if (from.registers.knows(number)) caller.set(number, from.registers[number]);
  }
  for (const FrameShape::Saved& saved : shape->saved) {
    const std::optional<Address> value = stack.get<Address>(slot_of(saved));
    if (value && saved.number != machine_.link_register) caller.set(saved.number, *value);
  }
  caller.set_pc(*address);
  caller.set_sp(entry_sp + machine_.bytes_on_return());
  return true;
}

// A link register that has the return address of the call of `from`'s function comes first: the function
// calls nothing, or has not yet. Next is the frame pointer, if it leads to a frame: 8 bytes above it is
// that return address. Next is the nearest word above sp that is certainly such an address; otherwise,
// the nearest that may be one.
bool Unwinder::step_by_scan(const NativeFrame& from, const Memory& stack, Registers& caller) const {
  constexpr std::size_t words_to_scan = 1024;  // 8 KiB: larger frames have been seen only where there is call frame
                                               // information
  const auto take = [&](Address slot, Address return_address) {
    caller = {};
    caller.set_pc(return_address);
    caller.set_sp(slot + 8);
    // Code with frame pointers saves the caller's right below the return address.
    const std::optional<Address> saved = stack.get<Address>(slot - 8);
    if (slot - 8 >= from.sp && saved && *saved > slot && *saved < slot + (1 << 20) && *saved % 8 == 0)
      caller.set(machine_.frame_pointer(), *saved);
    return true;
  };
  std::optional<Address> in_frame;  // the return address that the frame pointer leads to
  const Address frame_pointer = from.registers[machine_.frame_pointer()];
  if (from.registers.knows(machine_.frame_pointer()) && frame_pointer >= from.sp && frame_pointer % 8 == 0)
    in_frame = stack.get<Address>(frame_pointer + 8);
  const bool has_link = machine_.link_register != Machine::no_register;
  const Address link = has_link ? from.registers[machine_.link_register] : 0;
  if (link != 0 && link != in_frame && function(link - 1).start != from.function &&
      match_return(link, from) == Match::strong) {
    caller = {};
    caller.set_pc(link);
    caller.set_sp(from.sp);
    if (frame_pointer != 0) caller.set(machine_.frame_pointer(), frame_pointer);
    return true;
  }
  if (in_frame && match_return(*in_frame, from) == Match::strong) return take(frame_pointer + 8, *in_frame);
  Address weak_slot = 0, weak_address = 0;
  for (std::size_t i = 0; i < words_to_scan; ++i) {
    const Address slot = ((from.sp + 7) & ~Address{7}) + 8 * i;
    const std::optional<Address> address = stack.get<Address>(slot);
    if (!address) break;
    const Match match = match_return(*address, from);
    if (match == Match::strong) return take(slot, *address);
    if (match == Match::weak && weak_slot == 0) weak_slot = slot, weak_address = *address;
  }
  return weak_slot != 0 && take(weak_slot, weak_address);
}

// A direct call is right if it calls exactly the function that `callee` is in. Functions that Lua
// calls by pointer are only called by pointer; a function that is called directly somewhere is
// rarely called by pointer. Tail calls sometimes break these rules: then a return address in the
// same module is better than none.
Unwinder::Match Unwinder::match_return(Address address, const NativeFrame& callee) const {
  if (!modules_.executes(address)) return Match::none;
  const Module* const module = modules_.find(address);
  const Module* const callees = modules_.find(callee.pc);
  std::array<std::byte, MachineCode::most_call_bytes> bytes;
  const auto before = std::span(bytes).first(machine_.code.call_bytes);
  if (!(module != nullptr ? module->read(address - before.size(), before)
                          : modules_.memory().read(address - before.size(), before)))
    return Match::none;
  const CallSite call = machine_.code.call_before(address, before);
  if (call.kind == CallSite::Kind::none) return Match::none;
  if (call.kind == CallSite::Kind::direct) {
    const auto is_near = [&](Address most) {
      return call.target <= callee.lookup && callee.lookup - call.target < most;
    };
    // Generated code calls functions that the program itself does not call directly, so that
    // nothing else shows where they start.
    if (module == nullptr) return call.target >= callee.function && is_near(1 << 14) ? Match::strong : Match::none;
    // musl's _start calls a function of the program that ends in a jump to the library: crt1.c,
    // __libc_start_main.c.
    if (module != callees)
      return reaches_through_plt(*module, call.target, callee) || is_entry(address - 1) ? Match::strong : Match::none;
    if (callee.function == 0) return is_near(1 << 16) ? Match::weak : Match::none;
    return call.target == callee.function ? Match::strong : Match::weak;
  }
  if (entries_.contains(callee.function)) return Match::strong;
  const bool called_directly = callees != nullptr &&
                               std::ranges::binary_search(callees->call_targets(machine_.code), callee.function);
  return module == nullptr || called_directly || callee.function == 0 ? Match::weak : Match::strong;
}

bool Unwinder::reaches_through_plt(const Module& caller, Address target, const NativeFrame& callee) const {
  std::array<std::byte, MachineCode::most_plt_bytes> bytes;
  const auto entry = std::span(bytes).first(machine_.code.plt_bytes);
  if (!caller.read(target, entry)) return false;
  const std::optional<Address> jumps_through = machine_.code.plt_slot(target, entry);
  if (!jumps_through) return false;
  const Address slot = *jumps_through;
  const Module* const callees = modules_.find(callee.pc);
  if (const auto known = linked_.find(slot); known != linked_.end()) return modules_.find(known->second) == callees;
  // Until the first call, the slot points into the PLT of its own module.
  const Address destination = modules_.memory().get<Address>(slot).value_or(0);
  constexpr std::size_t most = 1 << 14;
  if (linked_.size() < most && destination != 0 && modules_.find(destination) != &caller) linked_[slot] = destination;
  return destination != 0 && modules_.find(destination) == callees;
}

}  // namespace luaspy
