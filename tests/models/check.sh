#!/bin/bash
# Explores the models of this folder with spin: every state, and that each defect which is put in is found.
# Needs spin and a C compiler. GYRE_MODELS_FULL=1: larger ones, too, of up to 16 million states. Usage: check.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# SETTINGS: prints spin's summary; true if all states were seen and none is wrong.
explore()
{
    rm -f pan* ./*.trail
    # shellcheck disable=SC2086 # settings are several words
    spin $1 -a "$here/council.pml" >spin.log 2>&1 || { cat spin.log; exit 1; }
    cc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=3000 -o pan pan.c
    ./pan -m1000000 >pan.log 2>&1 || true
    grep -q 'States\|states, stored' pan.log && ! grep -q 'Search not completed\|out of memory\|max search depth too small' pan.log &&
        grep -q 'errors: 0' pan.log
}

right()
{
    explore "$1" || { echo "wrong: $1"; cat pan.log; exit 1; }
    echo "$1: $(awk '/states, stored/ {print $1}' pan.log) states, all right"
}

wrong()
{
    if explore "$1"; then echo "not found: $1"; exit 1; fi
    grep -q 'errors: 1' pan.log || { cat pan.log; exit 1; }
    echo "$1: found ($(grep -o 'assertion violated\|invalid end state' pan.log | head -n 1))"
}

right "-DN=2 -DDEATHS=1"
right "-DN=3 -DDEATHS=2"
right "-DN=4 -DDEATHS=2"
right "-DN=3 -DDEATHS=1 -DDOUBTS=1"
right "-DN=4 -DDEATHS=0 -DDOUBTS=1"
right "-DN=3 -DDEATHS=1 -DCUT=1"
right "-DN=3 -DDEATHS=1 -DCUT=3"
right "-DN=4 -DDEATHS=0 -DCUT=1"
if [ -n "${GYRE_MODELS_FULL:-}" ]; then # minutes each
    right "-DN=4 -DDEATHS=0 -DCUT=3"
    right "-DN=4 -DDEATHS=1 -DDOUBTS=1"
fi

wrong "-DN=3 -DDEATHS=2 -DONE_PHASE"
wrong "-DN=3 -DDEATHS=1 -DDOUBTS=1 -DUNPROMISED"
wrong "-DN=4 -DDEATHS=0 -DCUT=3 -DHALF"
wrong "-DN=3 -DDEATHS=0 -DCUT=1 -DALWAYS"
wrong "-DN=3 -DDEATHS=1 -DSILENT"
