# Sourced by the other scripts: installs Debian packages, with sudo if needed. Installed packages
# are not requested again.
install_packages() {
  missing=""
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
  done
  [ -z "$missing" ] && return
  as_root=""
  [ "$(id -u)" -eq 0 ] || as_root=sudo
  # shellcheck disable=SC2086 # a list of words
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
}

# The package npm is not installed if the command npm exists: Node.js from elsewhere has its own,
# and Debian's conflicts with it.
package_of() { command -v "$1" >/dev/null || echo "$2"; }

build_packages="g++ cmake ninja-build pkg-config libunwind-dev libelf-dev libdw-dev libcli11-dev libfmt-dev libncurses-dev nlohmann-json3-dev zlib1g-dev libre2-dev libcurl4-openssl-dev"
# Of tools/test.sh: fetching Debian's Luas, and what its tests call.
test_packages="catch2 python3 gcc libc6-dev ca-certificates debian-archive-keyring xz-utils tmux"
test_packages_of_gate="$test_packages libcurl4 openssl debuginfod musl-tools dpkg-dev file protobuf-compiler make clang python3-jsonschema python3-pip zsh fish groff-base $(package_of gcore gdb-minimal) $(package_of npm npm) chromium chromium-driver bzip2"
