#pragma once
// Whether all of an ELF image is mapped. The kernel and ld.so map a program's or a library's parts one after the other,
// and luaspy may look in between.

#include <span>

#include "base/memory.h"

namespace luaspy {

struct ImagePart {
  Address start = 0, end = 0;
};

// `mapped`: what is mapped of it, ascending. False: by its program headers (elf(5), PT_LOAD)
// there will be more of it. What has no headers that can be read is not waited for: true.
bool has_all_constant_parts(const Memory& memory, Address start, std::span<const ImagePart> mapped);

}  // namespace luaspy
