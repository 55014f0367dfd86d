#!/bin/bash
# Prepares the real Lua and LuaJIT programs for the live and oracle tests: Debian's own binaries,
# and builds of Debian's sources in many shapes. Nothing is installed, everything is written to
# OUTDIR, and existing files are not made again. With "packages" it prepares only the interpreters
# that bookworm has as packages, and compiles nothing; with "versions" also a library of each version
# of Lua that has a layout or a bytecode of its own. With "fetch" it ends when everything has been
# downloaded. README.md beside this file lists the origins.
set -euo pipefail

die() { printf 'prepare.sh: %s\n' "$*" >&2; exit 2; }
[[ $# -ge 1 ]] || die "usage: prepare.sh OUTDIR [packages|versions] [fetch]"
mkdir -p "$1"
out=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
level=all fetch=
for word in "${@:2}"; do
  case $word in packages | versions) level=$word ;; fetch) fetch=1 ;; *) die "usage: prepare.sh OUTDIR [packages|versions] [fetch]" ;; esac
done
[[ $out$here != *[[:space:]]* ]] || die "a path with white space in it can't be a word of a command line: $out"
mkdir -p "$out"/{src,build,log,stamp}
exec 8>"$out/lock" && flock 8 # two at once would overwrite each other's builds
# shellcheck source=SCRIPTDIR/debian.sh
. "$here/debian.sh"

# Every Lua is built with -O2; the newest also in all of these shapes, others in some.
shapes=(O0 O1 O3 Os lto clang cxx shared dlopened static static-pie nopie hidden nosections noehframe symbols)

# Every LuaJIT is built in both pointer modes; the newest and an old one are also linked in all of these ways.
luajit_links=(symbols nopie static static-pie hidden nosections)

# ---------------------------------------------------------------- jobs

jobs_wanted=()

at_once=4 # jobs that unpack mostly wait for the network; builds do not

# job NAME COMMAND...: runs the command in the background, $at_once at a time, unless the same
# command has succeeded before.
job() {
  local name=$1; shift
  jobs_wanted+=("$name")
  [[ -e $out/stamp/$name && $(<"$out/stamp/$name") == "$*" ]] && return
  rm -f "$out/stamp/$name"
  while (($(jobs -rp | wc -l) >= at_once)); do wait -n || true; done
  (set -x; "$@"; set +x; printf '%s' "$*" >"$out/stamp/$name") >"$out/log/$name.log" 2>&1 &
}

have() { [[ -e $out/stamp/$1 ]]; }

# report: prints a sentence for each job that failed.
report() {
  local name bad=0
  for name in "${jobs_wanted[@]}"; do
    have "$name" && continue
    bad=1
    printf 'prepare.sh: the target "%s" could not be prepared, see %s\n' "$name" "$out/log/$name.log" >&2
  done
  return $bad
}

# ---------------------------------------------------------------- sources

# unpack_source WANTED PLACE...: a Lua's sources from the first place of sources.txt that has them, as src/lua-VERSION.
unpack_source() {
  local wanted=$1 place; shift
  for place; do
    if unpack_place "$wanted" "$place"; then return; fi
  done
  return 1
}

# unpack_place WANTED PLACE: all steps are in one chain, because errexit has no effect if a caller
# checks the status.
unpack_place() {
  local wanted=$1 origin package folder tarball version tmp=$out/src/tmp-$1
  IFS=/ read -r origin package folder <<<"$2"
  rm -rf "$tmp"
  mkdir "$tmp" &&
    tarball=$(tarball "$origin" "$package") &&
    tar -xf "$tarball" -C "$tmp" --strip-components=1 --wildcards "*/$folder/*" >&2 &&
    version=$(lua_version "$tmp/$folder") || return 1
  [[ $wanted == "$version" || $wanted == "${version%.*}.x" ]] || { echo "this is Lua $version, not $wanted" >&2; return 1; }
  [[ -e $out/src/lua-$version ]] || mv "$tmp/$folder" "$out/src/lua-$version"
  rm -rf "$tmp"
  echo "$version" >"$out/src/$wanted.version"
}

