#include "base/file_descriptor.h"

#include <unistd.h>

namespace luaspy {

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

}  // namespace luaspy
