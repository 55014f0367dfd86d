#!/bin/bash
# build.sh [OUTDIR]: what a build of luaspy costs: the CPU seconds of a clean release build, as tools/try.sh makes it, ÷ those of one
# unit that includes what every unit needs and has an empty function (the smallest of six: three before, three after). Machines differ,
# and change their speed; the ratio holds. Prints the ten units that cost most. Nothing else may run on the machine meanwhile. Needs what
# tools/try.sh installs.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-build/bench-build}")
rm -rf "$out"
mkdir -p "$out"
cat >"$out/time" <<SCRIPT
#!/bin/bash
TIMEFORMAT="%U %S \$*"
exec 3>&2
{ time "\$@" 2>&3; } 2>>"$out/times"
SCRIPT
chmod +x "$out/time"
printf '#include <%s>\n' fmt/format.h functional unordered_map map chrono algorithm string vector set variant optional >"$out/reference.cpp"
echo 'void reference() {}' >>"$out/reference.cpp"
references() { for _ in 1 2 3; do "$out/time" g++ -std=c++20 -O0 -c "$out/reference.cpp" -o "$out/reference.o"; done; }
references
cmake --preset release -B "$out/build" -DLUASPY_TESTS=OFF "-DCMAKE_CXX_COMPILER_LAUNCHER=$out/time" >"$out/log"
began=$SECONDS
cmake --build "$out/build" >>"$out/log"
took=$((SECONDS - began))
references
awk -v took="$took" -v root="$PWD/" '
  { cpu = $1 + $2; name = $0; sub(/.* -c /, "", name); sub(root, "", name); sub(/ .*/, "", name) }
  /reference\.cpp/ { if (!reference || cpu < reference) reference = cpu; next }
  { sum += cpu; units += 1; of[name] += cpu }
  END {
    printf "%.0f CPU seconds in %d units, %d s; one reference unit: %.2f s; ratio %.0f (goal: 300 at most)\n", sum, units, took, reference, sum / reference
    for (name in of) printf "%6.1f s  %s\n", of[name], name | "sort -rn | head -n 10"
  }' "$out/times"