# unpack_luajit LABEL PLACE: LuaJIT's sources, wherever they are in the tarball, as
# src/luajit-VERSION. A version has the date of its last commit if the sources have it, else that of
# the label; experimental's is called newest, whatever its date: tests use that name. Where .relver
# was not filled in, a luajit.h that was made before has the date.
unpack_luajit() {
  local label=$1 origin package folder tarball dir date version=${1#luajit-} tmp=$out/src/tmp-$1
  IFS=/ read -r origin package folder <<<"$2"
  rm -rf "$tmp" && mkdir "$tmp"
  tarball=$(tarball "$origin" "$package")
  tar -xf "$tarball" -C "$tmp" ${folder:+--wildcards "*/$folder/*"}
  dir=$(find "$tmp" -path '*/src/ljamalg.c')
  dir=${dir%/src/ljamalg.c}
  if [[ -e $dir/.relver ]]; then
    date=$(<"$dir/.relver")
    [[ $date == [0-9]* ]] || date=$(sed -n 's/.*"LuaJIT 2\.[01]\.\([0-9]*\)".*/\1/p' "$dir/src/luajit.h")
    echo "$date" >"$dir/.relver"
    if [[ $version == 2.0.* ]]; then version=2.0; else version=2.1; fi
    version=$version.$(date -u -d "@$date" +%Y%m%d)
  fi
  [[ $label != *experimental ]] || version=2.1.newest
  [[ $label != *[0-9] || $label == "luajit-$version" ]] || { echo "this is LuaJIT $version, not $label" >&2; return 1; }
  mv -T "$dir" "$out/src/luajit-$version" || [[ -e $out/src/luajit-$version ]] # sid and experimental may have the same
  rm -rf "$tmp"
  echo "$version" >"$out/src/$label.version"
}

# tarball ORIGIN PACKAGE: npm's package, pip's source package NAME==VERSION, or the upstream tarball
# of a suite's source package, without Debian's patches.
tarball() {
  if [[ $1 == npm ]]; then
    cd "$out/download" && realpath "$(npm pack --silent "$2")"
  elif [[ $1 == pip ]]; then
    local file=$out/download/${2/==/-}.tar.gz
    [[ -e $file ]] || python3 -m pip --disable-pip-version-check download --quiet --no-deps --no-binary "${2%%=*}" -d "$out/download" "$2" >&2
    echo "$file"
  else
    apt_suite "$1" && apt "$1" apt-get source --print-uris "$2" | grep -E "^'[^ ]*' [^ ]*\.orig\.tar\.(gz|xz|bz2) " | download "$1"
  fi
}

# lua_version DIR: the version in lua.h there, with its patch level.
lua_version() { printf '#include "lua.h"\nLUA_RELEASE\n' | cc -E -P -I "$1" - | tail -n 1 | tr -cd '0-9.'; }

# ---------------------------------------------------------------- builds

# lua_files DIR: Lua's C files there, without the programs.
lua_files() { find "$1" -maxdepth 1 -name '*.c' ! -name lua.c ! -name luac.c ! -name print.c ! -name onelua.c | sort; }

# main_file DIR: the interpreter, or our own small one if a package left it out.
main_file() { if [[ -e $1/lua.c ]]; then echo "$1/lua.c"; else echo "$here/run.c"; fi; }

posix=(-w -DLUA_USE_POSIX -DLUA_USE_DLOPEN)

# build_library VERSION: liblua.a with symbols, for the oracle programs and for shared objects.
build_library() {
  local dir=$out/build/lua-$1-lib src=$out/src/lua-$1 files
  mapfile -t files < <(lua_files "$src")
  rm -rf "$dir" && mkdir "$dir" && cd "$dir"
  gcc "${posix[@]}" -O2 -fPIC -I "$src" -c "${files[@]}"
  ar rcs liblua.a ./*.o
  rm ./*.o
}

# build VERSION SHAPE: one interpreter, and its line of targets.tsv. Shapes that differ only in how they are linked
# share the objects of the library.
build() {
  local version=$1 shape=$2 dir=$out/build/lua-$1-$2 src=$out/src/lua-$1
  local whole=('-Wl,--whole-archive' "$out/build/lua-$1-lib/liblua.a" '-Wl,--no-whole-archive')
  local cc=gcc flags=(-O2) link=(-rdynamic -s) files main command=$dir/lua core=$dir/lua
  mapfile -t files < <(lua_files "$src")
  main=$(main_file "$src")
  rm -rf "$dir" && mkdir "$dir"
  case $shape in
    O2) files=("${whole[@]}") ;;
    O?) flags=("-$shape") ;;
    lto) flags+=(-flto) ;;
    clang) cc=clang ;;
    cxx) cc=g++ ;;
    symbols) files=("${whole[@]}") link=(-rdynamic) ;;
    static | static-pie) files=("${whole[@]}") link=("-$shape" -s) ;;
    nopie) flags+=(-fno-pie) link+=(-no-pie) ;;
    hidden | nosections) files=("${whole[@]}") link=(-s) ;;
    noehframe) flags+=(-fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions -fomit-frame-pointer) ;;
    shared)
      gcc -shared -s -o "$dir/liblua.so" "${whole[@]}" -lm -ldl
      files=() link=(-s -L "$dir" -llua "-Wl,-rpath,$dir") core=$dir/liblua.so ;;
    dlopened)
      gcc "${posix[@]}" -shared -fPIC -O2 -s -Dmain=lua_main -I "$src" -o "$dir/liblua.so" "$main" "${whole[@]}" -lm -ldl
      files=() main=$here/dlopened.c command="$dir/lua $dir/liblua.so" core=$dir/liblua.so ;;
  esac
  "$cc" "${posix[@]}" "${flags[@]}" -I "$src" -o "$dir/lua" "$main" "${files[@]}" "${link[@]}" -lm -ldl
  if [[ $shape == nosections ]]; then drop_sections "$dir/lua"; fi
  target "lua-$version-$shape" "$version" build "$command" "$core" "$shape" >"$dir/target"
}

# build_sanitized VERSION asan|tsan|msan: an interpreter with a sanitizer, and its line of sanitizers.tsv. Their
# shadows need addresses that are free, so they run without address randomisation.
build_sanitized() {
  local version=$1 kind=$2 dir=$out/build/lua-$1-$2 src=$out/src/lua-$1 cc=gcc link=() name files main
  mapfile -t files < <(lua_files "$src")
  main=$(main_file "$src")
  case $kind in
    asan) name=address ;;
    tsan) name=thread ;;
    msan) # only clang has it; its runtime is in a package of its own, beside the headers that come with clang
      name=memory cc=clang
      link=("-resource-dir=$(echo "$out"/debian/bookworm-sanitizers/usr/lib/llvm-14/lib/clang/14.*)") ;;
  esac
  rm -rf "$dir" && mkdir "$dir" && cd "$dir"
  "$cc" "${posix[@]}" -O1 -g "-fsanitize=$name" -I "$src" -c "$main" "${files[@]}"
  "$cc" "-fsanitize=$name" "${link[@]}" -o lua ./*.o -lm -ldl
  rm ./*.o
  target "lua-$version-$kind" "$version" build "/usr/bin/setarch -R $dir/lua" "$dir/lua" "$kind" >"$dir/sanitizer"
}

# build_numbers VERSION TYPES: one interpreter with other types of numbers (luaconf.h), and its line of numbers.tsv.
build_numbers() {
  local version=$1 types=$2 dir=$out/build/lua-$1-$2 files edits=()
  rm -rf "$dir" && mkdir "$dir" && cp -r "$out/src/lua-$version/." "$dir"
  case $version-$types in
    5.[12].*-float) edits=('s/^(#define LUA_NUMBER\s+)double/\1float/; s/"%lf"/"%f"/; s/"%\.14g"/"%.7g"/; s/strtod\(/strtof(/') ;;
    5.[12].*-longdouble) edits=('s/^(#define (LUA_NUMBER|LUAI_UACNUMBER)\s+)double/\1long double/; s/"%lf"/"%Lf"/; s/"%\.14g"/"%.19Lg"/; s/strtod\(/strtold(/') ;;
    *-float) edits=('s/^(#define LUA_FLOAT_TYPE\s+)LUA_FLOAT_(DEFAULT|DOUBLE)$/\1LUA_FLOAT_FLOAT/') ;;
    *-longdouble) edits=('s/^(#define LUA_FLOAT_TYPE\s+)LUA_FLOAT_(DEFAULT|DOUBLE)$/\1LUA_FLOAT_LONGDOUBLE/') ;;
    *-32bits) edits=('s/^(\/\* )?#define LUA_32BITS.*/#define LUA_32BITS 1/') ;;
  esac
  sed -i -E -e 's/^#define LUA_NUMBER_DOUBLE$//' -e "${edits[0]}" "$dir/luaconf.h"
  # 5.1 hashes all bytes of a number, and crashes if some of them are padding.
  [[ $version-$types != 5.1.*-longdouble ]] || sed -i 's/^#define numints.*/#define numints 2/' "$dir/ltable.c"
  mapfile -t files < <(lua_files "$dir")
  gcc "${posix[@]}" -O1 -I "$dir" -o "$dir/lua" "$(main_file "$dir")" "${files[@]}" -rdynamic -s -lm -ldl
  target "lua-$version-$types" "$version" build "$dir/lua" "$dir/lua" "$types" >"$dir/number"
}

# build_luajit VERSION SHAPE [NAME=VALUE]...: runs LuaJIT's own Makefile with these variables, in a
# copy of its sources. The generated headers stay there, and libluajit.a, with symbols. The build
# tools that it compiles for itself are not optimised.
build_luajit() {
  local dir=$out/build/luajit-$1-$2
  rm -rf "$dir" && cp -r "$out/src/luajit-$1" "$dir" && mkdir "$dir/bin"
  make -j1 -C "$dir/src" BUILDMODE=static CCDEBUG= HOST_CFLAGS=-O0 "${@:3}"
  find "$dir/src" -name '*.o' ! -name luajit.o ! -name lj_init.o -delete
  strip -o "$dir/bin/luajit" "$dir/src/luajit"
  luajit_target "luajit-$1-$2" build "$dir/bin/luajit" "$dir/bin/luajit" "$2" >"$dir/luajit"
}

# link_luajit VERSION SHAPE FROM: links the objects of the shape FROM in another way.
link_luajit() {
  local name=luajit-$1-$2 dir=$out/build/luajit-$1-$2 from=$out/build/luajit-$1-$3/src
  local core=$dir/bin/luajit command=$dir/bin/luajit link=(-rdynamic -s) objects
  objects=('-Wl,--whole-archive' "$from/libluajit.a" '-Wl,--no-whole-archive')
  [[ ! -e $from/lj_init.o ]] || objects+=("$from/lj_init.o")
  rm -rf "$dir" && mkdir -p "$dir/bin"
  case $2 in
    symbols) link=(-rdynamic) ;;
    static | static-pie) link=("-$2" -s) ;;
    nopie) link+=(-no-pie) ;;
    hidden | nosections) link=(-s) ;;
    shared)
      core=$dir/bin/libluajit.so
      gcc -shared -s -o "$core" "${objects[@]}" -lm -ldl
      objects=() link=(-s -L "$dir/bin" -lluajit "-Wl,-rpath,$dir/bin") ;;
    dlopened)
      core=$dir/bin/libluajit.so command="$dir/bin/luajit $core"
      gcc -w -shared -fPIC -O2 -s -Dmain=lua_main -I "$from" -o "$core" "$from/luajit.c" "${objects[@]}" -lm -ldl
      gcc -O2 -s -o "$dir/bin/luajit" "$here/dlopened.c" -ldl ;;
  esac
  [[ $2 == dlopened ]] || gcc -o "$dir/bin/luajit" "$from/luajit.o" "${objects[@]}" "${link[@]}" -lm -ldl
  if [[ $2 == nosections ]]; then drop_sections "$dir/bin/luajit"; fi
  luajit_target "$name" build "$command" "$core" "$2" >"$dir/luajit"
}

