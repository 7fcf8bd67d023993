#!/bin/bash
# Places where ranks cannot meet, and what they say: a port that something else holds, a host name that means the host
# itself, an interface that is down.
#   places_test.sh RANKS port|name|interface
set -euo pipefail
program=$1 what=$2
folder=$(mktemp -d /tmp/gyre-places-XXXXXX)
listener=
trap '[ -z "$listener" ] || kill "$listener" 2>/dev/null || true; rm -rf "$folder"' EXIT
export GYRE_SECRET=a-secret-of-the-tests-0123456789 GYRE_MEET_TIMEOUT=2 GYRE_LOG=error WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=24999
unset GYRE_ADDRESS GYRE_INTERFACE GYRE_LAUNCHER RANK

says() { # RANK WORDS: the rank fails, and its error message has the words
    local said
    if said=$(RANK=$1 timeout 60 "$program" 2>&1); then
        echo "rank $1 met somebody" >&2
        return 1
    fi
    [[ $said == *"$2"* ]] || { echo "rank $1 said \"$said\" instead of \"$2\"" >&2; return 1; }
}

listen() { # ANSWER: a program that is not gyre, at a port of its own; MASTER_PORT is that
    [ -z "$listener" ] || kill "$listener"
    rm -f "$folder/port"
    python3 -c '
import os, socket, sys
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen(16)
with open(sys.argv[1] + "~", "w") as file:
    file.write(str(server.getsockname()[1]))
os.rename(sys.argv[1] + "~", sys.argv[1])
kept = []
while True:
    visitor, _ = server.accept()
    if sys.argv[2] == "close":
        visitor.close()
        continue
    visitor.sendall(sys.argv[2].encode())
    kept.append(visitor)
' "$folder/port" "$1" &
    listener=$!
    for _ in $(seq 300); do [ -e "$folder/port" ] && break || sleep 0.1; done
    MASTER_PORT=$(cat "$folder/port")
}

port() { # left over, or another job's: rank 0 cannot have it, and the others find another process there
    listen ""
    says 0 "rank 0 cannot listen at tcp://127.0.0.1:$MASTER_PORT (MASTER_ADDR and MASTER_PORT): the address is in use, by another rank 0 or another program"
    says 1 "tcp://127.0.0.1:$MASTER_PORT: a process accepts connections there and does not answer as gyre does; is it another program?"
    listen $'HTTP/1.1 400 Bad Request\r\nServer: not gyre, but a program that answers at some length\r\n\r\n'
    GYRE_MEET_TIMEOUT=50 says 1 "refused: does not speak gyre; is it another program? set GYRE_ADDRESS or MASTER_PORT to a free port on every rank"
    listen close
    says 1 "could not reach rank 0 at tcp://127.0.0.1:$MASTER_PORT"
}

name() { # Debian gives the host's own name 127.0.1.1: to the others it would be themselves
    unshare -rm true 2>/dev/null || { echo "no user and mount namespaces here" >&2; exit 77; }
    printf '127.0.1.1 host-of-rank-0\n127.0.0.1 localhost\n' >"$folder/hosts"
    export MASTER_ADDR=host-of-rank-0
    export -f says
    export program folder
    unshare -rm bash -euc '
        mount --bind "$folder/hosts" /etc/hosts
        says 1 "host-of-rank-0 is 127.0.1.1 here, which is this host itself: give it its address in /etc/hosts, or set MASTER_ADDR or GYRE_ADDRESS to a number"
        MASTER_ADDR=no-such-host.invalid says 1 "rank 1: the meeting address \"no-such-host.invalid\" cannot be resolved"'
}

interface() {
    GYRE_INTERFACE=nosuch0 says 1 "GYRE_INTERFACE=nosuch0: no such interface, or it is down or has no address"
    GYRE_INTERFACE=lo,nosuch1 says 1 "GYRE_INTERFACE=nosuch1: no such interface, or it is down or has no address"
    GYRE_INTERFACE=lo,127.0.0.1 says 1 "GYRE_INTERFACE=lo,127.0.0.1: lo and 127.0.0.1 are the same interface; name each one once"
    GYRE_INTERFACE=lo,,lo says 1 "GYRE_INTERFACE=lo,,lo is invalid: it must be one to four names or addresses between commas"
    GYRE_INTERFACE=a,b,c,d,e says 1 "GYRE_INTERFACE=a,b,c,d,e is invalid"
    unshare -rn true 2>/dev/null || { echo "no user and network namespaces here" >&2; exit 77; }
    export -f says
    export program
    unshare -rn bash -euc '
        GYRE_INTERFACE=lo says 1 "GYRE_INTERFACE=lo: no such interface, or it is down or has no address"
        says 1 "no route to the meeting address 127.0.0.1:24999: is an interface down? GYRE_INTERFACE chooses one"'
}

"$what"
