#pragma once
// What --help of each command ends with: where its output goes, notes, and examples.

namespace luaspy {

// Of `luaspy --help`: what to type, and what the exit status says.
extern const char* const examples;

extern const char* const record_notes;
extern const char* const report_notes;
extern const char* const top_notes;
extern const char* const dump_notes;
extern const char* const heap_notes;
extern const char* const alloc_notes;
extern const char* const ps_notes;
extern const char* const doctor_notes;
extern const char* const jit_notes;
extern const char* const view_notes;
extern const char* const push_notes;
extern const char* const agent_notes;

}  // namespace luaspy
