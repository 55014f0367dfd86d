#!/usr/bin/env bash
# run.sh TARGETS PYTHON SOURCE LUASPY: runs check.py with a PUC Lua and a LuaJIT.
set -euo pipefail
targets=$1 python=$2 source=$3 luaspy=$4
for name in debian-lua5.4-bookworm debian-luajit-bookworm; do
  command=$(awk -F '\t' -v name="$name" '$1 == name { print $4 }' "$targets/targets.tsv" "$targets/luajits.tsv")
  [ -n "$command" ] || { echo "no $name in $targets" >&2; exit 1; }
  # shellcheck disable=SC2086 # words
  "$python" "$source/tests/readers/schema/check.py" "$source" "$luaspy" $command
done
