# Sourced by prepare.sh and by the bench: Debian's packages, unpacked below $out without being installed.
# shellcheck shell=bash

: "${out:?where everything lands}"
mkdir -p "$out"/{apt,download,debian}
native=bookworm # the suite whose programs run on the machine's own libc

# archive: the URL from which this machine gets its Debian packages, in any form of source lists.
archive() {
  local codename
  # shellcheck source=/dev/null
  codename=$(. /etc/os-release && printf %s "$VERSION_CODENAME")
  apt-get indextargets --no-release-info --format "\$(REPO_URI) \$(RELEASE) \$(COMPONENT)" 'Created-By: Packages' |
    awk -v codename="$codename" '$3 == "main" && ($2 == codename || $2 ~ /^(stable|testing|unstable|sid)$/) { print $1; exit }'
}

apt() { local suite=$1 tool=$2; shift 2; "$tool" -qq -c "$out/apt/$suite/apt.conf" "$@"; }

# apt_suite SUITE: makes apt know this one suite, with nothing installed and nothing shared with the machine's own state.
# Package lists older than a day are fetched again. A mirror that lags behind is accepted, and the
# bookworm keyring also has the keys of the other suites.
apt_suite() (
  dir=$out/apt/$1 options=arch=amd64 keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  mkdir -p "$dir"/{lists,cache/archives}/partial
  exec 9>"$dir/lock" && flock 9
  [[ -z $(find "$dir" -name updated -mmin -1440) ]] || return 0
  uri=$(archive)
  [[ -n $uri ]] || { echo "apt on this machine knows no Debian archive" >&2; return 1; }
  [[ -e $keyring ]] && options+=" signed-by=$keyring"
  : >"$dir/status"
  printf "%s [$options] $uri $1 main\n" deb deb-src >"$dir/sources.list"
  # Experimental has only packages that differ from sid.
  [[ $1 != experimental ]] || printf 'deb [%s] %s sid main\n' "$options" "$uri" >>"$dir/sources.list"
  cat >"$dir/apt.conf" <<CONF
Dir::State "$dir";
Dir::State::lists "$dir/lists";
Dir::State::status "$dir/status";
Dir::Cache "$dir/cache";
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "-";
APT::Default-Release "$1";
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Sandbox::User "";
APT::Install-Recommends "false";
Acquire::ForceHash "sha256";
Acquire::Check-Valid-Until "false";
Acquire::Languages "none";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
CONF
  apt "$1" apt-get update && touch "$dir/updated"
)

# download SUITE: reads "'URI' FILE SIZE HASH" lines as apt prints them, fetches what is missing, prints the files.
download() {
  local uri file hash missing=() files=()
  while read -r uri file _ hash; do
    file=$out/download/$file
    files+=("$file")
    [[ -e $file ]] || missing+=("${uri//\'/}" "$file" "$hash")
  done
  ((${#files[@]})) || { echo "apt names no file to download" >&2; return 1; }
  ((${#missing[@]} == 0)) || apt "$1" /usr/lib/apt/apt-helper download-file "${missing[@]}" >&2
  printf '%s\n' "${files[@]}"
}

# unpack_debs ROOT PACKAGE...: the packages and all they depend on, in debian/ROOT. A root has the
# name of its suite, or SUITE-NAME for packages that conflict with others of that suite. The native
# suite's programs run on the machine's libc, and must not find another one.
unpack_debs() {
  local suite=${1%%-*} deb root=$out/debian/$1; shift
  mkdir -p "$root"
  apt_suite "$suite"
  apt "$suite" apt-get install -y --print-uris "$@" >"$root/uris"
  [[ $suite == "$native" ]] && sed -i '/ libc6_/d' "$root/uris"
  download "$suite" <"$root/uris" >"$root/debs"
  while read -r deb; do dpkg -x "$deb" "$root"; done <"$root/debs"
}

# libraries ROOT: the folders of its shared libraries. Libraries that an installation would link by
# an alternative (nmap's BLAS) stay in a separate folder.
libraries() {
  local root=$out/debian/$1 lib=lib/x86_64-linux-gnu
  printf '%s' "$root/$lib:$root/usr/$lib:$root/usr/$lib/blas"
}

# runner ROOT: the words that start a program of that suite, on its own libc if that is newer than
# the machine's. Before trixie, libc's package has its loader outside of /usr.
runner() {
  local loader=$out/debian/$1/usr/lib64/ld-linux-x86-64.so.2
  [[ -e $loader ]] || loader=$out/debian/$1/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
  if [[ ${1%%-*} == "$native" ]]; then
    printf '/usr/bin/env LD_LIBRARY_PATH=%s' "$(libraries "$1")"
  else
    printf '%s --library-path %s' "$(realpath "$loader")" "$(libraries "$1")"
  fi
}
