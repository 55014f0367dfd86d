#!/bin/sh
# Builds luaspy and tests it on Debian's own Luas, in some minutes: the second command of README.md. With --all: all its tests, on builds of
# every release in many shapes, too. Further words go to ctest. Debian or Ubuntu; root, or a user with sudo.
# The Luas to test on are fetched as Debian packages and sources into build/, and built there; nothing of them is installed.
set -eu
cd "$(dirname "$0")/.."
all=OFF luas=debian
if [ "${1:-}" = --all ]; then
  all=ON luas=
  shift
fi
. tools/packages.sh
# shellcheck disable=SC2086 # a list of words
install_packages $build_packages catch2 gcc libc6-dev musl-tools dpkg-dev file protobuf-compiler make clang python3 python3-jsonschema tmux zsh fish groff-base $(package_of gcore gdb-minimal) $(package_of npm npm) chromium chromium-driver ca-certificates debian-archive-keyring xz-utils bzip2
cmake --preset dev -DCMAKE_UNITY_BUILD=ON -DLUASPY_ALL_LUAS=$all   # several files at once: half the time; .ci/run has compiled them one by one
# The network is waited for while the compilers work. What fails is tried again, and told, by the test.
# shellcheck disable=SC2086 # a word or none
tests/targets/prepare.sh "$(pwd)/build/dev/targets" $luas fetch > build/dev/fetch.log 2>&1 &
cmake --build --preset dev
wait
# Two tests at a time, and one that sleeps (tests/CMakeLists.txt, PROCESSORS).
ctest --test-dir build/dev --output-on-failure -j 5 "$@"
