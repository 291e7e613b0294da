# shellcheck shell=bash
# The steps of tests/run, and what is told of them. Sourced, from the repository root; $results is a folder.

suites=()  # of tests, that have begun
what=''    # a line in the end that says what ran
name=''    # of the step under way
begun=0    # when it, or the last one, began

# Runs a step NAME, which is the command $2..., and goes on after failures: $status has how it ended. What it says is in
# $results/logs as well, and tests/verdict/summarize.py tells of it.
phase() {
  name=$1 begun=$SECONDS
  say "$name"
  exec 3> >(trap '' INT TERM; exec tee "$results/logs/$name.log")
  local reader=$!
  set +e
  (set -e; "${@:2}") >&3 2>&1 3>&-
  status=$?
  set -e
  exec 3>&-
  for _ in {1..50}; do kill -0 "$reader" 2>/dev/null || break; sleep 0.1; done
  kill -KILL "$reader" 2>/dev/null || true  # who is left behind holds the pipe
  end_phase "$status"
}
end_phase() { printf '%d\t%s\t%s\n' $((SECONDS - begun)) "$1" "$name" >>"$results/phases"; name=''; }

# A step without which nothing else can be done.
step() {
  phase "$@"
  [ "$status" -eq 0 ] || finish
}

# Tests of suite $1 by the command $2...
suite() {
  suites+=("$1")
  phase "test $1" "${@:2}"
}

# The tests of build/$1, with the environment of its preset; $2... are options of ctest.
run_ctest() {
  rm -rf "build/$1/results"
  mkdir -p "build/$1/results"
  local status=0
  ctest --preset "$1" --progress -j 2 --test-output-size-failed 10000000 --output-junit "$PWD/$results/$1.xml" "${@:2}" ||
    status=$?
  cp -r "build/$1/results" "$results/$1"
  ctest --preset "$1" --show-only=json-v1 >"$results/$1/ctest.json" || status=1
  return "$status"
}

# Python's tests as suite $1; $2... are options and tests of pytest.
run_pytest() { build/venv/bin/python -m pytest -q --junitxml="$results/$1.xml" "${@:2}"; }

# Tells how all went, and ends. Calls passed where nothing failed.
finish() {
  trap '' INT TERM
  say "result"
  command -v python3 >/dev/null || fail "there is no python3"
  python3 tests/verdict/summarize.py "$results" "$what" "${suites[@]}" || exit 1
  passed
  exit
}
stopped() {
  name=${name:-between two steps}
  end_phase stopped
  finish
}
trap stopped INT TERM