# luajit_target NAME KIND COMMAND CORE SHAPE: a line of luajits.tsv, for a program that runs and
# prints its version.
luajit_target() {
  local said
  # shellcheck disable=SC2086
  said=$($3 "$here/workloads/luajit/smoke.lua" </dev/null)
  [[ $said =~ ^(LuaJIT\ 2\.[01]\.[^ ]+)\ (yes|no)$ ]] || { echo "$3 says: $said" >&2; return 1; }
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "${BASH_REMATCH[1]}" "${@:2}" "${BASH_REMATCH[2]}"
}

# drop_sections FILE: changes the ELF header to name no sections (e_shoff; e_shentsize, e_shnum,
# e_shstrndx).
drop_sections() {
  head -c 8 /dev/zero | dd of="$1" bs=1 seek=40 conv=notrunc status=none
  head -c 6 /dev/zero | dd of="$1" bs=1 seek=58 conv=notrunc status=none
}

# target NAME VERSION KIND COMMAND CORE SHAPE: a line of targets.tsv, for a program that runs.
target() {
  local said
  # shellcheck disable=SC2086 # the command is a list of words
  said=$($4 "$here/workloads/smoke.lua" </dev/null)
  [[ $said == "Lua ${2%.*}" ]] || { echo "$4 says: $said" >&2; return 1; }
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$@"
}

