#pragma once
// The files that luaspy heap writes beside its report. The heap has formats of its own, and all of
// those of profiles (output/format.h) that can show bytes.

#include <functional>
#include <string>
#include <vector>

#include "base/address_range.h"
#include "heapreport/heap_json.h"
#include "output/output_file.h"

namespace luaspy {

// Their names, for the command line.
std::vector<std::string> heap_format_names();

class HeapOutput {
 public:
  // `format`: one of heap_format_names(); "": as the name of the file ends, a snapshot if it has no
  // ending. Opens the file at once, so that an error is reported before the target was stopped.
  static Result<HeapOutput> open(const std::string& path, const std::string& format);

  // Is it to be a .luaheap file? Then it has the memory itself, in the ranges that write_snapshot()
  // is given; else what the analyses make of it.
  bool is_snapshot() const;
  Result<void> write_snapshot(const HeapSnapshot& snapshot, const std::vector<AddressRange>& ranges);
  // Leaves out Luas whose objects cannot be found. Says what a format cannot have.
  Result<void> write(const HeapSnapshot& snapshot, const Analyses& analyses,
                     const std::function<void(double part)>& told);
  // Only a page shows differences; the error says so.
  Result<void> can_compare() const;
  Result<void> write_difference(const HeapSnapshot& before, const Analyses& of_before, const HeapSnapshot& after,
                                const Analyses& of_after);
  // There is nothing to write.
  void discard() { file_.discard(); }

  bool to_stdout() const { return file_.to_stdout(); }
  const std::string& path() const { return file_.path(); }
  std::string next_step() const { return file_.next_step(); }

 private:
  explicit HeapOutput(OutputFile file) : file_(std::move(file)) {}

  OutputFile file_;
};

}  // namespace luaspy
