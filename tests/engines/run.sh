#!/usr/bin/env bash
# run.sh LUASPY TARGETS WORK [TEST...]: luaspy with the engines that people run, and with readers that nobody here wrote.
# TARGETS are the programs that tests/targets/prepare.sh has prepared; WORK is where the engines are built, once (build.sh).
# All of them listen on loopback only, and are ended at the end. TEST: push, agent, fan_in, pprof, pyroscope, parca, fleet; all by default.
# volume measures what an agent sends. container.sh is a command of its own. CI has Debian's packages alone, and runs none of these.
set -euo pipefail
luaspy=$(realpath "$1") targets=$(realpath "$2")
mkdir -p "$3"
work=$(realpath "$3")
here=$(dirname "$(realpath "$0")")
shift 3
bash "$here/build.sh" "$work"
"$luaspy" --version | head -n 1
"$work/otelcol" --version
basename -a "$work"/pyroscope-* "$work"/parca-*
go version -m "$work/bin/pprof" | sed -n 's/^\tmod\t\([^\t]*\)\t\([^\t]*\).*/\1 \2/p'
"$work/python/bin/python3" -m pip freeze
[[ $# -gt 0 ]] || set -- push agent fan_in pprof pyroscope parca fleet
for test in "$@"; do
  echo "== $test"
  "$work/python/bin/python3" "$here/$test.py" "$luaspy" "$targets" "$work"
done
