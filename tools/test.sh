#!/bin/sh
# Builds luaspy and tests it on Debian's own Luas, in some minutes: the second command of README.md.
# With --gate: the tests that a change has to pass, on a Lua of each version with structures of its
# own. Further arguments go to ctest. Needs Debian or Ubuntu; root, or a user with sudo. The Luas to
# test on are downloaded into build/ as Debian packages, and as sources, which are built there; none
# of them is installed. tools/nightly.sh has the rest.
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh
tests=quick luas=packages packages=$test_packages
if [ "${1:-}" = --gate ]; then
  tests=gate luas=versions packages=$test_packages_of_gate
  shift
fi
# shellcheck disable=SC2086 # a list of words
install_packages $build_packages $packages
# The folder of tools/try.sh: what that has built is not built again.
cmake --preset release -DLUASPY_TESTS=ON -DLUASPY_TESTS_OF=$tests ${CI:+-DLUASPY_WERROR=ON}
# Downloads run while the compilers work. If one fails, the test tries it again and reports the
# error.
tests/targets/prepare.sh "$(pwd)/build/release/targets" $luas fetch >build/release/fetch.log 2>&1 &
cmake --build --preset release --target luaspy tests
wait
# Two tests run at a time, plus one that sleeps (tests/CMakeLists.txt, PROCESSORS).
ctest --test-dir build/release --output-on-failure -j 5 "$@"
