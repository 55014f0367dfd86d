#!/bin/sh
# Fails where a file is not as .clang-format says, or clang-tidy has a finding (.clang-tidy says which). Format what differs with: tools/lint.sh --fix
# Debian or Ubuntu; root, or a user with sudo.
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh
# shellcheck disable=SC2086 # a list of words
install_packages $build_packages clang clang-format clang-tidy git
sources() { git ls-files '*.cpp' '*.h' '*.c'; }
if [ "${1:-}" = --fix ]; then
  sources | xargs clang-format -i
  exit
fi
sources | xargs clang-format --dry-run -Werror
# Several files at once, as in the tests' build: what they include is read once.
cmake --preset clang -B build/lint -DCMAKE_UNITY_BUILD=ON -DLUASPY_TESTS=OFF >/dev/null
cmake --build build/lint --target src/output/flamegraph_page.cpp >/dev/null
sed -n 's/^ *"file": "\(.*\)",*$/\1/p' build/lint/compile_commands.json | grep -v 'build/lint/src/.*version\.cpp$' |
  xargs -P "$(nproc)" -n 1 clang-tidy -p build/lint --quiet --warnings-as-errors='*' "--header-filter=$(pwd)/src/.*" 2>build/lint/messages || {
  cat build/lint/messages >&2 # how many warnings were left out, and what went wrong
  exit 1
}
