#!/usr/bin/env bash
# run.sh SECONDS [TARGET…]: builds the preset fuzz and fuzzes each target in turn for that long.
# Prints executions, coverage and crashes. Crashing inputs are kept in build/fuzz/found, new inputs
# in build/fuzz/inputs. `run.sh 0 TARGET…` adds those that reach new code to the corpus, the smallest first, until a
# target has 100 kB of inputs. Exit code 1 if anything crashed.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=$1
shift
cmake --preset fuzz > /dev/null
cmake --build --preset fuzz
fuzz=$PWD/build/fuzz/tests/fuzz/fuzz corpora=$PWD/tests/fuzz/corpus
if [ $# = 0 ]; then
  for folder in "$corpora"/*/; do set -- "$@" "$(basename "$folder")"; done
fi
mkdir -p build/fuzz/found build/fuzz/inputs
cd build/fuzz
failed=0
for target; do
  mkdir -p "inputs/$target"
  if [ "$seconds" = 0 ]; then
    rm -rf "merged/$target"
    mkdir -p merged
    cp -r "$corpora/$target" "merged/$target"
    # -use_counters=0: not those that only reach code more often.
    "$fuzz" "$target" -merge=1 -use_counters=0 -max_len=4096 "merged/$target" "inputs/$target" > "found/$target.log" 2>&1
    size=$(find "$corpora/$target" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
    while read -r bytes file; do
      [ -e "$corpora/$target/$file" ] && continue
      size=$((size + bytes))
      [ "$size" -le 100000 ] || break
      cp "merged/$target/$file" "$corpora/$target/"
    done < <(find "merged/$target" -type f -printf '%s %f\n' | sort -n)
    printf '%-13s %s kB of inputs\n' "$target" "$(du -sk "$corpora/$target" | cut -f1)"
    continue
  fi
  status=0
  "$fuzz" "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536 -len_control=20 -print_final_stats=1 -artifact_prefix="found/$target-" \
    "inputs/$target" "$corpora/$target" > "found/$target.log" 2>&1 || status=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "found/$target.log")
  covered=$(grep -ao 'cov: [0-9]* ft: [0-9]*' "found/$target.log" | tail -1)
  printf '%-13s %4s s %10s executions, %s%s\n' "$target" "$seconds" "${runs:-0}" "$covered" "$([ $status = 0 ] || echo ", CRASHED: found/$target.log")"
  [ $status = 0 ] || failed=1
done
exit $failed
