#!/bin/bash
# readme_test.sh README.md sum.c: the program that the README shows is the example, and every example is in its list.
set -euo pipefail
diff <(sed -n '/^```c$/,/^```$/{/^```/!p}' "$1") "$2"
for example in "$(dirname "$2")"/*.{c,py}; do
    grep -qF "(examples/$(basename "$example"))" "$1" || { echo "readme_test.sh: $1 does not mention $example" >&2; exit 1; }
done
