#!/bin/bash
# truth.sh TARGETS OUTDIR VERSION-SHAPE...: builds real Luas that also report which instruction and
# which coroutine they run (truth.h), from the sources that ../targets/prepare.sh has unpacked in
# TARGETS, as OUTDIR/truth-VERSION-SHAPE. The edits are below; an edit that does not find its place
# fails the build. Files that exist and are not older than this file are not built again.
set -euo pipefail

die() { printf 'truth.sh: %s\n' "$*" >&2; exit 2; }
(($# >= 3)) || die "usage: truth.sh TARGETS OUTDIR VERSION-SHAPE..."
targets=$1 out=$2
shift 2
here=$(dirname "$(realpath "$0")")
mkdir -p "$out"
exec 8>"$out/lock" && flock 8

# edit FILE TIMES SCRIPT: applies a sed script that must change TIMES lines.
edit() {
  local changed
  sed -E "$3" "$1" >"$1.new"
  changed=$(diff "$1" "$1.new" | grep -c '^>' || true)
  [[ $changed == "$2" ]] || { echo "$1: $changed lines for $2: $3" >&2; return 1; }
  mv "$1.new" "$1"
}

T=luaspy_truth

# Where luaV_execute fetches: 5.2 and 5.3 count in CallInfo, 5.1 has no local variable for it.
edit_fetch() {
  local ci='ci' pc='pc'
  case $1 in
    5.1.*) ci='L->ci' ;;
    5.2.* | 5.3.*) pc='ci->u.l.savedpc' ;;
  esac
  local store="luaspy_fetched($pc, $ci);"
  case $1 in
    5.1.*) edit lvm.c 1 "s/^    const Instruction i = \*pc\+\+;\$/& $store/" ;;
    5.2.*) edit lvm.c 2 "s/^( {4}Instruction| {7}) i = \*\(ci->u\.l\.savedpc\+\+\);/& $store/" ;;
    5.3.*) edit lvm.c 2 "s/ i = \*\(ci->u\.l\.savedpc\+\+\);/& $store/" ;;
    *) edit lvm.c 3 "s/ i = \*\(pc\+\+\);/& $store/" ;;
  esac
}

# A function is entered: from where L->ci is linked to where the callee's pc is set.
edit_calls() {
  local ci='ci'
  case $1 in
    5.1.* | 5.2.* | 5.3.*)
      edit ldo.c 2 "s/^ +ci = (inc|next)_ci\(L\);/ $T.entering = 1; &/"
      edit ldo.c 1 "s/^ +n = \(\*.* do the actual call/ $T.entering = 0; &/" ;;
    *)
      edit ldo.c 1 "s/^ +L->ci = ci = prepCallInfo\(L, func, [a-z]+,( 0,)? func \+ 1 \+ fsize\);/ $T.entering = 1; &/"
      edit ldo.c 1 "/^(int|static int) luaD_pretailcall/,/^}/s/^ +ci->func(\.p)? -= delta;  \/\* restore 'func'/ $T.entering = 1; &/" ;;
  esac
  local times=1
  [[ $1 == 5.4.* || $1 == 5.5.* ]] && times=2
  edit ldo.c $times "s/^ +(L|ci->u\.l|ci)(->|\.)savedpc = p->code;/& $T.pc = p->code; $T.ci = $ci; $T.entering = 0;/"
  # The caller continues: its saved pc is exact until it fetches again.
  local back="$T.ci = 0; $T.entering = 0;"
  case $1 in
    5.1.*) edit ldo.c 1 "s/^  ci = L->ci--;/& $back/" ;;
    *) edit ldo.c 1 "s/^  L->ci = (ci = )?ci->previous;/& $back/" ;;
  esac
  case $1 in
    5.4.* | 5.5.*) edit lvm.c 2 "s/^ +L->ci = ci->previous;/& $back/" ;;
  esac
}

# Which coroutine runs, as reported by lua_resume; and the protected call, to detect lua_resume's
# first and last steps.
edit_coroutines() {
  local enter="const void *outer_state = $T.resumed; $T.resumed = L;" leave="$T.resumed = outer_state;"
  edit ldo.c 2 "/^LUA_API int lua_resume/,/^}/{s/^  status = luaD_rawrunprotected\(L, resume,/  $enter &/;s/^  lua_unlock\(L\);/  $leave &/}"
  case $1 in
    5.4.* | 5.5.*)
      edit ldo.c 2 "/ luaD_closeprotected \(/,/^}/{s/^  CallInfo \*old_ci = L->ci;/  $enter &/;s/^      return pcl\.status;/      { $leave return pcl.status; }/}" ;;
  esac
  # errorJmp is set before `guarded` and reset after it.
  edit ldo.c 2 "/ luaD_rawrunprotected \(/,/^}/{s/^  L->errorJmp = &lj;/& const void *outer_guarded = $T.guarded; $T.guarded = L; if ($T.main == 0) $T.main = L;/;s/^  L->errorJmp = lj\.previous;/  $T.guarded = outer_guarded; &/}"
}

# The collector works, without its finalizers.
edit_collector() {
  local entry='luaC_step|luaC_fullgc' functions='luaC_step luaC_fullgc' parameters='lua_State *L, int emergency' arguments='L, emergency' name call='status = luaD_pcall\(L, dothecall, .*;'
  case $1 in
    5.1.*) parameters='lua_State *L' arguments='L' call='luaD_call\(L, L->top - 2, 0\);' ;;
    5.2.*) entry+='|luaC_forcestep' functions+=' luaC_forcestep' ;;
  esac
  edit lgc.c "$(wc -w <<<"$functions")" "s/^void ($entry) \((lua_State \*L.*)\) \{/static void luaspy_\1 (\2) {/"
  edit lgc.c 1 "s/^( +)($call)/\1$T.collecting = 0; \2 $T.collecting = 1;/"
  for name in $functions; do
    if [[ $name == luaC_fullgc ]]; then
      echo "void $name ($parameters) { long outer = $T.collecting; $T.collecting = 1; luaspy_$name($arguments); $T.collecting = outer; }"
    else
      echo "void $name (lua_State *L) { long outer = $T.collecting; $T.collecting = 1; luaspy_$name(L); $T.collecting = outer; }"
    fi
  done >>lgc.c
}

build() {
  local name=$1 version=${1%-*} shape=${1##*-} dir=$out/build-$1 cc=gcc flags=(-O2) files
  local src=$targets/src/lua-$version
  [[ -d $src ]] || die "there is no $src: run tests/targets/prepare.sh first"
  rm -rf "$dir" && cp -r "$src" "$dir" && cd "$dir"
  edit_fetch "$version"
  edit_calls "$version"
  edit_coroutines "$version"
  edit_collector "$version"
  echo "volatile struct luaspy_truth luaspy_truth;" >>ldo.c
  case $shape in
    O?) flags=("-$shape") ;;
    clang) cc=clang ;;
    *) die "no such shape: $shape" ;;
  esac
  mapfile -t files < <(find . -maxdepth 1 -name '*.c' ! -name luac.c ! -name print.c ! -name onelua.c | sort)
  "$cc" -w -DLUA_USE_POSIX -DLUA_USE_DLOPEN "${flags[@]}" -include "$here/truth.h" -I . -o "$out/truth-$name.new" "${files[@]}" -rdynamic -s -lm -ldl
  mv "$out/truth-$name.new" "$out/truth-$name"
  cd "$out" && rm -rf "$dir"
}

for name; do
  [[ $out/truth-$name -nt $here/truth.sh && $out/truth-$name -nt $here/truth.h ]] && continue
  build "$name"
done