# ---------------------------------------------------------------- Debian's binaries

# core_version FILE: the release that the core names in its copyright line: 5.3.6, or LuaJIT 2.1.0-beta3.
core_version() { grep -aoEm 1 'Lua 5\.[0-9]\.[0-9]+|LuaJIT 2\.1\.[0-9a-z.-]+' "$1" | head -n 1 | sed 's/^Lua //'; }

# debian_lua SUITE PROGRAM [CORE]: an interpreter from Debian; its core is in the program, or in
# that library.
debian_lua() {
  local program=$out/debian/$1/usr/bin/$2 core dir=$out/build/debian-$2-$1
  core=${3:+$out/debian/$1/usr/lib/x86_64-linux-gnu/$3}
  core=$(realpath "${core:-$program}")
  mkdir -p "$dir"
  target "debian-$2-$1" "$(core_version "$core")" debian "$(runner "$1") $program" "$core" "$1" >"$dir/target"
}

# debian_luajit NAME ROOT PROGRAM [CORE [OPTION]]: the same for LuaJIT.
debian_luajit() {
  local program=$out/debian/$2/usr/bin/$3 core dir=$out/build/$1
  core=${4:+$out/debian/$2/usr/lib/x86_64-linux-gnu/$4}
  core=$(realpath "${core:-$program}")
  mkdir -p "$dir"
  luajit_target "$1" debian "$(runner "$2") $program${5:+ $5}" "$core" "${2%%-*}" >"$dir/luajit"
}

