#!/bin/sh
# Builds luaspy by clang, with its warnings as errors and each file of the program compiled alone, with AddressSanitizer and
# UndefinedBehaviorSanitizer, and runs the tests without processes and a part of the live ones. With --threads: with ThreadSanitizer,
# and the tests of what luaspy's threads hand to each other. A finding fails the test in which it is made. Needs Debian or Ubuntu; root,
# or a user with sudo. Further arguments go to ctest, in place of the choice of tests. Call tools/test.sh first: it prepares the Luas.
set -eu
cd "$(dirname "$0")/.."
preset=asan
tests='unit|replay|golden|fuzz_corpora|raw_format|live_(alloc_command|commands|coroutines|doctor|dump|family|locals|ps|record|report)'
if [ "${1:-}" = --threads ]; then
  preset=tsan
  tests='unit|live_(alloc_command|commands|family|record|top)'
  shift
fi
. tools/packages.sh
# shellcheck disable=SC2086 # a list of words
install_packages $build_packages $test_packages libclang-rt-14-dev
cmake --preset $preset -DLUASPY_BENCH=ON "-DLUASPY_TARGETS=$(pwd)/build/dev/targets"
cmake --build --preset $preset --target luaspy unit replay golden fuzz live bench_stops bench_windows bench_first bench_heap
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
[ $# -gt 0 ] || set -- -R "^($tests)\$"
exec ctest --test-dir build/$preset --output-on-failure -j 5 -FS targets "$@"
