#pragma once

// Runs the script of luajit_heap_script.h, and adds what differs to `count` (compare.h). False if
// something that it is for did not happen. Prints what was compared, without a line's end.
bool compare_heaps();
