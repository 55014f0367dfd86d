#pragma once
// The signals that end or stop luaspy, and how it hears them.

namespace luaspy::system {

// From now on SIGINT, SIGTERM and SIGHUP (unless it is ignored, as under nohup) ask luaspy to end
// (a second SIGINT ends it at once, with status 130), SIGTSTP to stop, SIGPIPE and SIGXFSZ are
// ignored, and an alarm comes ten times a second, so that no wait for a thread lasts for ever.
void watch_signals();
// A target's files are read as they are mapped. From now on what is cut off from one meanwhile
// reads as zeros; else luaspy would be ended by SIGBUS.
void outlive_shorter_files();
// What a second SIGINT has to do before it ends luaspy; nullptr: nothing. Only what a signal
// handler may do.
void before_end_at_once(void (*action)());
// A second SIGINT waits, until hold_end_at_once(false): there is something to be written first.
void hold_end_at_once(bool hold);
// The signal that asked luaspy to end; 0 if none did.
int end_requested();
// Ctrl-Z (SIGTSTP) came. A luaspy that is stopped while a thread of the target stands still would
// keep it so: suspend() is for when none does. It returns when luaspy is continued.
bool suspend_requested();
void suspend();
}  // namespace luaspy::system
