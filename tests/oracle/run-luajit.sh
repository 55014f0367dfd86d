#!/bin/bash
# run-luajit.sh TARGETS CC CXX SOURCE LIBRARY…: builds luajit_oracle.cpp against each LuaJIT that targets/prepare.sh has prepared, and runs it.
# The libraries are luaspy's. The layout of structures is compared in all of them, the rest only in
# those with their own structures or bytecode.
set -euo pipefail
targets=$1 cc=$2 cxx=$3 source=$4
shift 4
work=$targets/oracle
mkdir -p "$work"

one() {
  local version=$1-gc32 headers=$2 library=$3 form=-DLUAJIT_DISABLE_GC64
  [[ $4 == yes ]] && version=$1-gc64 form=-DLUAJIT_ENABLE_GC64  # each release knows one of the two
  shift 4
  local name=$work/oracle-luajit-$version
  local flags=()
  mapfile -t flags < <(sed -n 's/^XCFLAGS+= *//p' "$headers/Makefile")  # Tarantool: LUAJIT_SMART_STRINGS, which moves fields
  local objects=() part
  for part in inside heap_inside; do
    "$cc" -O1 $form "${flags[@]}" -isystem "$headers" -I"$source/tests/oracle" -c "$source/tests/oracle/luajit_$part.c" -o "$name-$part.o"
    objects+=("$name-$part.o")
  done
  "$cxx" -std=c++20 -O1 -no-pie -I"$source/src" -I"$source/tests" -I"$source/tests/oracle" -isystem "$headers" \
    "$source"/tests/oracle/luajit_{oracle,heap_oracle}.cpp "${objects[@]}" "$@" "$library" -lm -ldl -lfmt -lre2 -o "$name"
  local said status=0
  local all=(layout)
  [[ $version =~ ^2.0.|20170501-gc32|newest-gc64|tarantool.*gc32 ]] && all=()
  said=$("$name" "${all[@]}") || status=$?
  echo "$version: $said"
  return $status
}

jobs=() count=0
while IFS=$'\t' read -r version headers library gc64; do
  one "$version" "$headers" "$library" "$gc64" "$@" &
  jobs+=($!)
  count=$((count + 1))
  ((count % 2 == 0)) && wait "${jobs[@]: -2:1}"
done <"$targets/luajit-sources.tsv"
for job in "${jobs[@]}"; do wait "$job"; done
least=6
((count >= least)) || { echo "only $count LuaJITs are in $targets/luajit-sources.tsv"; exit 1; }
