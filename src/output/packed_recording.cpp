#include "output/packed_recording.h"

#include <sstream>
#include <string>

#include "base/base64.h"
#include "output/gzip.h"

namespace luaspy {

void write_packed(std::string_view raw, std::ostream& out) {
  if (raw.empty()) return;
  std::ostringstream packed;
  Gzip(packed).add(raw);
  out << base64(packed.view());
}

}  // namespace luaspy
