#!/bin/sh
# Builds luaspy and tests it on Debian's own Luas, in some minutes: the second command of README.md.
# With --all: all its tests, also on builds of every release in many shapes. Further arguments go to
# ctest. Needs Debian or Ubuntu; root, or a user with sudo. The Luas to test on are downloaded as
# Debian packages and sources into build/, and built there; none of them is installed.
set -eu
cd "$(dirname "$0")/.."
all=OFF luas=debian
if [ "${1:-}" = --all ]; then
  all=ON luas=
  shift
fi
. tools/packages.sh
# shellcheck disable=SC2086 # a list of words
install_packages $build_packages catch2 debuginfod gcc libc6-dev musl-tools dpkg-dev file protobuf-compiler make clang python3 python3-jsonschema tmux zsh fish groff-base $(package_of gcore gdb-minimal) $(package_of npm npm) python3-pip chromium chromium-driver ca-certificates debian-archive-keyring xz-utils bzip2
cmake --preset dev -DCMAKE_UNITY_BUILD=ON -DLUASPY_ALL_LUAS=$all   # a unity build takes half the time; .ci/run has compiled the files one by one
# Downloads run while the compilers work. If one fails, the test tries it again and reports the
# error.
# shellcheck disable=SC2086 # a word or none
tests/targets/prepare.sh "$(pwd)/build/dev/targets" $luas fetch > build/dev/fetch.log 2>&1 &
cmake --build --preset dev
wait
# Two tests run at a time, plus one that sleeps (tests/CMakeLists.txt, PROCESSORS).
ctest --test-dir build/dev --output-on-failure -j 5 "$@"
