#!/bin/bash
# Every script of perf/ and scripts/ that a person starts, and .ci/run, says with --help what it is and how it is
# called, from any folder, and starts nothing. Usage: help_test.sh ROOT
set -u
cd "$1" || exit 1
failures=0 count=0
while IFS= read -r script; do
    text=$(cd /tmp && timeout 20 "$1/$script" --help 2>&1 </dev/null)
    status=$?
    count=$((count + 1))
    if [ $status != 0 ] || ! grep -Eq "(usage: .*|^ *|: )[a-z./]*${script##*/}[ ,]" <<<"$text"; then
        echo "FAILED: $script --help: status $status: $text"
        failures=$((failures + 1))
    fi
done < <(find perf scripts .ci/run -type f -perm -u+x ! -name '*.py' ! -path '*/__pycache__/*' | sort)
[ $count -ge 24 ] || { echo "FAILED: only $count scripts"; failures=$((failures + 1)); }
echo "$count scripts"
[ $failures = 0 ]
