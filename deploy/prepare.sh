# Steps that deploy/quickstart and tests/run share. Sourced, from the repository root.

# Where ccache is: clones in other folders find what this one has compiled; precompiled headers want the rest.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=10Gi
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

say() { printf '\n== %s (%ds)\n' "$1" "$SECONDS"; }
fail() { printf '\nerror: %s\n' "$1" >&2; exit 1; }

# Installs the packages of the files $@ that are missing; of deploy/packages.txt unless given.
install_packages() {
  local missing=()
  local package
  for package in $(grep -hv '^#' "${@:-deploy/packages.txt}"); do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
      missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  say "installing ${#missing[@]} packages"
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "cannot install as $(id -un) without sudo: ${missing[*]}"
    root=(sudo)
  fi
  export DEBIAN_FRONTEND=noninteractive
  "${root[@]}" apt-get update -qq || fail "apt-get update failed; is a package mirror reachable?"
  "${root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    fail "apt-get could not install: ${missing[*]}"
}

# Configures and builds into $1: options of cmake up to --, then targets. More compilers than processors would only share
# their caches.
build() {
  local folder=$1 options=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  configure "$folder" "${options[@]}"
  : >"$folder/build.log"
  ninja -j "$(nproc)" -C "$folder" "$@" 2>&1 | show_progress "$folder/build.log" ||
    { sed -n '/^FAILED:\|^ninja: error/,$p' "$folder/build.log" | head -n 100 >&2; fail "the build failed, see $folder/build.log"; }
}

# Copies what ninja says into file $1 and shows how far it is: in one line, or where nobody watches in one for each tenth.
show_progress() {
  local line tenth=0 shown=0
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$1"
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
    if [ -t 1 ]; then
      printf '\r  %d of %d ' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
    elif [ $tenth -gt $shown ]; then
      printf '  %d of %d\n' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
    fi
    shown=$tenth
  done
  [ ! -t 1 ] || printf '\n'
}

# Configures into $1 with options of cmake. What is tested and measured has the level of what is shipped. Debug information
# is lines only: a third of the compilers' time goes into the rest.
configure() {
  local folder=$1 options=(-DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG"
                           "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" -DTENSORD_UNITY=ON)
  shift
  if command -v ccache >/dev/null; then
    options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  mkdir -p "$folder"
  cmake -S . -B "$folder" -G Ninja "${options[@]}" "$@" >"$folder/configure.log" 2>&1 ||
    { tail -n 20 "$folder/configure.log" >&2; fail "cmake failed, see $folder/configure.log"; }
}

# Makes a Python environment in build/venv with the client and $@ (requirement files) installed, unless that has been done
# for the same sources. With -c FILE BUILD_FILE in front pip takes the versions that these two name, for what it installs
# and for what it builds the client with.
python_environment() {
  local constraints=() build_constraints=''
  if [ "${1:-}" = -c ]; then
    constraints=(-c "$2")
    build_constraints=$PWD/$3
    shift 3
  fi
  local stamp
  stamp=$({ deploy/version; cat client/python/pyproject.toml client/python/setup.py proto/tensord/v1/*.proto "$@" \
    "${constraints[@]:1}" ${build_constraints:+"$build_constraints"} \
    $(find client/python/tensord -name '*.py' -not -path '*/_generated/*'); } | sha256sum)
  [ -f build/venv/stamp ] && [ "$(cat build/venv/stamp)" = "$stamp" ] && return
  say "installing the Python client"
  [ -x build/venv/bin/pip ] || /usr/bin/python3 -m venv build/venv || fail "python3 -m venv failed"
  local requirements=()
  local file
  for file in "$@"; do requirements+=(-r "$file"); done
  # The variable reaches the pip that builds; what it names is not installed here.
  ${build_constraints:+env "PIP_CONSTRAINT=$build_constraints"} \
    build/venv/bin/pip install -q --disable-pip-version-check "${constraints[@]}" ./client/python "${requirements[@]}" ||
    fail "pip could not install the Python client; is a package index reachable?"
  build/venv/bin/pip uninstall -q -y tensord-native >/dev/null 2>&1 || true  # it would be of another version
  printf '%s' "$stamp" >build/venv/stamp
}
