#!/usr/bin/env bash
# check.sh PYTHON LUASPY: read.py, which was written only from docs/raw-format.md, must read the
# same as luaspy, from complete and from truncated files: of version 1 (time), and of version 2
# (time and bytes, which the golden test writes).
set -euo pipefail
python=$1 luaspy=$2 here=$(cd "$(dirname "$0")" && pwd) folder=$(mktemp -d)
golden=$here/../../golden
trap 'rm -rf "$folder"' EXIT

# read_both FILE NAME
read_both() {
  cp "$1" "$folder/whole.luaspy"
  head -c -40 "$1" > "$folder/cut.luaspy"
  (cat "$1"; printf 'no block') > "$folder/more.luaspy"
  for file in whole cut more; do
    "$luaspy" report "$folder/$file.luaspy" -f folded --lines -o "$folder/$file.folded"
    "$python" "$here/read.py" "$folder/$file.luaspy" > "$folder/$file.expected"
    cmp "$folder/$file.folded" "$folder/$file.expected"
  done
  cmp "$folder/whole.folded" "$folder/more.folded"
  mv "$folder/whole.folded" "$folder/$2"
}
read_both "$here/sample.luaspy" first
read_both "$golden/sample.luaspy" time
read_both "$golden/sample.bytes.luaspy" bytes
# One block has all of its samples. read.py shows everything.
"$luaspy" report "$golden/sample.kernel.luaspy" -f folded --lines --mode all --all-threads -o "$folder/kernel"
"$python" "$here/read.py" "$golden/sample.kernel.luaspy" > "$folder/kernel.expected"
cmp "$folder/kernel" "$folder/kernel.expected"
grep -q 'inner (shop.lua:~3)' "$folder/first"
grep -q ';read \[kernel\];ext4_file_read_iter \[ext4\] 1$' "$folder/kernel"
grep -q 'work (app/main.lua:12) 3$' "$folder/time"
grep -q 'work (app/main.lua:12) 1558291$' "$folder/bytes"

# The heaps, as chrometrace has them.
"$luaspy" report "$golden/sample.luaspy" -f chrometrace -o - | "$python" -c '
import json, sys
events = [event for event in json.load(sys.stdin)["traceEvents"] if event["ph"] == "C"]
names, sizes, cycles = [], [], {}
for event in events:
    [[unit, value]] = event["args"].items()
    if unit == "bytes":
        names += [event["name"]] if event["name"] not in names else []
        sizes.append((event["pid"], names.index(event["name"]), round(event["ts"] * 1000), value, event["name"]))
    else:
        cycles.setdefault(event["name"].split(":")[0], []).append((round(event["ts"] * 1000), value))
for pid, state, at, size, name in sizes:
    seen = [value for time, value in cycles[name] if time <= at]
    print(f"{pid} {state} {at} ns: {size} bytes, {seen[-1]} cycles")
' | sort > "$folder/heaps"
"$python" "$here/read.py" "$golden/sample.luaspy" heaps | sort > "$folder/heaps.expected"
cmp "$folder/heaps" "$folder/heaps.expected"
[ "$(wc -l < "$folder/heaps")" = 5 ]

# The labels, as --json has them: of a program with two coroutines.
"$luaspy" report "$here/labels.luaspy" --json | "$python" -c '
import json, sys
for name, values in json.load(sys.stdin)["labels"].items():
    for each in values:
        print("{}={} {}".format(name, each["value"], each["samples"]))
' | sort > "$folder/labels"
"$python" "$here/read.py" "$here/labels.luaspy" labels | sort > "$folder/labels.expected"
cmp "$folder/labels" "$folder/labels.expected"
[ "$(wc -l < "$folder/labels")" = 3 ]
# The marks, as chrometrace has them.
"$luaspy" report "$golden/sample.luaspy" -f chrometrace -o - | "$python" -c '
import json, sys
for event in json.load(sys.stdin)["traceEvents"]:
    if event["ph"] == "i":
        kind, *place = event["name"].split(" ")
        args = event["args"]
        number = args.get("failed attempts") or (place.pop(0) if kind == "trace" else 0)
        place = " ".join(place)
        why = args.get("why") or args.get("link") or ""
        print(f"{round(event['"'ts'"'] * 1000)} ns {event['"'pid'"']} {kind} {place} {number}: {why}")
' > "$folder/marks"
"$python" "$here/read.py" "$golden/sample.luaspy" marks > "$folder/marks.expected"
cmp "$folder/marks" "$folder/marks.expected"
[ "$(wc -l < "$folder/marks")" = 4 ]
# Those of a part of the time have the times of that part.
"$luaspy" report "$golden/sample.luaspy" --from 0.02 --to 0.04 -f raw -o "$folder/part.luaspy"
[ "$("$python" "$here/read.py" "$folder/part.luaspy" marks | cut -d' ' -f1,4 | tr '\n' ' ')" = '1000000 blacklisted 11000001 trace ' ]

# The suspended coroutines.
"$luaspy" report "$golden/sample.luaspy" --coroutines -f folded --lines -o "$folder/coroutines"
"$python" "$here/read.py" "$golden/sample.luaspy" coroutines > "$folder/coroutines.expected"
cmp "$folder/coroutines" "$folder/coroutines.expected"
grep -q '^worker (app/main.lua:52);wait (app/main.lua:41);coroutine.yield \[C\] 5$' "$folder/coroutines"

# What report prints for bytes, and what it refuses.
"$luaspy" report "$golden/sample.bytes.luaspy" > "$folder/report"
grep -q '4.0 MiB in 6 samples of 2 threads' "$folder/report"
grep -q ' 1.5 MiB    1.5 MiB  work (app/main.lua:10)$' "$folder/report"
"$luaspy" report "$golden/sample.bytes.luaspy" --by samples | grep -q '^   50.0    66.7         3         4  work (app/main.lua:10)$'
# refused TEXT ARGUMENT...: checks that the arguments are refused as wrong usage.
refused() {
  local text=$1 status=0
  shift
  "$luaspy" report "$@" 2> "$folder/error" || status=$?
  [ "$status" = 2 ] && grep -q -- "$text" "$folder/error" || { echo "report $*: $status, $(cat "$folder/error")" >&2; exit 1; }
}
refused 'chrometrace shows time only; this profile counts bytes' "$golden/sample.bytes.luaspy" -f chrometrace -o "$folder/trace"
[ ! -e "$folder/trace" ]
refused 'counts nanoseconds, .*sample.bytes.luaspy counts bytes: they cannot be compared' --diff "$golden/sample.luaspy" "$golden/sample.bytes.luaspy"
