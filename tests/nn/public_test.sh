#!/bin/bash
# A strategy is something that a user could have written: those of the library call nothing of it that is not public,
# and are a file each behind the table. Usage: public_test.sh NM SOURCE OBJECT...
set -u
nm=$1 source=$2 failures=0
shift 2
objects=()
for object in "$@"; do
    case $object in
    */strategies/*) objects+=("$object") ;;
    esac
done
if [ "${#objects[@]}" -lt 13 ]; then
    echo "FAILED: only ${#objects[@]} objects of strategies"
    exit 1
fi
defined=$("$nm" -g --defined-only "${objects[@]}" | awk 'NF == 3 { print $3 }' | sort -u)
called=$("$nm" -u "${objects[@]}" | awk '$1 == "U" && $2 ~ /^gy_/ { print $2 }' | sort -u)
hidden=$(comm -13 <(echo "$defined") <(echo "$called"))
if [ -n "$hidden" ]; then
    echo "FAILED: strategies use what is not public: $hidden"
    failures=1
fi
[ -n "$called" ] || { # they share files of their own, which must be seen
    echo "FAILED: no symbol was read"
    failures=1
}
others=$(grep -hE '^#include "' "$source"/nn/strategies/*.[ch] | grep -vE '"strategies/' | sort -u)
if [ -n "$others" ]; then
    echo "FAILED: strategies include what is not public: $others"
    failures=1
fi
while read -r name; do
    [ -f "$source/nn/strategies/$name.c" ] || {
        echo "FAILED: the strategy $name has no file"
        failures=1
    }
done < <(grep -oE '&gy_nn_[a-z]+' "$source/nn/run/strategy_registry.c" | sed 's/&gy_nn_//')
exit $failures
