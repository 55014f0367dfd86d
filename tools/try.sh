#!/bin/sh
# Builds luaspy and records a Lua program with it: the first command of README.md. Needs Debian or
# Ubuntu; root, or a user with sudo.
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh
# shellcheck disable=SC2086 # a list of words
install_packages $build_packages lua5.4
cmake --preset release -DLUASPY_TESTS=OFF
cmake --build --preset release
build/release/luaspy record --output demo.html -- lua5.4 demo/orders.lua
