#!/bin/bash
# Explores the models of this folder with spin: every state, and that each defect which is put in is found.
# Needs spin and a C compiler. GYRE_MODELS_FULL=1: larger ones, too, of up to 19 million states. Usage: check.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'wait; rm -rf "$scratch"' EXIT
cd "$scratch"

# MODEL SETTINGS OPTIMISATION: leaves spin's summary in pan.log; true if all states were seen and none is wrong.
explore()
{
    # shellcheck disable=SC2086 # settings are several words
    spin $2 -a "$here/$1.pml" >spin.log 2>&1 || { cat spin.log; exit 1; }
    cc "$3" -w -DSAFETY -DCOLLAPSE -DMEMLIM=3000 -o pan pan.c
    ./pan -m1000000 >pan.log 2>&1 || true
    grep -q 'States\|states, stored' pan.log && ! grep -q 'Search not completed\|out of memory\|max search depth too small' pan.log &&
        grep -q 'errors: 0' pan.log
}

is_right()
{
    explore "$1" "$2" -O2 || { echo "wrong: $1 $2"; cat pan.log; exit 1; }
    echo "$1 $2: $(awk '/states, stored/ {print $1}' pan.log) states, all right"
}

is_wrong()
{
    if explore "$1" "$2" -O0; then echo "not found: $1 $2"; exit 1; fi
    grep -q 'errors: 1' pan.log || { cat pan.log; exit 1; }
    echo "$1 $2: found ($(grep -o 'assertion violated\|invalid end state' pan.log | head -n 1))"
}

# As many at a time as there are cores, each in a folder of its own; the first that fails ends it.
begun=0 under_way=0 cores=$(nproc)
end_one() { wait -n; under_way=$((under_way - 1)); }
begin() # is_right|is_wrong MODEL SETTINGS
{
    [ "$under_way" -lt "$cores" ] || end_one
    begun=$((begun + 1)) under_way=$((under_way + 1))
    mkdir "$begun"
    (cd "$begun" && trap - EXIT && "$@") &
}
right() { begin is_right "$@"; }
wrong() { begin is_wrong "$@"; }

right agreement "-DN=2 -DDEATHS=1"
right agreement "-DN=3 -DDEATHS=2"
right agreement "-DN=4 -DDEATHS=2"
right agreement "-DN=3 -DDEATHS=1 -DDOUBTS=1"
right agreement "-DN=4 -DDEATHS=0 -DDOUBTS=1"
right agreement "-DN=3 -DDEATHS=1 -DCUT=1"
right agreement "-DN=3 -DDEATHS=1 -DCUT=3"
right agreement "-DN=4 -DDEATHS=0 -DCUT=1"
right agreement "-DN=3 -DDEATHS=1 -DQUITS=1"
right agreement "-DN=4 -DDEATHS=0 -DQUITS=1"
right agreement "-DN=3 -DDEATHS=0 -DQUITS=2 -DTOLD -DUNASKED"
if [ -n "${GYRE_MODELS_FULL:-}" ]; then # minutes each
    right agreement "-DN=4 -DDEATHS=0 -DCUT=3"
    right agreement "-DN=4 -DDEATHS=1 -DDOUBTS=1"
    right agreement "-DN=4 -DDEATHS=1 -DQUITS=1"
    right agreement "-DN=3 -DDEATHS=1 -DDOUBTS=1 -DQUITS=1"
fi

wrong agreement "-DN=3 -DDEATHS=2 -DONE_PHASE"
wrong agreement "-DN=3 -DDEATHS=1 -DDOUBTS=1 -DUNPROMISED"
wrong agreement "-DN=4 -DDEATHS=0 -DCUT=3 -DHALF"
wrong agreement "-DN=3 -DDEATHS=0 -DCUT=1 -DALWAYS"
wrong agreement "-DN=3 -DDEATHS=1 -DSILENT"
wrong agreement "-DN=3 -DDEATHS=0 -DQUITS=1 -DUNASKED"
wrong agreement "-DN=3 -DDEATHS=0 -DQUITS=1 -DMUTE"
wrong agreement "-DN=3 -DDEATHS=0 -DQUITS=1 -DUNASKED -DTOLD -DUNKEPT"

