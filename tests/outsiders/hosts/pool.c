// A pool of states in a local array, used one after the other.

#include "states.h"

enum { states = 2000 };

int main(void) {
  lua_State* pool[states];
  for (int i = 0; i < states; ++i) pool[i] = new_state(NULL);
  for (;;) {
    for (int i = 0; i < states; ++i) go(pool[i], 0.05);
  }
}
