#include "support/count_allocations.h"

#include <cstdlib>
#include <new>

namespace {

thread_local std::int64_t count = 0;

constexpr std::size_t usual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  ++count;
  const std::size_t whole = (size + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, whole != 0 ? whole : alignment);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void* const memory = allocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

namespace luaspy::test {

std::int64_t allocations() { return count; }

}  // namespace luaspy::test

// All forms: AddressSanitizer has its own for those that are left out.
using Alignment = std::align_val_t;
void* operator new(std::size_t size) { return allocate_or_throw(size, usual); }
void* operator new[](std::size_t size) { return allocate_or_throw(size, usual); }
void* operator new(std::size_t size, Alignment to) { return allocate_or_throw(size, static_cast<std::size_t>(to)); }
void* operator new[](std::size_t size, Alignment to) { return allocate_or_throw(size, static_cast<std::size_t>(to)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, usual); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, usual); }
void* operator new(std::size_t size, Alignment to, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(to));
}
void* operator new[](std::size_t size, Alignment to, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(to));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, Alignment) noexcept { std::free(memory); }
void operator delete[](void* memory, Alignment) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, Alignment) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, Alignment) noexcept { std::free(memory); }
