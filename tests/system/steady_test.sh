#!/bin/bash
# A 4-byte all_reduce between two ranks on two cores makes no system call: one clean run of 1,000 calls out of fifty
# tries is asked for, since another process may take a core away during some of them. A path that makes a system call
# per call fails every time. Usage: steady_test.sh GYRE-RUN STEADY-TEST
set -u
if [ "$(nproc)" -lt 2 ]; then
    echo "skipped: two usable cores are needed"
    exit 77
fi
for try in $(seq 50); do
    GYRE_TRANSPORT=shm timeout 20 "$1" -n 2 "$2" calls
    status=$?
    case $status in
    0) echo "no system call, try $try"; exit 0 ;;
    77) exit 77 ;;
    3) ;; # a system call: named above
    *) exit 1 ;;
    esac
done
echo "every try made a system call"
exit 1
