#include "cli/command_notes.h"

namespace luaspy {

const char* const examples =
    "Examples:\n"
    "  luaspy record --pid 1234 -d 30                 30 seconds of a running program, as a flame graph\n"
    "  luaspy record -o my.luaspy -- lua5.4 my.lua    start a program, record everything about it\n"
    "  luaspy report my.luaspy                        what was hot; callers, lines, other formats\n"
    "  luaspy top --pid 1234                          which functions take the time, live\n"
    "  luaspy dump --pid 1234                         what is every thread doing right now?\n"
    "  luaspy jit --name nginx -s -d 10               LuaJIT: what is not compiled, and why?\n"
    "  luaspy ps                                      which processes run Lua?\n"
    "  luaspy doctor --pid 1234                       a report about it, to send us when luaspy is wrong\n"
    "\n"
    "Exit status: 0 success, or the status of the launched command; on failure 1 internal error, 2 wrong\n"
    "usage, 3 no such process, 4 no permission, 5 no Lua in the process, 6 Lua not initialised,\n"
    "7 not supported (32-bit, kernel thread, unknown Lua), 8 output cannot be written, 9 already traced,\n"
    "10 target ended first, 11 no samples, 12 slower (--diff), 126 or 127 command cannot be started.";

const char* const record_notes =
    "Examples:\n"
    "  luaspy record --pid 1234 -d 30                 30 seconds of a running program, as a flame graph\n"
    "  luaspy record -o my.luaspy -- lua5.4 my.lua    start a program, record everything about it\n"
    "  luaspy report my.luaspy                        what was hot; callers, lines, other formats";

const char* const report_notes =
    "What is asked for goes to standard output, or to FILE; the rest, and errors, to standard error.\n"
    "Shares (--by samples) are of all samples: if one function gets slower, all others shrink. --by time\n"
    "compares seconds per second of recording (same load), --by run total seconds (same work).";

const char* const top_notes =
    "The screen and the tables go to standard output, errors to standard error.\n"
    "Keys: q quit, ? help, Enter callers and callees, d stack, / filter, 1-5 sort, o write a file.\n"
    "%Own and %Total are of the last 5 s (key w: of all time); 100 % is one thread all the time. When the\n"
    "target ends, the screen stays until q. If no screen can be shown, top works as with --batch.\n"
    "A command after -- gets neither the screen nor the keys: what it writes to the terminal goes to a\n"
    "file, and to the terminal once you quit. It is not ended then; luaspy exits with its exit status.\n"
    "\n"
    "Examples:\n"
    "  luaspy top --pid 1234                              what is it doing?\n"
    "  luaspy top -- lua5.4 my.lua                        start a program and watch it\n"
    "  luaspy top --pid 1234 --batch --count 1 --interval 10   one table of the next 10 seconds";

const char* const dump_notes =
    "The dump goes to standard output, errors to standard error.\n"
    "\n"
    "Examples:\n"
    "  luaspy dump --pid 1234                what is every thread doing, and what does it wait for?\n"
    "  luaspy dump --pid 1234 --count 5      is it hung, or working?\n"
    "  luaspy dump --name nginx -s --locals  with variables; nginx's workers, too\n"
    "  luaspy dump --core core.1234          what it was doing when it crashed, or when gcore ran";

const char* const heap_notes =
    "Tables and JSON go to standard output; what luaspy says meanwhile, and errors, to standard error.\n"
    "\n"
    "Examples:\n"
    "  luaspy heap --pid 1234                      what holds the memory\n"
    "  luaspy heap --pid 1234 --every 5 --count 3  what grows: a leak\n"
    "  luaspy heap --pid 1234 -o now.luaheap       keep it, to ask more later:\n"
    "  luaspy heap now.luaheap --class Account     who holds the objects of a class\n"
    "  luaspy heap --diff before.luaheap now.luaheap\n"
    "  luaspy heap --pid 1234 -o heap.html         a page: who holds what, classes, paths\n"
    "  luaspy heap --pid 1234 -o my.heapsnapshot   for Chrome's DevTools";

const char* const alloc_notes =
    "Allocations are trapped by a debug register, some in a row, at random; nothing of the program is\n"
    "changed. This needs perf events and ptrace, and slows the program as --max-cost says.\n"
    "The tables go to standard output; with -o, to standard error, as errors do. The profile goes to FILE,\n"
    "or with -o - to standard output.\n"
    "\n"
    "Examples:\n"
    "  luaspy alloc --pid 1234 -d 30               which functions allocate, and what\n"
    "  luaspy alloc -o alloc.html -- lua5.4 app.lua";

const char* const ps_notes =
    "The list goes to standard output, errors to standard error.\n"
    "\n"
    "Example:\n"
    "  luaspy ps --states";

const char* const doctor_notes =
    "For a bug report: what luaspy found in a process and what it did not, and why. The report contains\n"
    "file names, names of native functions, addresses, sizes and counts, but no command arguments, no\n"
    "environment, and no names or values of the Lua program. Read it before you send it. Running threads\n"
    "are stopped for some µs each, sleeping ones are not. The file that --save writes is different: it\n"
    "contains registers and parts of the stack and heap of one thread, with whatever data is in them.\n"
    "Send it only to somebody who may see all data of the program.\n"
    "The report goes to standard output, errors to standard error.\n"
    "\n"
    "Examples:\n"
    "  luaspy doctor --pid 1234 -o report.txt\n"
    "  luaspy doctor --name redis-server --save stop.txt";

const char* const jit_notes =
    "LuaJIT only. Samples the program as record does, and reads what the compiler has decided, without a\n"
    "stop. The report goes to standard output, errors to standard error. With --json or --watch, a command\n"
    "after -- writes to standard error.\n"
    "\n"
    "Examples:\n"
    "  luaspy jit --name nginx -s -d 10      what is not compiled, why, and what it costs\n"
    "  luaspy jit --name nvim --watch -d 10  aborts, blacklistings, flushes and new traces, as they happen\n"
    "  luaspy jit -- luajit app.lua";

const char* const view_notes =
    "Opens FILE with xdg-open where there is a display. Elsewhere it serves FILE on 127.0.0.1, until\n"
    "Ctrl-C, to browsers that know the random address. That goes to standard output; how to reach it by\n"
    "ssh from another machine, and errors, go to standard error.\n"
    "\n"
    "Examples:\n"
    "  luaspy view profile.html\n"
    "  luaspy view profile.firefox.json    in the Firefox Profiler, which reads it from here";

const char* const push_notes =
    "Names of functions, their files and lines leave this machine; values of variables and the text of\n"
    "Lua files do not. What was sent goes to standard output, errors to standard error. Proxies are those\n"
    "of the environment (https_proxy, no_proxy).\n"
    "\n"
    "Examples:\n"
    "  luaspy push prof.luaspy --to http://collector:4318 --service shop\n"
    "  luaspy push prof.luaspy --to http://pyroscope:4040 --format pyroscope --basic-file password";

const char* const agent_notes =
    "Starts nothing and changes nothing: it looks at programs as record does, but seldom. Names of\n"
    "functions, their files and lines leave this machine; values of variables and the text of Lua files\n"
    "do not. What changes goes to standard error, nothing to standard output. It ends when a signal asks\n"
    "it to (Ctrl-C).\n"
    "\n"
    "Examples:\n"
    "  luaspy agent --to http://collector:4318 --attribute deployment.environment=prod\n"
    "  luaspy agent --to http://collector:4318 --name nginx --name redis --rate 9\n"
    "  luaspy agent --keep 10m --snapshots /var/tmp --when 'cpu > 90'\n"
    "  luaspy agent --snapshot 1234";

}  // namespace luaspy
