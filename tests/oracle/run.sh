#!/bin/bash
# run.sh TARGETS CXX SOURCE LIBRARY…: builds oracle.cpp against each Lua with its own layout row or
# bytecode, and runs it. TARGETS is the output of targets/prepare.sh; the libraries are luaspy's.
set -euo pipefail
targets=$1 cxx=$2 source=$3
shift 3
work=$targets/oracle
mkdir -p "$work"

one() {
  local version=$1 headers=$2 lua=$3
  shift 3
  "$cxx" -std=c++20 -O1 -I"$source/src" -I"$source/tests" -isystem "$headers" "$source/tests/oracle/oracle.cpp" "$@" "$lua" -lm -ldl -lfmt -lre2 \
    -o "$work/oracle-$version" && "$work/oracle-$version"
}

wanted='^(5\.1\.5|5\.2\.4|5\.3\.[036]|5\.4\.[29]|5\.5\.1)$' least=8
jobs=() count=0
while IFS=$'\t' read -r version headers lua _; do
  [[ $version =~ $wanted ]] || continue
  one "$version" "$headers" "$lua" "$@" &
  jobs+=($!)
  count=$((count + 1))
  ((count % 2 == 0)) && wait "${jobs[@]: -2:1}"
done <"$targets/sources.tsv"
for job in "${jobs[@]}"; do wait "$job"; done
((count >= least)) || { echo "only $count of the Luas that the oracle wants are in $targets/sources.tsv"; exit 1; }
