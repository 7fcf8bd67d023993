#!/bin/bash
# check.sh WHEEL PYTHON PIP: installs the wheel into a fresh virtual environment and runs its programs, 4 ranks among
# them, in a root of its own (root.sh) without compiler and without network. PIP is the folder of the package pip that
# installs it. It needs the right to make a root: that of the superuser, or user namespaces.
set -euo pipefail
wheel=$1 python=$2 pip=$3
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
root=$place/root

"$here/root.sh" "$root" "$python"
for program in cc gcc g++ clang ld as make cmake; do
    [ -z "$(find "$root" -name "$program")" ] || { echo "check.sh: the root has $program" >&2; exit 1; }
done
cp "$here/ranks.py" "$wheel" "$root/tmp"
cp -r "$pip" "$root/tmp/pip"

cat >"$root/tmp/inside" <<'EOF'
set -eu
cd /tmp
/bin/python3 -m venv --without-pip /tmp/venv
PYTHONPATH=/tmp /tmp/venv/bin/python -m pip install --quiet --no-index --no-cache-dir ./*.whl
PATH=/tmp/venv/bin
gyre-run -n 4 python ranks.py
for program in run perf info top train; do
    "gyre-$program" --help >help.txt
done
gyre-info >info.txt
gyre-perf all_reduce --ranks 2 --max 1024 >perf.txt
python -c 'import sys; sys.exit(not any("1024" in line for line in open("perf.txt")))'
EOF
enter='for folder in proc sys dev; do mount --rbind "/$folder" "$0/$folder"; done; exec chroot "$0" /bin/sh /tmp/inside'
spaces=(--mount --net)
[ "$(id -u)" -eq 0 ] || spaces+=(--map-root-user)
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp timeout 120 unshare "${spaces[@]}" sh -ec "ip link set lo up; $enter" "$root"
echo "check.sh: 4 ranks and the programs ran in a root without compiler: $(basename "$wheel")"
