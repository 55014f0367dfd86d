#!/bin/sh
# Builds luaspy and its tests by clang, with warnings as errors and each file of the program compiled alone, and runs what a sanitizer
# can judge: with AddressSanitizer and UndefinedBehaviorSanitizer all tests without processes and a part of the live ones; with
# --threads, with ThreadSanitizer, what luaspy's own threads hand to each other. A finding fails the test in which it is made. Needs
# Debian or Ubuntu; root, or a user with sudo. Further arguments go to ctest, instead of the choice of tests.
set -eu
cd "$(dirname "$0")/.."
preset=asan
tests='unit|replay|golden|fuzz_corpora|formats|raw_format|live_(commands|record|top|family|dump|ps|doctor|coroutines|locals|heap|alloc_command)'
if [ "${1:-}" = --threads ]; then
  preset=tsan
  tests='unit|live_(record|top|family|commands|alloc_command)'
  shift
fi
. tools/packages.sh
# shellcheck disable=SC2086 # a list of words
install_packages $test_packages libclang-rt-14-dev
cmake --preset $preset -DLUASPY_TARGETS="$(pwd)/build/dev/targets" "-DLUASPY_ALL_LUAS=OFF"
cmake --build --preset $preset
# A process whose leaks are looked for is traced by its own sanitizer at its end: it cannot be where it is traced already.
export ASAN_OPTIONS="detect_leaks=0:abort_on_error=0:exitcode=99" UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS="exitcode=99 suppressions=$(pwd)/tests/tsan.txt"
[ $# -gt 0 ] || set -- -R "^($tests|targets)\$"
exec ctest --test-dir build/$preset --output-on-failure -j 5 "$@"
