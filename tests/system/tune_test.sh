#!/bin/bash
# gyre-tune's file is read by gyre, chooses for it, must be the same on every rank, and is refused when it is wrong.
#   tune_test.sh GYRE_TUNE GYRE_RUN GYRE_PERF
set -uo pipefail
tune=$1 run=$2 perf=$3
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
fail() { echo "tune_test: $1" >&2; [ -s "$place/out" ] && tail -n 5 "$place/out" >&2; exit 1; }

timeout 60 "$tune" --ranks 2 "$place/stray" >"$place/out" 2>&1
[ $? = 2 ] || fail "a stray argument does not end gyre-tune with 2"
[ "$(cat "$place/out")" = "gyre-tune: unexpected argument '$place/stray' (try gyre-tune --help)" ] || fail "a stray argument is not named"

timeout 200 "$tune" --ranks 2 -o "$place/here" >"$place/out" 2>&1 || fail "gyre-tune ended with $?"
for name in hosts ranks_per_host send_overhead receive_overhead copy reduce local_latency local_copy; do
    grep -qE "^$name = [0-9.e+-]+$" "$place/here" || fail "the file has no $name: $(cat "$place/here")"
done

# Between two hosts, and the manual page names all that the file holds.
# shellcheck disable=SC2016
timeout 200 "$run" -n 2 -- sh -c 'GYRE_HOST_ID=$RANK; export GYRE_HOST_ID; exec "$0" -o "$1"' "$tune" "$place/two" >"$place/out" 2>&1 || fail "gyre-tune of two hosts ended with $?"
for name in bandwidth latency burst; do
    grep -qE "^$name = [0-9.e+-]+$" "$place/two" || fail "the file of two hosts has no $name: $(cat "$place/two")"
done
while read -r name; do
    sed -n '/^\.SH FILES/,/^\.SH EXIT/p' "$(dirname "$0")/../../docs/man/gyre-tune.1" | grep -qw "$name" || fail "gyre-tune(1) does not say what $name is"
done < <(sed -n 's/^\([a-z_]*\) = .*/\1/p' "$place/here" "$place/two" | sort -u)

GYRE_TUNING=$place/here timeout 200 "$perf" all_reduce --ranks 3 -b 4 -e 1M -f 64 -n 3 >"$place/out" 2>&1 || fail "gyre-perf with the file ended with $?"
# On a cluster where a message costs a second and bytes nothing, and on one where it is the other way round.
choice() { # FILE
    GYRE_TRANSPORT=tcp GYRE_TUNING=$1 GYRE_SHOW_CHOICE=1 timeout 200 "$perf" all_reduce --ranks 4 -b 32k -e 32k -n 1 2>&1 |
        sed -n 's/.*all_reduce of 32768 bytes on 4 ranks: //p' | sort -u
}
printf 'hosts = 1\nsend_overhead = 500m\nreceive_overhead = 500m\n' >"$place/far"
printf 'hosts = 1\nsend_overhead = 0\nreceive_overhead = 0\nlocal_latency = 0\ncopy = 1k\n' >"$place/slow"
[ "$(choice "$place/far")" = recursive_doubling ] || fail "far apart, '$(choice "$place/far")' is chosen"
[[ "$(choice "$place/slow")" =~ ^(ring|halving_doubling|canonical)$ ]] || fail "on a slow cluster, '$(choice "$place/slow")' is chosen"

# Two hosts of two ranks: by levels where the link between them is slow, and not where all that is slow is inside.
by_host() { # FILE
    # shellcheck disable=SC2016
    GYRE_TUNING=$1 GYRE_SHOW_CHOICE=1 timeout 200 "$run" -n 4 -- sh -c 'GYRE_HOST_ID=$((RANK / 2)); export GYRE_HOST_ID; exec "$0" all_reduce -b 64k -e 64k -n 1' "$perf" 2>&1 |
        sed -n 's/.*all_reduce of 65536 bytes on 4 ranks: //p' | sort -u
}
printf 'bandwidth = 1M\n' >"$place/between"
printf 'local_latency = 100m\nlocal_copy = 1k\n' >"$place/within"
[[ "$(by_host "$place/between")" =~ ^hierarchical ]] || fail "over a slow link, '$(by_host "$place/between")' is chosen"
[[ "$(by_host "$place/within")" =~ ^(ring|halving_doubling|canonical|recursive_doubling|binary_tree)$ ]] || fail "on slow hosts, '$(by_host "$place/within")' is chosen"

echo 'latency = soon' >"$place/bad"
GYRE_TUNING=$place/bad timeout 200 "$perf" all_reduce --ranks 2 >"$place/out" 2>&1 && fail "a bad file was taken"
grep -q 'latency: "soon" is no number' "$place/out" || fail "the reason is not said"
# shellcheck disable=SC2016
GYRE_TUNING= timeout 200 "$run" -n 2 -- sh -c 'GYRE_TUNING=$1; [ "$RANK" = 1 ] && GYRE_TUNING=$2; export GYRE_TUNING; exec "$3" barrier' \
    sh "$place/far" "$place/slow" "$perf" >"$place/out" 2>&1 && fail "ranks with different files met"
grep -q GYRE_TUNING "$place/out" || fail "the setting in which the ranks differ is not named"
echo "gyre-tune: $(tr '\n' ' ' <"$place/here" | cut -d ' ' -f 12-)"
