#include "sampling/debuginfod.h"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "attach/process.h"
#include "base/display_text.h"
#include "base/text.h"
#include "sampling/debug_files.h"
#include "system/launch.h"
#include "system/progress.h"
#include "unwind/symbol_table.h"

namespace luaspy {
namespace {

constexpr const char* client = "debuginfod-find";

std::string fetch(const std::string& build_id) {
  std::string path = system::output_of({client, "debuginfo", build_id}).value_or("");
  while (path.ends_with('\n')) path.pop_back();
  return path;
}

bool is_used = false;  // use_debuginfod() was called

DebugFiles& files() {
  static DebugFiles& files = *new DebugFiles(fetch);  // never destroyed: its thread may wait for a server at the end
  return files;
}

}  // namespace

Result<void> use_debuginfod() {
  const char* const servers = std::getenv("DEBUGINFOD_URLS");
  if (servers == nullptr || *servers == '\0')
    return Error{Cause::usage, "--debuginfod asks the servers in DEBUGINFOD_URLS, but it names none."};
  if (!system::output_of({client, "--version"}))
    return Error{Cause::usage,
                 fmt::format("--debuginfod needs elfutils' program {} (Debian: package debuginfod).", client)};
  is_used = true;
  ask_for_debug_files([](const std::string& build_id) { return files().path_of(build_id); });
  return {};
}

void fetch_debug_files_later() {
  if (is_used) files().fetch_later();
}

std::uint64_t debug_files_come() { return files().come(); }

void fetch_debug_files(const Process& process) {
  system::ProgressLine progress;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  const AddressSpace space = process.address_space();
  for (const Mapping& mapping : space.mappings()) {
    if (!mapping.executable || mapping.inode == 0 || !seen.emplace(mapping.device, mapping.inode).second) continue;
    progress.show("debug files: " + displayable(base_name(mapping.path), Charset::ascii));
    const FileDescriptor file = process.open_mapped(mapping);
    const SymbolTable symbols(file.number(), mapping.path, 0);  // making it asks for the debug file
  }
  progress.clear();
}

}  // namespace luaspy
