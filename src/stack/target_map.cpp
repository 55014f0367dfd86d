#include "stack/target_map.h"

#include <algorithm>
#include <utility>

namespace luaspy {
namespace {

std::vector<Address> code_starts(const AddressSpace& space) {
  std::vector<Address> starts;
  for (const Mapping& mapping : space.mappings()) {
    if (mapping.executable) starts.push_back(mapping.start);
  }
  return starts;
}

}  // namespace

TargetMap::TargetMap(const Mapped& mapped, const Memory& memory, KnownFiles& known)
    : mapped_(mapped),
      known_(known),
      modules_(
          memory, [&mapped](const Mapping& mapping) { return mapped.open_mapped(mapping).release(); }, &known.symbols),
      unwinder_(modules_, machine_),
      functions_(modules_, unwinder_) {}

bool TargetMap::has_new_code(const AddressSpace& space) const { return code_starts(space) != code_starts(space_); }

void TargetMap::update(AddressSpace space) {
  space_ = std::move(space);
  stale_ = false;
}

bool TargetMap::find_luas() {
  // A search that is only repeated comes less and less often: a process that maps a file may have no CPU for long.
  if (!is_incomplete()) looks_to_skip_ = looks_in_vain_ = 0;
  modules_.update(space_);
  if (auto program = mapped_.program()) modules_.call(std::move(program->path), std::move(program->name));
  unwinder_.forget();
  return detector_.update(space_, modules_.memory(), &known_.images,
                          [&](const Mapping& mapping) { return mapped_.file_version(mapping); });
}

void TargetMap::find_functions() {
  functions_.update(detector_.images(), known_.vm_images, [&](Address address) {
    const Mapping* const mapping = space_.find(address);
    return mapping != nullptr ? mapped_.file_version(*mapping) : std::nullopt;
  });
}

void TargetMap::observe(const std::vector<NativeFrame>& natives) {
  if (natives.empty()) return;
  if (!looked_at_) looks_to_skip_ = looks_in_vain_ = 0;  // what was in vain before says nothing of this need
  looked_at_ = true;
  stale_ |= std::ranges::any_of(natives, [&](const NativeFrame& frame) { return !modules_.executes(frame.lookup); });
}

bool TargetMap::is_due() {
  if (looks_to_skip_ > 0) --looks_to_skip_;
  constexpr int longest_pause = 6;  // as a power of two
  const bool may_be_loading = !looked_at_ && looks_in_vain_ < longest_pause;
  if ((!stale_ && !may_be_loading && !is_incomplete()) || looks_to_skip_ > 0) return false;
  looks_to_skip_ = (1 << std::min(++looks_in_vain_, longest_pause)) - 1;
  return true;
}

}  // namespace luaspy