right uniform "-DN=4 -DDEATHS=2"
right uniform "-DN=3 -DDEATHS=1 -DLEAVES=1 -DDOUBTS=1"
right uniform "-DN=4 -DOPS=1 -DDEATHS=1 -DLINKS=1"
right uniform "-DN=3 -DOPS=1 -DDEATHS=1 -DLEAVES=1 -DLINKS=1"
if [ -n "${GYRE_MODELS_FULL:-}" ]; then
    right uniform "-DN=4 -DDEATHS=2 -DLEAVES=1"
    right uniform "-DN=3 -DDEATHS=2 -DLINKS=1"
    right uniform "-DN=4 -DOPS=1 -DDEATHS=2 -DLINKS=1"
fi

wrong uniform "-DN=3 -DUNCONFIRMED"
wrong uniform "-DN=3 -DMAXIMUM"
wrong uniform "-DN=3 -DTHAWED"
wrong uniform "-DN=3 -DGAPS"
wrong uniform "-DN=3 -DUNCALLED"
wrong uniform "-DN=4 -DOPS=1 -DLINKS=1 -DOWN"
wrong uniform "-DN=3 -DOPS=1 -DDEATHS=0 -DLINKS=1 -DHASTY"

right grow "-DN=3 -DNEWS=1 -DDEATHS=1 -DDOUBTS=1"
right grow "-DN=3 -DNEWS=2 -DDEATHS=2"
right grow "-DN=4 -DNEWS=1 -DDEATHS=2"
if [ -n "${GYRE_MODELS_FULL:-}" ]; then
    right grow "-DN=3 -DNEWS=1 -DDEATHS=2 -DDOUBTS=1"
    right grow "-DN=4 -DNEWS=1 -DDEATHS=1 -DDOUBTS=1"
    right grow "-DN=3 -DNEWS=2 -DDEATHS=1 -DDOUBTS=1"
fi

wrong grow "-DN=3 -DHASTY"
wrong grow "-DN=3 -DEARLY"
wrong grow "-DN=3 -DUNHEARD"
wrong grow "-DN=3 -DDOUBTS=1 -DUNHOSTED"
wrong grow "-DN=3 -DBLIND"
wrong grow "-DN=3 -DKEPT"
wrong grow "-DN=3 -DDOUBTS=1 -DPATIENT"

right exchange "-DN=2 -DAHEAD=2"
right exchange "-DN=3 -DAHEAD=1 -DEXCHANGES=4"
if [ -n "${GYRE_MODELS_FULL:-}" ]; then
    right exchange "-DN=2 -DAHEAD=3 -DEXCHANGES=8"
fi

wrong exchange "-DN=2 -DSHORT"
wrong exchange "-DN=2 -DEAGER"
wrong exchange "-DN=2 -DTOGETHER"
wrong exchange "-DN=2 -DUNSEEN"
wrong exchange "-DN=2 -DLONGER"

right credits "-DOPS=2"
right credits "-DOPS=3 -DFRAMES=1"
right credits "-DOPS=1 -DLANES=2 -DBIG=1 -DBATCH=2 -DCREDITS=4"

wrong credits "-DOPS=2 -DOLDEST=3"
wrong credits "-DOPS=2 -DSELFISH"
wrong credits "-DOPS=1 -DFRAMES=6 -DSILENT"
wrong credits "-DOPS=1 -DLANES=2 -DCREDITS=4"

right silent "-DCHUNKS=4 -DSLEEPS=3"

wrong silent "-DLATE"
wrong silent "-DUNREAD"
wrong silent "-DAHEAD"
wrong silent "-DUNSEEN"

while [ "$under_way" -gt 0 ]; do end_one; done
