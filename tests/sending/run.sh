#!/usr/bin/env bash
# run.sh TEST TARGETS PYTHON LUASPY: runs TEST.py with a PUC Lua.
set -euo pipefail
test=$1
shift
command=$(awk -F '\t' '$1 == "debian-lua5.4-bookworm" { print $4 }' "$1/targets.tsv")
[ -n "$command" ] || { echo "no debian-lua5.4-bookworm in $1" >&2; exit 1; }
# shellcheck disable=SC2086 # words
exec "$2" "$(dirname "$0")/$test.py" "$3" $command
