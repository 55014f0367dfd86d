#!/bin/bash
# run.sh WORK [LAYERS]: does the gate find faults? Plants each fault of faults.tsv alone (name, file, sed's expression) into a copy of this
# commit in the folder WORK, builds it, and runs the tests of the layers (a regular expression; fast|smoke|exact|live) until one fails.
# Prints for each fault which test found it; the status is 0 if all were found. Some 4 minutes for each fault.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(realpath -m "$1") layers=${2:-fast|smoke|exact|live} faults=$PWD/tests/planted/faults.tsv found=0 all=0
if [[ ! -e $work/.git ]]; then git clone -q . "$work"; fi
git -C "$work" fetch -q origin && git -C "$work" checkout -q --detach "$(git rev-parse HEAD)"
cd "$work"
build() { cmake --preset release -DLUASPY_TESTS=ON -DLUASPY_TESTS_OF=gate >build.log && cmake --build --preset release --target luaspy tests >>build.log 2>&1; }
build || { tail build.log; exit 1; }
# A test that fails without a fault finds none.
ctest --test-dir build/release -j 5 -L "$layers" >tests.log 2>&1 || { tail tests.log; exit 1; }
while IFS=$'\t' read -r name file edit; do
  all=$((all + 1))
  git checkout -q -- .
  sed -i "$edit" "$file"
  if git diff --quiet; then
    by="nobody: the line that it changes is not there"
  elif ! build; then
    by="nobody: it does not compile"
  elif ctest --test-dir build/release -j 5 --stop-on-failure -L "$layers" >tests.log 2>&1; then
    by=nobody
  else
    by=$(sed -n 's/.*Test *#[0-9]*: \([a-z0-9_]*\) .*Failed.*/\1/p' tests.log | paste -sd ' ')
    found=$((found + 1))
  fi
  printf '%-55s %s\n' "$name" "$by"
done <"$faults"
git checkout -q -- .
echo "$found of $all faults found"
((found == all))
