#!/bin/sh
# Builds luaspy and tests it on Debian's own Luas, in some minutes: the second command of README.md.
# With --all: all its tests, also on builds of every release in many shapes. Further arguments go to
# ctest. Needs Debian or Ubuntu; root, or a user with sudo. The Luas to test on are downloaded as
# Debian packages and sources into build/, and built there; none of them is installed.
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh
all=OFF luas=debian
if [ "${1:-}" = --all ]; then
  all=ON luas=
  test_packages=$test_packages_of_all
  shift
fi
# shellcheck disable=SC2086 # a list of words
install_packages $build_packages $test_packages
# A unity build takes half the time; tools/lint.sh checks the files one by one.
cmake --preset dev -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=20 -DLUASPY_ALL_LUAS=$all
# Downloads run while the compilers work. If one fails, the test tries it again and reports the
# error.
# shellcheck disable=SC2086 # a word or none
tests/targets/prepare.sh "$(pwd)/build/dev/targets" $luas fetch > build/dev/fetch.log 2>&1 &
cmake --build --preset dev
wait
# Two tests run at a time, plus one that sleeps (tests/CMakeLists.txt, PROCESSORS).
ctest --test-dir build/dev --output-on-failure -j 5 "$@"
