#!/bin/bash
# luaspy's own documentation: the manual page is troff without warnings, each shell completes with
# its script, and help fits on a screen.
# Usage: check.sh LUASPY WORK
set -eu
luaspy=$1 work=$2
mkdir -p "$work"
wrong() { echo "wrong: $1"; exit 1; }
expect() { case " $2 " in *" $3 "*) ;; *) wrong "$1: '$3' is not among '$2'" ;; esac; }

"$luaspy" manual > "$work/luaspy.1"
groff -man -ww -Tutf8 "$work/luaspy.1" > "$work/page" 2> "$work/warnings"
[ ! -s "$work/warnings" ] || wrong "troff: $(cat "$work/warnings")"
"$luaspy" --help > "$work/help"
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' "$work/help")
[ -n "$commands" ] || wrong "no commands in --help"
for command in $commands; do
  grep -q "luaspy $command" "$work/luaspy.1" || wrong "the manual page lacks $command"
  "$luaspy" "$command" --help > "$work/help"
  [ "$(wc -l < "$work/help")" -le 48 ] || wrong "$command --help does not fit a screen"
  [ "$(wc -L < "$work/help")" -le 120 ] || wrong "$command --help is too wide"
  case $command in completion|manual) ;; *) grep -q "standard output" "$work/help" || wrong "$command --help does not say where its output goes" ;; esac
  "$luaspy" manual "$command" > "$work/luaspy-$command.1"
  groff -man -ww -Tutf8 "$work/luaspy-$command.1" > "$work/page" 2> "$work/warnings"
  [ ! -s "$work/warnings" ] || wrong "troff, $command: $(cat "$work/warnings")"
  MANWIDTH=100 man -l "$work/luaspy-$command.1" | grep -q "^ *luaspy-$command - " || wrong "the page of $command has no name"
  [ -s "$(dirname "$luaspy")/help/luaspy-$command.1.gz" ] || wrong "the page of $command is not built to be installed"
done

for shell in bash zsh fish; do "$luaspy" completion "$shell" > "$work/luaspy.$shell"; done

# Completes like bash: the words, and the one at the cursor.
in_bash() {
  bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _luaspy 2>/dev/null; echo "${COMPREPLY[*]}"' bash "$work/luaspy.bash" "$@"
}
expect bash "$(in_bash luaspy re)" record
expect bash "$(in_bash luaspy record --form)" --format
expect bash "$(in_bash luaspy record -f fo)" folded
expect bash "$(in_bash luaspy dump --mode '')" merged
expect bash "$(in_bash luaspy completion z)" zsh
expect bash "$(in_bash luaspy record -o /etc/passw)" /etc/passwd
expect bash "$(in_bash luaspy record -- bas)" bash
[ "$(in_bash luaspy record --rate '')" = "" ] || wrong "bash: completes a number"

in_fish() { HOME=$work fish --no-config -c 'source $argv[1]; complete -C $argv[2] | string replace -r "\t.*" ""' "$work/luaspy.fish" "$1" | tr '\n' ' '; }
expect fish "$(in_fish 'luaspy re')" record
expect fish "$(in_fish 'luaspy record --form')" --format
expect fish "$(in_fish 'luaspy record --format fo')" folded
expect fish "$(in_fish 'luaspy completion z')" zsh
expect fish "$(in_fish 'luaspy record -o /etc/passw')" /etc/passwd

# zsh completes only in its line editor: in a separate terminal, where a key shows the resulting
# line.
cat > "$work/terminal.zsh" <<'ZSH'
zmodload zsh/zpty
zpty terminal zsh -f -i
zpty -w terminal "show() { zle -I; print -r -- \"LINE<\$BUFFER>\"; BUFFER=; }; zle -N show; bindkey '^G' show; autoload -U compinit; compinit -u -D; source $1; PROMPT=READY'>'"
zpty -r terminal seen '*READY>*'
for line in 'luaspy rec' 'luaspy record --form' 'luaspy record --format fold' 'luaspy completion z'; do
  zpty -w -n terminal "$line"$'\t\C-g'
  zpty -r terminal seen '*LINE<*>*'
  print -r -- "${${seen##*LINE<}%%>*}"
done
zpty -d terminal
ZSH
HOME=$work timeout 20 zsh -f "$work/terminal.zsh" "$work/luaspy.zsh" > "$work/zsh"
diff "$work/zsh" - <<'LINES' || wrong "zsh: completes to other lines"
luaspy record 
luaspy record --format 
luaspy record --format folded 
luaspy completion zsh 
LINES
echo "the manual page, --help and the completions are right"
