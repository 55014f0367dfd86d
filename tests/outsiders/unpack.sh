#!/bin/bash
# unpack.sh OUTDIR ROOT PACKAGE...: unpacks Debian's packages and all they depend on, including
# libc, below OUTDIR/outsiders/ROOT, where a program can be started in a chroot as if it were
# installed. ROOT is a suite, or SUITE-NAME for packages that conflict with others of that suite.
# Existing packages are not unpacked again. No maintainer script runs, and the system is not
# changed.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
mkdir -p "$1/outsiders"
out=$(realpath "$1") root=$out/outsiders/$2 suite=${2%%-*}
shift 2
# shellcheck source=SCRIPTDIR/../targets/debian.sh
. "$here/../targets/debian.sh"

mkdir -p "$root"
exec 8>"$root.lock" && flock 8
touch "$root.have"
wanted="$*"
if grep -qxF "wanted $wanted" "$root.have"; then exit; fi
apt_suite "$suite"
apt "$suite" apt-get install -y --print-uris "$@" >"$root.uris"
[[ -s $root.uris ]] || { echo "apt finds nothing to unpack for $wanted" >&2; exit 1; }
download "$suite" <"$root.uris" >"$root.debs"
while read -r deb; do
  grep -qxF "$deb" "$root.have" && continue
  dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --no-same-owner --keep-directory-symlink --exclude='./usr/share/doc' \
    --exclude='./usr/share/man' --exclude='./usr/share/locale' --exclude='./usr/share/icons'
  echo "$deb" >>"$root.have"
  # A root without Debian's package for these links has its programs only in /usr. The links are
  # made after libc, which every set of dependencies contains.
  for folder in bin sbin lib lib64; do [[ -e $root/$folder ]] || { [[ -d $root/usr/$folder ]] && ln -s "usr/$folder" "$root/$folder"; } || true; done
done <"$root.debs"
mkdir -p "$root"/{etc,proc,dev,tmp,run,var/lib,var/log,var/run,outsider}
[[ -e $root/etc/passwd ]] || cp /etc/passwd /etc/group "$root/etc/"
echo "wanted $wanted" >>"$root.have"
