/* Has the strings by which Luau is recognised, and waits. A Luau has both idents (Luau's lapi.cpp), unless the linker
 * left out what nobody refers to; with WITHOUT_IDENTS, it did. */
#include <stdio.h>
#include <unistd.h>

#ifndef WITHOUT_IDENTS
const char lua_ident[] = "$Lua: Lua 5.1.4 Copyright (C) 1994-2008 Lua.org, PUC-Rio $\n";
const char luau_ident[] = "$Luau: Copyright (C) 2019-2024 Roblox Corporation $\n";
#endif
const char first[] = "__newindex", event[] = "__namecall", version[] = "Luau", last[] = "__iter"; /* ltm.cpp,
                                                                                                     lbaselib.cpp */

int main(void) {
  puts("READY");
  fflush(stdout);
  for (;;) pause();
}
