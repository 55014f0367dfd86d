#pragma once
// Standard output, which knows why it could not be written.

#include <string_view>

#include "base/result.h"
#include "system/calls.h"

namespace luaspy::system {

// From now on std::cout writes to file 1 itself. Call it once, before anything is written there.
void open_standard_output();
// Writes what std::cout still holds. `what`: "the report", for the Error's text if not all of it could be written.
Result<void> flush_standard_output(std::string_view what);

// Why a file, or `what`, could not be written. The reader of a closed pipe knows that it has closed it: of standard
// output, that is Cause::reader_gone.
Error cannot_write(std::string_view what, const Failure& failure);

// Ends luaspy as a write to a closed pipe does if nobody handles SIGPIPE: without a word, with the status of that
// signal.
[[noreturn]] void end_without_reader();

}  // namespace luaspy::system
