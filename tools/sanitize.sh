#!/bin/sh
# Builds luaspy by clang, with its warnings as errors and with AddressSanitizer and UndefinedBehaviorSanitizer, and runs the tests
# without processes and five tags of the live ones. With --threads: with ThreadSanitizer, and the tests of what luaspy's threads hand to
# each other. A finding fails the test in which it is made. Needs Debian or Ubuntu; root, or a user with sudo. Further arguments go to
# ctest, in place of the choice of tests; then leaks are not looked for. Call tools/test.sh --gate first: it prepares the Luas, and builds
# the live tests, which run this luaspy here.
set -eu
cd "$(dirname "$0")/.."
preset=asan
targets='luaspy unit replay fuzz'
tests='unit|unit_slow|replay|golden|fuzz_corpora|raw_format|live_(coroutines|dump|family|locals|record)'
# In one of these, luaspy may not use ptrace, by which LeakSanitizer looks at it.
tests_without_leaks=live_alloc_command
if [ "${1:-}" = --threads ]; then
  preset=tsan
  targets='luaspy unit'
  tests='unit|live_(commands|family|record|top)'
  shift
fi
. tools/packages.sh
# shellcheck disable=SC2086 # a list of words
install_packages $build_packages $test_packages_of_gate libclang-rt-14-dev
cmake --preset $preset "-DLUASPY_TARGETS=$(pwd)/build/release/targets" "-DLUASPY_LIVE=$(pwd)/build/release/tests/live"
# shellcheck disable=SC2086
cmake --build --preset $preset --target $targets
export UBSAN_OPTIONS=print_stacktrace=1 "TSAN_OPTIONS=suppressions=$(pwd)/tools/tsan-suppressions.txt"
run() { ctest --test-dir build/$preset --output-on-failure -j 5 "$@"; }
if [ $# -gt 0 ]; then
  ASAN_OPTIONS=detect_leaks=0 run "$@"
else
  failed=0
  ASAN_OPTIONS=detect_leaks=1 run -R "^($tests)\$" || failed=1
  ASAN_OPTIONS=detect_leaks=0 run -R "^($tests_without_leaks)\$" || failed=1
  exit $failed
fi
