#!/bin/bash
# run_test.sh EXPECTED COMMAND...: the command succeeds, and its lines, sorted, are those of the file.
set -euo pipefail
export LC_ALL=C
expected=$1
shift
output=$("$@") || { echo "$output"; echo "run_test.sh: $* failed" >&2; exit 1; }
diff <(sort <<<"$output") <(sort "$expected") || { echo "run_test.sh: $* printed something else (left)" >&2; exit 1; }
