#!/bin/sh
# Builds luaspy and passes all its tests: the second command of README.md. Debian or Ubuntu; root, or a user with sudo.
# The Luas to test on are fetched as Debian packages and sources into build/, and built there; nothing of them is installed.
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh
# shellcheck disable=SC2086 # a list of words
install_packages $build_packages catch2 gcc libc6-dev protobuf-compiler make clang python3 python3-jsonschema tmux zsh fish groff-base $(package_of npm npm) chromium chromium-driver ca-certificates debian-archive-keyring xz-utils bzip2
cmake --preset dev
cmake --build --preset dev
ctest --test-dir build/dev --output-on-failure -j 2 "$@"
