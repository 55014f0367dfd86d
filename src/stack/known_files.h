#pragma once
// What is known about files, whichever process maps them. To find a Lua core's functions takes 20 ms; with
// this, the next process of the same program is ready in a fraction of one. One thread at a time may use it.

#include "luastate/detect.h"
#include "stack/native_code.h"
#include "unwind/known_symbols.h"

namespace luaspy {

struct KnownFiles {
  KnownImages images;
  KnownSymbols symbols;
  NativeCode::KnownVmImages vm_images;
};

}  // namespace luaspy