# debian_host NAME ROOT PROGRAM CORE VERSION_OPTION [VARIABLE=VALUE]...: a line of hosts.tsv, or of luajit-hosts.tsv, for a program
# that starts. PROGRAM may have options.
debian_host() {
  local root=$out/debian/$2 dir=$out/build/debian-$1 core version command table=host
  core=$(realpath "$root/usr/$4")
  version=$(core_version "$core")
  command="$(runner "$2")${6:+ ${*:6}} $root/usr/$3"
  # shellcheck disable=SC2086
  $command "$5" </dev/null >&2
  [[ $version != LuaJIT* ]] || table=luajit-host
  mkdir -p "$dir"
  printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$version" debian "$command" "$core" >"$dir/$table"
}

# ---------------------------------------------------------------- all of it

job debs-bookworm unpack_debs bookworm lua5.1 lua5.2 lua5.3 lua5.4 redis-server
job debs-bookworm-luajit unpack_debs bookworm-luajit luajit
all=
[[ $level != all ]] || all=1
if [[ $all ]]; then
  wait # for the jobs that write to the same folders
  job debs-bookworm-hosts unpack_debs bookworm redis-tools haproxy nmap tshark texlive-binaries
  job debs-bookworm-luajit-hosts unpack_debs bookworm-luajit neovim tarantool dnsdist
  job debs-bookworm-luajit2 unpack_debs bookworm-luajit2 luajit2 nginx libnginx-mod-http-lua
  job debs-bookworm-sanitizers unpack_debs bookworm-sanitizers libclang-rt-14-dev
  job debs-trixie unpack_debs trixie lua5.4 luajit
  job debs-sid unpack_debs sid lua5.4 lua5.5 luajit
  job debs-bullseye-redis unpack_debs bullseye-redis redis-server
  job debs-sid-valkey unpack_debs sid-valkey valkey-server
  job debs-experimental unpack_debs experimental luajit
