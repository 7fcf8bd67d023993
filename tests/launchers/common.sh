# Shared by the scripts of this folder, which are sourced by `run` with the build folder in $build.
ranks=$build/tests/launchers/launcher_ranks
all_reduce=$build/examples/example_all_reduce
perf=$build/perf/gyre-perf

fail() { # SENTENCE
    echo "$1" >&2
    return 1
}

# Runs a command that starts 4 ranks of a program that meets twice.
meets() { # NAME COMMAND... : the program and its arguments are put behind it
    local name=$1 said
    shift
    echo "-- $name"
    said=$(timeout 60 "$@" "$ranks" 4 2>&1) || { fail "$name: two worlds failed: $said"; return 1; }
    [ "$(grep -cxE 'rank [0-3] of 4: two worlds' <<<"$said")" -eq 4 ] || { fail "$name: two worlds printed: $said"; return 1; }
}

# The same, and with two other programs: the example's output is what it should be, and gyre-perf finds no wrong
# element.
four_ranks() { # NAME COMMAND...
    local name=$1 said
    meets "$@"
    shift
    said=$(timeout 60 "$@" "$all_reduce" 2>"$folder/err") || { cat "$folder/err"; fail "$name: all_reduce failed: $said"; return 1; }
    [ "$(grep -cxE 'rank [0-3] of 4: 6 10 14 18' <<<"$said")" -eq 4 ] && [ "$(sort -u <<<"$said" | wc -l)" -eq 4 ] ||
        { cat "$folder/err"; fail "$name: all_reduce printed: $said"; return 1; }
    said=$(timeout 60 "$@" "$perf" all_reduce -b 4 -e 16k -f 64 -n 5 -w 1 2>&1) || { fail "$name: gyre-perf failed: $said"; return 1; }
    [[ $said == *"ranks 4"* ]] && awk '$1 ~ /^[0-9]+$/ && NF == 13 { rows++; wrong += $9 + $13 } END { exit !(rows == 3 && wrong == 0) }' <<<"$said" ||
        { fail "$name: gyre-perf found wrong elements, or too few sizes: $said"; return 1; }
}

# Runs a command that must fail, and its output has the words.
refused() { # NAME WORDS COMMAND...
    local name=$1 words=$2 said
    shift 2
    echo "-- $name"
    if said=$(timeout 60 "$@" 2>&1); then
        fail "$name: it succeeded: $said"
    else
        [[ $said == *"$words"* ]] || fail "$name: it said \"$said\", without \"$words\""
    fi
}
