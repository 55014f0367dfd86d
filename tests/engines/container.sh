#!/usr/bin/env bash
# container.sh PACKAGE TARGETS WORK: the steps of tools/agent.Dockerfile in a root of their own, made by debootstrap (root, and Debian's archive;
# three minutes), with PACKAGE, a Debian package by cpack; and its program with the capabilities that docs/fleet.md names, beside a Lua program outside of it and an engine.
set -euo pipefail
package=$(realpath "$1") targets=$(realpath "$2")
mkdir -p "$3"
work=$(realpath "$3")
here=$(dirname "$(realpath "$0")")
recipe=$here/../../tools/agent.Dockerfile page=$here/../../docs/fleet.md
root=$work/container
[[ $(sed -n 's/^FROM //p' "$recipe") == debian:bookworm-slim ]]
[[ -e $root/bin/bash ]] || { debootstrap --variant=minbase bookworm "$root.new" && mv "$root.new" "$root"; }

cp "$package" "$root/tmp/"   # COPY
unshare --mount -- bash -c 'mount -t proc proc "$0/proc" && cp /etc/resolv.conf "$0/etc/" && exec chroot "$0" env DEBIAN_FRONTEND=noninteractive bash -ec "$1"' \
  "$root" "$(sed -n 's/^RUN //p' "$recipe")" > "$work/container.log" 2>&1 || { tail -n 20 "$work/container.log"; exit 1; }
entry=$(sed -n 's/^ENTRYPOINT //p' "$recipe" | python3 -c 'import json, sys; print(*json.load(sys.stdin))')
capabilities=$(sed -n 's/.*docker run .*/&/p' "$page" | grep -o -- '--cap-add=[A-Z_]*' | sed 's/.*=/+/' | tr 'A-Z\n' 'a-z,' | sed 's/,$//')
[[ $capabilities == +sys_ptrace* ]]
python3 "$here/container.py" "$targets" unshare --mount -- bash -c \
  'mount -t proc proc "$0/proc" && exec setpriv --no-new-privs --bounding-set "-all,$1" --inh-caps "-all,$1" chroot "$0" "${@:2}"' "$root" "$capabilities,+sys_chroot" $entry
