#!/bin/sh
# Fails if a file is not formatted according to .clang-format, if one does not compile alone, or if clang-tidy has a finding (.clang-tidy
# lists its checks). To format the files: tools/lint.sh --fix. Needs Debian or Ubuntu; root, or a user with sudo.
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
cmake --preset clang -B build/alone -DLUASPY_ALONE=ON -DLUASPY_TESTS=OFF >/dev/null
cmake --build build/alone --target alone >build/alone/messages || {
  cat build/alone/messages >&2
  exit 1
}
# Unity build, as in the tests' build: headers are read, and checked, once for many files.
cmake --preset clang -B build/lint -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=20 -DLUASPY_TESTS=OFF >/dev/null
cmake --build build/lint --target src/output/flamegraph_page.cpp >build/lint/messages || {
  cat build/lint/messages >&2
  exit 1
}
sed -n 's/^ *"file": "\(.*\)",*$/\1/p' build/lint/compile_commands.json | grep -v 'build/lint/src/.*version\.cpp$' |
  xargs -P "$(nproc)" -n 1 clang-tidy -p build/lint --quiet --warnings-as-errors='*' "--header-filter=$(pwd)/src/.*" 2>build/lint/messages || {
  cat build/lint/messages >&2 # the number of suppressed warnings, and errors
  exit 1
}
