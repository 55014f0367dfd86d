#include "support/count_allocations.h"

#include <cstdlib>
#include <new>

namespace {

thread_local std::int64_t count = 0;

void* allocate(std::size_t size, std::size_t alignment) {
  ++count;
  const std::size_t whole = (size + alignment - 1) / alignment * alignment;
  if (void* const memory = std::aligned_alloc(alignment, whole != 0 ? whole : alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

namespace luaspy::test {

std::int64_t allocations() { return count; }

}  // namespace luaspy::test

// The forms that are not here call these.
void* operator new(std::size_t size) { return allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