fi
[[ $level != versions ]] || job debs-sid unpack_debs sid lua5.5 # bookworm has none
labels=() luajit_labels=()
while read -ra line; do
  case $level-${line[0]} in
    packages-*) continue ;;
    versions-5.3.[145] | versions-5.4.[368] | versions-5.5.0 | versions-luajit-2.1.20230119 | versions-luajit-2.1.20250117 | versions-luajit-sid) continue ;;
  esac
  if [[ ${line[0]} == luajit-* ]]; then
    luajit_labels+=("${line[0]}")
    job "source-${line[0]}" unpack_luajit "${line[@]}"
  else
    labels+=("${line[0]}")
    job "source-${line[0]}" unpack_source "${line[@]}"
  fi
done < <(grep '^[0-9l]' "$here/sources.txt")
wait
if [[ $fetch ]]; then report; exit; fi
unpacked() { local label; for label; do if have "source-$label"; then cat "$out/src/$label.version"; fi; done | sort -uV; }
versions=$(unpacked "${labels[@]}")
newest=$(tail -n 1 <<<"$versions")
luajits=$(unpacked "${luajit_labels[@]}")
newest_luajit=2.1.newest

for lua in bookworm/lua5.{1,2,3,4}; do job "debian-${lua#*/}-bookworm" debian_lua bookworm "${lua#*/}"; done
job debian-luajit-bookworm debian_luajit debian-luajit-bookworm bookworm-luajit luajit
job debian-redis debian_host redis bookworm bin/redis-server bin/redis-server --version
programs_of_other_suites() {
  for lua in trixie/lua5.4 sid/lua5.{4,5}; do job "debian-${lua#*/}-${lua%/*}" debian_lua "${lua%/*}" "${lua#*/}"; done
  job debian-texlua-bookworm debian_lua bookworm texlua libtexlua53.so.5
  for suite in trixie sid experimental; do
    job "debian-luajit-$suite" debian_luajit "debian-luajit-$suite" "$suite" luajit
  done
  job debian-luajit2-bookworm debian_luajit debian-luajit2-bookworm bookworm-luajit2 luajit
  job debian-texluajit-bookworm debian_luajit debian-texluajit-bookworm bookworm texluajit libtexluajit.so.2
  job debian-texluajit-jit-bookworm debian_luajit debian-texluajit-jit-bookworm bookworm texluajit libtexluajit.so.2 --jiton
  lib=lib/x86_64-linux-gnu share=$out/debian/bookworm/usr/share
  job debian-redis6 debian_host redis6 bullseye-redis bin/redis-server lib/x86_64-linux-gnu/liblua5.1.so.0 --version
  job debian-valkey debian_host valkey sid-valkey bin/valkey-server bin/valkey-server --version
  job debian-haproxy debian_host haproxy bookworm sbin/haproxy $lib/liblua5.3.so.0 -v
  job debian-nmap debian_host nmap bookworm bin/nmap $lib/liblua5.3.so.0 --version "NMAPDIR=$share/nmap"
  job debian-tshark debian_host tshark bookworm bin/tshark $lib/liblua5.2.so.0 --version "WIRESHARK_DATA_DIR=$share/wireshark"
  job debian-texlua debian_host texlua bookworm bin/texlua $lib/libtexlua53.so.5 --version
  usr=$out/debian/bookworm-luajit/usr
  job debian-neovim debian_host neovim bookworm-luajit bin/nvim $lib/libluajit-5.1.so.2 --version "VIMRUNTIME=$usr/share/nvim/runtime"
  job debian-tarantool debian_host tarantool bookworm-luajit bin/tarantool bin/tarantool --version
  workloads=$here/workloads/luajit
  job debian-dnsdist debian_host dnsdist bookworm-luajit bin/dnsdist $lib/libluajit-5.1.so.2 --version "LUA_PATH=$workloads/?.lua"
  sed "s|@usr@|$out/debian/bookworm-luajit2/usr|; s|@workloads@|$workloads|" "$workloads/host-nginx.conf" >"$out/build/nginx.conf"
  job debian-nginx debian_host nginx bookworm-luajit2 "sbin/nginx -e stderr -c $out/build/nginx.conf" $lib/libluajit-5.1.so.2 -v
}
if [[ $all ]]; then programs_of_other_suites; fi
[[ $level != versions ]] || job debian-lua5.5-sid debian_lua sid lua5.5
at_once=2
for version in $versions; do job "lua-$version-lib" build_library "$version"; done
for version in $versions; do
  case $version in
    5.1.5) types=(float longdouble) ;;
    5.2.4) types=(longdouble) ;;
    5.3.6) types=(32bits float longdouble) ;;
    5.4.4 | 5.5.[1-9]*) types=(32bits longdouble) ;;
    *) types=() ;;
  esac
  for type in "${types[@]}"; do job "lua-$version-$type" build_numbers "$version" "$type"; done
