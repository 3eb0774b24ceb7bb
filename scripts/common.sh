# shellcheck shell=bash
# Steps, their logs, the summary, and packages to test with: what the scripts of this folder share.
# To be sourced by bash, from the root of the checkout.
#
# A step calls `record` once. Everything it printed is in a log in a build folder; the terminal gets the
# failures and the reasons for skips.

set -uo pipefail
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
jobs=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
total_passed=0 total_failed=0 total_skipped=0
rows=()
slow=()       # "SECONDS STEP SUITE", one for each suite
built=        # " STEP:SECONDS" of each build
runner=()     # words that stand before the suites' runner
may_be_empty= # set: a run of no test is no failure
SECONDS=0     # bash would go on from the value that `make fuzz SECONDS=N` exports

# Everything temporary, the tests' own files too, goes into a folder that dies with the script.
# Others may pass through it: a test that gives up its privileges still reaches what it made.
make_scratch()
{
    scratch=$(mktemp -d) && chmod 711 "$scratch" || exit 1
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    export TMPDIR=$scratch
}

# The caller's own settings must not change what is tested. Variables of the tests begin with TN_TEST_.
forget_settings()
{
    local name
    for name in $(compgen -e TENON_); do
        unset "$name"
    done
    unset MAKEFLAGS MAKELEVEL DESTDIR
}

# say WORDS: one line of progress.
say()
{
    printf '%s\n' "$*"
}

# show LOG LINES WORDS: WORDS, then the end of LOG, indented and without a builder's progress.
show()
{
    say "$3"
    sed '/^\[[ 0-9]*[%/]/d; s/^/    /' "$1" | tail -n "$2"
    say "    (all of it: $1)"
}

# record STEP PASSED FAILED SKIPPED SECONDS: the outcome of a step.
record()
{
    rows+=("$(printf '%-16s %7d %7d %8d %8d' "$@")")
    total_passed=$((total_passed + $2))
    total_failed=$((total_failed + $3))
    total_skipped=$((total_skipped + $4))
    say "$1: $2 passed, $3 failed, $4 skipped"
}

# Prints the table and, alone on the last line, the totals. Fails if anything failed; and also if
# nothing ran, unless `may_be_empty`.
finish()
{
    local row
    if [ $((total_passed + total_failed)) -eq 0 ] && [ -z "$may_be_empty" ]; then
        say "no test was run: that is a failure"
        total_failed=1
    fi
    if [ ${#slow[@]} -gt 0 ]; then
        printf '\nslowest suites (seconds, step, suite)\n'
        printf '%s\n' "${slow[@]}" | sort -rn | head -n 10
    fi
    printf '\n%-16s %7s %7s %8s %8s\n' step passed failed skipped seconds
    for row in "${rows[@]}"; do
        say "$row"
    done
    [ -z "$built" ] || say "seconds of these that were builds:$built"
    say "total time: $((SECONDS / 60)) min $((SECONDS % 60)) s"
    say "$total_passed passed, $total_failed failed, $total_skipped skipped"
    [ "$total_failed" -eq 0 ]
}

may_fetch()
{
    [ "${TENON_NO_SETUP:-}" != 1 ]
}

# install_python PYTHON FOLDER OUTER PACKAGES...: what fetch_python does, without a log.
install_python()
{
    local python=$1 folder=$2 outer=$3 packages words
    shift 3
    rm -rf "${folder:?}"
    "$python" -m venv "$folder" || return 1
    [ -z "$outer" ] || "$folder/bin/python" -c 'import site, sys
open(site.getsitepackages()[0] + "/outer.pth", "w").write(sys.argv[1] + "\n")' "$outer" || return 1
    for packages; do
        read -ra words <<<"$packages"
        "$folder/bin/pip" -q install "${words[@]}" || return 1
    done
    touch "$folder/done"
}

# fetch_python PYTHON FOLDER OUTER PACKAGES...: makes a virtual environment, unless it exists, and installs packages
# from Python's package index into it: each PACKAGES has the words of one call of pip. Packages in the folder OUTER are
# also importable there; "" for none. If that fails, prints why.
fetch_python()
{
    [ ! -e "$2/done" ] || return 0
    may_fetch || { say "without ${*:4}: TENON_NO_SETUP=1, so nothing is fetched"; return 1; }
    say "fetching ${*:4} from Python's package index"
    install_python "$@" >"$2.log" 2>&1 </dev/null && return 0
    rm -rf "${2:?}"
    say "without ${*:4}: $(tail -n 1 "$2.log")"
    return 1
}

# configure_folder FOLDER CMAKE-ARGUMENT...: with Ninja where that is.
configure_folder()
{
    local folder=$1 log=$1/build.log
    shift
    ! command -v ninja >/dev/null || export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
    mkdir -p "$folder"
    cmake "$@" >"$log" 2>&1 </dev/null && return
    show "$log" 60 "$folder does not configure:"
    return 1
}

# build_targets FOLDER TARGET...: all of them when none is named.
build_targets()
{
    local folder=$1 log=$1/build.log
    shift
    cmake --build "$folder" --parallel "$jobs" ${1:+--target "$@"} \
        >>"$log" 2>&1 </dev/null && return
    show "$log" 60 "$folder does not build:"
    return 1
}

# run_suites STEP FOLDER BEGAN CTEST-ARGUMENT...: runs suites of a built folder and records the
# step, which began at second BEGAN. ctest puts a number before each line that a suite printed; its own
# lines have none.
run_suites()
{
    local step=$1 folder=$2 began=$3 log=$2/tests.log status=0 passed failed skipped numbers number
    shift 3
    XDG_CACHE_HOME=$scratch/cache XDG_CONFIG_HOME=$scratch/config \
        "${runner[@]}" ctest --test-dir "$folder" -V --parallel "$jobs" --no-tests=error \
        "$@" >"$log" 2>&1 </dev/null || status=$?
    read -r passed failed skipped numbers < <(awk '
        /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / {
            if (/ Passed +[0-9.]+ sec/) passed++
            else if (/\*\*\*(Skipped|Not Run \(Disabled\))/) skipped++
            else { failed++; sub(/^[^#]*#/, ""); sub(/:.*/, ""); numbers = numbers " " $0 }
        }
        END { print passed + 0, failed + 0, skipped + 0 numbers }' "$log")
    mapfile -t -O "${#slow[@]}" slow < <(sed -n \
        "s/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) .* \([0-9.]*\) sec.*/\2 $step \1/p" "$log")
    for number in $numbers; do
        grep "^ *[0-9]*/[0-9]* Test *#$number:" "$log"
        grep "^$number: " "$log" | tail -n 60
    done
    sed -n "s/^[0-9]*: \(skipped: .*\)/$step: \1/p" "$log" | sort -u
    if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
        show "$log" 20 "$step: ctest itself failed:"
        failed=1
    fi
    record "$step" "$passed" "$failed" "$skipped" $((SECONDS - began))
}
