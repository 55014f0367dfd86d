#pragma once
// The signals that end or stop luaspy, and how it handles them.

#include <functional>
#include <thread>

namespace luaspy::system {

// From now on SIGINT, SIGTERM and SIGHUP (unless it is ignored, as under nohup) ask luaspy to end,
// a second SIGINT ends it immediately with status 130, and SIGTSTP asks it to stop. SIGPIPE and
// SIGXFSZ are ignored. A SIGALRM comes ten times a second, so that no wait for a thread lasts for
// ever.
void watch_signals();
// In a child that is about to execute a command: as it was before watch_signals(). Safe after a fork.
void handle_signals_as_before();
// luaspy maps a target's files to read them. After this call, a part that is cut off from such a
// file reads as zeros; otherwise SIGBUS would end luaspy.
void outlive_shorter_files();
// What a second SIGINT does before it ends luaspy; nullptr: nothing. The action must be safe in a
// signal handler.
void before_end_at_once(void (*action)());
// A second SIGINT waits until hold_end_at_once(false), because something has to be written first.
void hold_end_at_once(bool hold);
// What is done at each of these SIGALRMs besides; nullptr: nothing. It must be safe in a signal handler.
void at_each_alarm(void (*action)());
// The signal that has asked luaspy to end; 0 if none has.
int end_requested();
// Whether a signal waits that will ask luaspy to end, as the main thread gets no CPU to handle it. For a
// thread that blocks these signals (sigpending(2)).
bool end_is_pending();
// Whether Ctrl-Z (SIGTSTP) was pressed. If luaspy were stopped while it holds a thread of the
// target, that thread would stay stopped. So suspend() must be called while it holds none; it
// returns when luaspy is continued.
bool suspend_requested();
void suspend();
// A thread that blocks all signals: they belong to the thread that calls this.
std::thread thread_without_signals(std::function<void()> run);
}  // namespace luaspy::system
