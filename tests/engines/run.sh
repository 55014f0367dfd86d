#!/usr/bin/env bash
# run.sh LUASPY TARGETS WORK [TEST...]: luaspy with the engines that people run, and with readers that nobody here wrote.
# TARGETS are the programs that tests/targets/prepare.sh has prepared; WORK is where the engines are built, once (build.sh).
# All of them listen on loopback only, and are ended at the end. TEST: push, agent, fan_in; all by default.
# A command of its own: CI has Debian's packages alone.
set -euo pipefail
luaspy=$(realpath "$1") targets=$(realpath "$2")
mkdir -p "$3"
work=$(realpath "$3")
here=$(dirname "$(realpath "$0")")
shift 3
bash "$here/build.sh" "$work"
"$luaspy" --version
"$work/otelcol" --version
"$work/python/bin/python3" -m pip freeze
for test in "${@:-push agent fan_in}"; do
  for each in $test; do
    echo "== $each"
    "$work/python/bin/python3" "$here/$each.py" "$luaspy" "$targets" "$work"
  done
done
