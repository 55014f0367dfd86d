#!/bin/bash
# What needs thousands of samples, a quiet machine, or hours: the campaigns. Without arguments it runs all that this commit has not
# passed yet, so that it can be ended at any time and begun again. `nightly.sh NAME…` runs these ("fuzz" is all of fuzz:*), and
# `nightly.sh --list` names them. Each adds a line to the ledger of docs/evidence.md: what was run, on which commit and processor, and
# with which result; its output is in build/night/NAME. Nothing else may run on the machine meanwhile. Needs Debian or Ubuntu, and root.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/packages.sh
build=$PWD/build/release luaspy=$PWD/build/release/luaspy targets=$PWD/build/release/targets work=$PWD/build/night
lua54=$targets/debian/bookworm/usr/bin/lua5.4

prepare() { # the program and the tests, once
  [[ ! $prepared ]] || return 0
  # shellcheck disable=SC2086 # a list of words
  install_packages $build_packages $test_packages_of_gate libclang-rt-14-dev linux-perf git
  cmake --preset release -DLUASPY_TESTS=ON -DLUASPY_TESTS_OF=night -DLUASPY_WERROR=ON
  cmake --build --preset release --target luaspy tests allocations capture
  tests/targets/prepare.sh "$targets"
  prepared=1
}
prepared=

# Each campaign prints what it did; its last line is its result in the ledger.
fuzz_targets=$(ls tests/fuzz/corpus)
campaigns="tests faults instants steps accuracy bias realtime allocations shares outsiders engines planted lint threads"
for target in $fuzz_targets; do campaigns+=" fuzz:$target"; done

run_tests() { ctest --test-dir "$build" --output-on-failure -j 5 | tee "$work/ctest" && grep 'tests passed' "$work/ctest"; }
run_faults() { "$build/tests/faults" "${ROUNDS:-120}"; } # of each of some 85 faults: 10,000
run_instants() { "$build/tests/instants" 1000 debian-lua5.1 debian-lua5.4 debian-luajit-bookworm; }
run_steps() { "$build/tests/steps" 60000; }
run_accuracy() { ctest --test-dir "$build" --output-on-failure -R '^accuracy' | tee "$work/ctest" && grep 'tests passed' "$work/ctest"; }
run_bias() { python3 tests/bias/bias.py table "$luaspy" --targets "$targets" --output "$work/bias.json" && python3 tests/bias/bias.py markdown "$work/bias.json"; }
run_realtime() { python3 tests/realtime/realtime.py all "$luaspy" "$lua54"; }
run_allocations() { "$build/tests/allocations" --repeat 5; }
run_shares() { for _ in {1..20}; do "$build/tests/live" '[share],[luajit_share],[pairs],[luajit_pairs]' | tail -n 2 || return; done; }
run_outsiders() { python3 tests/outsiders/outsiders.py "$luaspy" "$work/outsiders.work"; }
run_engines() { tests/engines/run.sh "$luaspy" "$targets" "$work/engines.work"; }
run_planted() { tests/planted/run.sh "$work/planted.work"; } # the gate against faults that are made on purpose
run_lint() { tools/lint.sh && echo "each file alone, clang-tidy of all: clean"; }
run_threads() { tools/sanitize.sh --threads | tee "$work/ctest" && grep 'tests passed' "$work/ctest"; }
run_fuzz() { tests/fuzz/run.sh "${SECONDS_A_TARGET:-1200}" "$1"; } # CPU seconds: one process, which computes all the time

[[ ${1:-} != --list ]] || { printf '%s\n' $campaigns; exit; }
[[ $# -gt 0 ]] || set -- $campaigns
mkdir -p "$work/passed"
commit=$(git rev-parse --short=8 HEAD)
[[ -z $(git status --porcelain -- src tests) ]] || commit+=+
processor=$(sed -n 's/^model name\t*: //p' /proc/cpuinfo | head -n 1)
failed=0
for wanted; do
  for name in $campaigns; do
    [[ $name == "$wanted" || $name == "$wanted":* ]] || continue
    passed=$work/passed/$name-$commit
    [[ ! -e $passed ]] || continue
    [[ $name == fuzz:* || $name == lint || $name == planted ]] || prepare
    began=$SECONDS status=passed
    if "run_${name%%:*}" "${name#*:}" >"$work/$name" 2>&1; then touch "$passed"; else status=FAILED failed=1; fi
    result=$(sed 's/\x1b[^m]*m//g; s/|/\//g' "$work/$name" | grep . | tail -n 1 | cut -c 1-160)
    printf '| %s | %s | %s | %s, %s CPUs | %d min | %s: %s |\n' "$name" "$commit" "$(date -u +%F)" "$processor" "$(nproc)" \
      $(((SECONDS - began + 30) / 60)) "$status" "$result" | tee -a docs/evidence.md
  done
done
exit $failed
