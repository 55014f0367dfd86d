#pragma once
// A profile that has each kind of frame and state of the VM, two threads, a thread that ended, losses and hostile names.

#include "profile.h"

namespace luaspy {

Profile sample_profile();

}  // namespace luaspy
