#!/bin/bash
# run.sh [--quick] [--only NAME]... [OUTDIR]: measures the cost of luaspy and of other tools on this
# machine; bench/README.md explains the results. Needs Debian, or Ubuntu with a Debian archive;
# root, or a user with sudo who may trace. All files are written to OUTDIR (build/bench); packages
# are installed only if they are missing.
set -euo pipefail
here=$(realpath "$(dirname "$0")")

usage() { sed -n '2,3s/^# //p' "$here/run.sh" >&2; exit 2; }

arguments=() outdir=$here/../build/bench
while (($#)); do
  case $1 in
    --quick) arguments+=("$1") ;;
    --only) (($# > 1)) || usage; arguments+=("$1" "$2"); shift ;;
    -*) usage ;;
    *) outdir=$1 ;;
  esac
  shift
done
mkdir -p "$outdir"
outdir=$(realpath "$outdir")
out=$outdir/targets
mkdir -p "$out" "$outdir/log" "$outdir/programs"/5.{1,4}
exec 8>"$outdir/lock" && flock 8 # two runs at once would disturb each other

# shellcheck source=SCRIPTDIR/../tools/packages.sh
. "$here/../tools/packages.sh"
# shellcheck source=SCRIPTDIR/../tests/targets/debian.sh
. "$here/../tests/targets/debian.sh"

say() { printf 'bench: %s\n' "$*" >&2; }

# quietly NAME COMMAND...: writes its output to a log; if it fails, the bench ends.
quietly() {
  local name=$1; shift
  if ! (set -e; "$@") >"$outdir/log/$name" 2>&1; then
    say "$name failed; its last lines:"
    tail -n 20 "$outdir/log/$name" >&2
    exit 1
  fi
}

packages() {
  # shellcheck disable=SC2086 # a list of words
  install_packages $build_packages gcc libc6-dev python3 ca-certificates debian-archive-keyring
  # The tools that luaspy is compared with. If one is not available, its row says so.
  local package
  for package in elfutils gdb linux-perf; do install_packages "$package" || true; done
}

build() {
  cmake -S "$here/.." -B "$outdir/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLUASPY_TESTS=OFF -DLUASPY_BENCH=ON
  cmake --build "$outdir/build"
}

# targets: unpacks Debian's programs, unless they exist already.
targets() {
  [[ -e $out/complete ]] && return
  unpack_debs bookworm lua5.1 lua5.4 liblua5.1-0-dev liblua5.4-dev
  unpack_debs bookworm-luajit luajit
  unpack_debs bookworm-luajit2 nginx libnginx-mod-http-lua # a separate root: luajit conflicts with what nginx needs
  touch "$out/complete"
}

# with_lua VERSION WORD...: gcc with that version's headers. The folder also has those of Debian's
# libc, which must not come first.
with_lua() {
  local usr=$out/debian/bookworm/usr version=$1; shift
  gcc -O2 -Wall -Wextra -I "$usr/include/lua$version" -idirafter "$usr/include/x86_64-linux-gnu" "$@"
}

programs() {
  local version lib=$out/debian/bookworm/usr/lib/x86_64-linux-gnu program
  for version in 5.1 5.4; do
    with_lua "$version" -shared -fPIC -o "$outdir/programs/$version/counter.so" "$here/workloads/counter.c"
  done
  for program in threads waiting; do
    with_lua 5.4 -pthread -o "$outdir/programs/$program" "$here/workloads/$program.c" "$lib/liblua5.4.so.0"
  done
  with_lua 5.4 -o "$outdir/programs/allocations" "$here/../tests/live/programs/allocations.c" "$lib/liblua5.4.so.0"
  with_lua 5.4 -pthread -s -o "$outdir/programs/big" "$here/workloads/threads.c" "$here/workloads/filler.S" "$lib/liblua5.4.a" -lm -ldl
}

say "building, and unpacking Debian's Luas, in $outdir"
quietly packages packages
quietly build build
quietly targets targets
quietly programs programs
exec python3 "$here/bench.py" "${arguments[@]}" --folder "$outdir" \
  --run "bookworm=$(runner bookworm)" --run "bookworm-luajit=$(runner bookworm-luajit)" --run "bookworm-luajit2=$(runner bookworm-luajit2)"