done
for version in $luajits; do
  # The other versions are tested with 64-bit references by Debian's own binaries.
  case $version in
    *.20170501 | *.20220320 | *.tarantool*) [[ ! $all && $version == *.tarantool* ]] || job "luajit-$version-gc64" build_luajit "$version" gc64 CFLAGS=-DLUAJIT_ENABLE_GC64 ;;
    *.newest) job "luajit-$version-gc64" build_luajit "$version" gc64 CFLAGS=-fPIC ;; # shared objects are also linked from these
  esac
  # For these only the offsets of fields matter, which differ from those of others with the same
  # shape.
  case $version in *.20230119 | *.20250117 | *.20251030) quick=("CCOPT=-O1 -fomit-frame-pointer") ;; *) quick=() ;; esac
  job "luajit-$version-gc32" build_luajit "$version" gc32 CFLAGS=-DLUAJIT_DISABLE_GC64 "${quick[@]}"
done
if [[ $all ]]; then
  job "luajit-$newest_luajit-clang" build_luajit "$newest_luajit" clang CC=clang
  job "luajit-$newest_luajit-nounwind" build_luajit "$newest_luajit" nounwind CFLAGS=-DLUAJIT_NO_UNWIND
  job luajit-2.1.20220320-nojit build_luajit 2.1.20220320 nojit CFLAGS=-DLUAJIT_DISABLE_JIT # the newest doesn't compile so
fi
wait
builds_in_many_shapes() {
  for version in $versions; do
    job "lua-$version-O2" build "$version" O2
    case $version in
      "$newest") for shape in "${shapes[@]}"; do job "lua-$version-$shape" build "$version" "$shape"; done ;;
      5.1.5 | 5.4.7) for shape in O0 O3 lto clang shared dlopened static static-pie hidden nosections noehframe symbols; do job "lua-$version-$shape" build "$version" "$shape"; done ;;
      5.3.6) for shape in O0 clang shared static hidden nosections; do job "lua-$version-$shape" build "$version" "$shape"; done ;;
    esac
  done
  for kind in asan tsan msan; do job "lua-5.4.7-$kind" build_sanitized 5.4.7 "$kind"; done
  for shape in "${luajit_links[@]}"; do
    for version in 2.1.20220320 "$newest_luajit"; do job "luajit-$version-$shape" link_luajit "$version" "$shape" gc64; done
  done
  for shape in shared dlopened; do job "luajit-$newest_luajit-$shape" link_luajit "$newest_luajit" "$shape" gc64; done
}
if [[ $all ]]; then builds_in_many_shapes; fi
wait

# Writes tables of what is available, and records what was requested, for tests that count.
echo "$level" >"$out/prepared"
for table in target number host luajit luajit-host sanitizer; do
  for name in "${jobs_wanted[@]}"; do
    if have "$name" && [[ -e $out/build/$name/$table ]]; then cat "$out/build/$name/$table"; fi
  done >"$out/${table}s.tsv"
done
for version in $versions; do
  if have "lua-$version-lib"; then
    printf '%s\t%s\t%s\n' "$version" "$out/src/lua-$version" "$out/build/lua-$version-lib/liblua.a"
  fi
done >"$out/sources.tsv"
for version in $luajits; do
  for gc64 in yes no; do
    dir=luajit-$version-gc$([[ $gc64 == yes ]] && echo 64 || echo 32)
    if have "$dir"; then printf '%s\t%s\t%s\t%s\n' "$version" "$out/build/$dir/src" "$out/build/$dir/src/libluajit.a" "$gc64"; fi
  done
done >"$out/luajit-sources.tsv"
report
