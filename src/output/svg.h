#pragma once
// A flame graph as a picture: for pages and mails that show pictures, such as a README. The widest
// box is at the left, callers are above what they call. Boxes have titles, which browsers show under
// the pointer. There is no script in it, and it loads nothing.

#include "output/comparison.h"
#include "output/write_options.h"

namespace luaspy {

// Boxes narrower than half a pixel and rows below the 400th are left out; the picture says how many.
void write_svg(const Profile& profile, const WriteOptions& options, std::ostream& out);
// Boxes are as wide as after, and have the colours of their changes.
void write_svg_diff(const Profile& before, const Profile& after, const Comparison& comparison,
                    const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
