#!/usr/bin/env bash
# run.sh TARGETS WORK PYTHON WRITE_FORMATS: runs check.py on the output of write_formats. Its
# readers come from Debian's packages, which are fetched once; one file of each is used: pprof's
# schema, and callgrind_annotate.
set -euo pipefail
targets=$1 work=$2 python=$3 write_formats=$4
here=$(dirname "$(realpath "$0")")
mkdir -p "$work/cache/archives/partial" "$work/files"
cd "$work"

# take PACKAGE FILE: puts the file into this folder.
take() {
  local name=${2##*/}
  [[ -s $name ]] && return
  rm -f "$1"_*.deb
  apt-get -qq -c "$targets/apt/bookworm/apt.conf" -o Dir::Cache="$work/cache" download "$1"
  dpkg-deb --fsys-tarfile "$1"_*.deb | tar -xO "./$2" >"$name.new"
  mv "$name.new" "$name"
  rm -f "$1"_*.deb
}
take golang-github-google-pprof-dev usr/share/gocode/src/github.com/google/pprof/proto/profile.proto
take valgrind usr/bin/callgrind_annotate

"$write_formats" files
"$python" "$here/check.py" files profile.proto callgrind_annotate "$here/../../golden"
