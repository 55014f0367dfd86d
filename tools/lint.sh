#!/bin/bash
# Fails if a file is not formatted according to .clang-format, if one does not compile alone, or if clang-tidy has a finding (.clang-tidy
# lists its checks). With --changed, only the format of all files, and clang-tidy of the sources that were changed in the day before the
# last commit, or since it. To format the files: tools/lint.sh --fix. Needs Debian or Ubuntu; root, or a user with sudo.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/packages.sh
# shellcheck disable=SC2086 # a list of words
install_packages $build_packages clang clang-format clang-tidy git
sources() { git ls-files '*.cpp' '*.h' '*.c'; }
if [ "${1:-}" = --fix ]; then
  sources | xargs clang-format -i
  exit
fi
sources | xargs -P "$(nproc)" -n 100 clang-format --dry-run -Werror
# quiet NAME COMMAND…: what it says only if it fails.
quiet() {
  mkdir -p build/lint
  "${@:2}" >"build/lint/$1.log" 2>&1 || { cat "build/lint/$1.log" >&2; exit 1; }
}
tidy() { xargs -r -P "$(nproc)" -n 1 clang-tidy -p build/lint --quiet --warnings-as-errors='*' "--header-filter=$(pwd)/src/.*"; }
if [ "${1:-}" = --changed ]; then
  quiet configure cmake --preset clang -B build/lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DLUASPY_TESTS=OFF
  since=$(git rev-list -1 --before=$(($(git log -1 --format=%ct) - 86400)) HEAD)
  [ -n "$since" ] || since=$(git rev-list --max-parents=0 HEAD | tail -n 1)
  # Those that were changed most, as many as can be checked within minutes; tools/nightly.sh checks all.
  most=12
  git diff --numstat --diff-filter=d "$since" -- 'src/*.cpp' ':!*_page.cpp' | sort -rn >build/lint/changed
  head -n $most build/lint/changed | cut -f 3 >build/lint/checked
  quiet tidy tidy <build/lint/checked
  echo "clang-tidy: $(wc -l <build/lint/checked) of $(wc -l <build/lint/changed) changed sources"
  exit
fi
quiet configure cmake --preset clang -B build/alone -DLUASPY_ALONE=ON -DLUASPY_TESTS=OFF
quiet alone cmake --build build/alone --target alone
# Unity build: headers are read, and checked, once for many files.
quiet configure cmake --preset clang -B build/lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=20 -DLUASPY_TESTS=OFF
quiet page cmake --build build/lint --target src/output/flamegraph_page.cpp
sed -n 's/^ *"file": "\(.*\)",*$/\1/p' build/lint/compile_commands.json | grep -v 'build/lint/src/.*version\.cpp$' >build/lint/all
quiet tidy tidy <build/lint/all
