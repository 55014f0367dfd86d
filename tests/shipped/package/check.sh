#!/bin/bash
# What is shipped: the installed tree, the Debian package, and the static program in a container
# that has only it and a static Lua.
# Usage: check.sh CMAKE BUILD WORK TARGETS WORKLOADS
set -eu
cmake=$1 build=$2 work=$3 targets=$4 workloads=$5
wrong() { echo "wrong: $1"; exit 1; }
rm -rf "$work"
mkdir -p "$work"
files="bin/luaspy share/man/man1/luaspy.1.gz share/man/man1/luaspy-record.1.gz share/bash-completion/completions/luaspy share/zsh/vendor-completions/_luaspy share/fish/vendor_completions.d/luaspy.fish share/doc/luaspy/README.md share/doc/luaspy/CHANGELOG.md share/doc/luaspy/SECURITY.md share/doc/luaspy/LICENSE share/doc/luaspy/docs/dump.md share/doc/luaspy/docs/top.svg share/doc/luaspy/docs/flamegraph.png share/doc/luaspy/docs/dump.schema.json share/doc/luaspy/docs/report.schema.json"

"$cmake" --install "$build" --prefix "$work/installed" > "$work/log"
for file in $files; do [ -s "$work/installed/$file" ] || wrong "cmake --install leaves out $file"; done
pages=$work/installed/share/doc/luaspy
for link in $(grep -o ']([^)#]*' "$pages/README.md" | cut -c 3- | grep -v :); do [ -e "$pages/$link" ] || wrong "the installed README.md links to $link"; done
version=$("$work/installed/bin/luaspy" --version)
for word in "luaspy 0" "built by" libunwind libdw "5.1.0" "5.5.0" LuaJIT; do
  case $version in *"$word"*) ;; *) wrong "--version does not say '$word': $version" ;; esac
done

(cd "$build" && "${cmake%cmake}cpack" -D CPACK_PACKAGE_DIRECTORY="$work" > "$work/log")
package=$(echo "$work"/luaspy_*.deb)
dpkg -x "$package" "$work/package"
for file in $files; do [ -s "$work/package/usr/$file" ] || wrong "the package lacks $file"; done
gzip -t "$work/package/usr/share/man/man1/luaspy.1.gz"
[ "$("$work/package/usr/bin/luaspy" --version)" = "$version" ] || wrong "the package has another program"
# Each library that the program loads is in one of the packages on which it depends.
dpkg -f "$package" Depends | tr ',' '\n' | sed 's/^ *//; s/ .*//' > "$work/depends"
LC_ALL=C ldd "$work/package/usr/bin/luaspy" > "$work/libraries"
objdump -p "$work/package/usr/bin/luaspy" | sed -n 's/^ *NEEDED *//p' | while read -r library; do
  path=$(sed -n "s/^[[:space:]]*$library => \([^ ]*\).*/\1/p" "$work/libraries")
  owner=$(dpkg -S "$(realpath "${path:-/lib64/$library}")" "${path:-/lib64/$library}" 2> /dev/null | sed 's/:.*//' | sort -u | head -n 1)
  grep -qx "$owner" "$work/depends" || wrong "the package does not depend on '$owner', which has $library"
done

# A container: own mounts, processes and, for an ordinary user, own user numbers; its root has the
# program, a Lua, and /proc.
static=$build/luaspy-static
LC_ALL=C ldd "$static" 2>&1 | grep -q "not a dynamic executable" || wrong "$static loads libraries"
root=$work/container
mkdir -p "$root/proc" "$root/out"
cp "$static" "$root/luaspy"
lua=$(echo "$targets"/build/lua-5.3.6-static/lua)
cp "$lua" "$root/lua"
cp "$workloads/share.lua" "$root/"
map=""
[ "$(id -u)" -eq 0 ] || map="--user --map-root-user"
# shellcheck disable=SC2086 # words
unshare $map --mount --pid --fork -- /bin/sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" /luaspy record -d 1 -f folded -o /out/folded -- /lua /share.lua' "$root" > "$work/log" 2>&1 \
  || wrong "record in an empty container: $(cat "$work/log")"
grep -q "share.lua" "$root/out/folded" || wrong "no Lua in the container's profile: $(cat "$work/log")"
grep -q "^lua+0x.*;main chunk" "$root/out/folded" || wrong "no native frames in the container's profile: $(head -n 3 "$root/out/folded")"
echo "installed, packaged, and run in an empty container"
