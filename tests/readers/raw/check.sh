#!/usr/bin/env bash
# check.sh PYTHON LUASPY: read.py, which was written from docs/raw-format.md alone, reads what luaspy reads, of a whole file and of one that was cut off.
set -euo pipefail
python=$1 luaspy=$2 here=$(cd "$(dirname "$0")" && pwd) folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$here/sample.luaspy" "$folder/whole.luaspy"
head -c -40 "$here/sample.luaspy" > "$folder/cut.luaspy"
(cat "$folder/whole.luaspy"; printf 'no block') > "$folder/more.luaspy"
for file in whole cut more; do
  "$luaspy" report "$folder/$file.luaspy" -f folded --lines -o "$folder/$file.folded"
  "$python" "$here/read.py" "$folder/$file.luaspy" > "$folder/$file.expected"
  cmp "$folder/$file.folded" "$folder/$file.expected"
done
grep -q 'inner (shop.lua:~3)' "$folder/whole.folded"
cmp "$folder/whole.folded" "$folder/more.folded"
