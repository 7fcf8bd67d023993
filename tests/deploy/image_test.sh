#!/bin/bash
# Builds the container's image by its recipe, and trains in it with a mounted volume of data, as docs/deploy.md says:
# the accuracy is that of any other run, the checkpoint is outside, owned by the image's user, and loads there. The
# recipe's base images are made here by debootstrap, so no registry of images is needed. As root, with podman, runc and
# debootstrap; 6 minutes and 3 GB of disk.
#   tests/deploy/image_test.sh [SOURCE]
set -euo pipefail
source=$(cd "${1:-$(dirname "$0")/../..}" && pwd)
work=$(mktemp -d)
fail() { echo "image_test: $*" >&2; exit 1; }
for tool in podman runc debootstrap; do
    command -v $tool >/dev/null || fail "there is no $tool"
done
# A storage of its own, which leaves the machine's images alone; and no more than what any host lets root do.
export STORAGE_DRIVER=vfs CONTAINERS_CONF=$work/containers.conf
printf '[containers]\ndefault_ulimits = ["nofile=1024:4096", "nproc=1024:1024"]\nnetns = "host"\n[engine]\ncgroup_manager = "cgroupfs"\n' >"$CONTAINERS_CONF"
pod() { podman --root "$work/storage" --runroot "$work/run" --runtime runc "$@"; }
trap 'pod rmi --all --force >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

debootstrap --variant=minbase bookworm "$work/base" >"$work/log" || fail "debootstrap: $(tail -n 3 "$work/log")"
tar -C "$work/base" -cf "$work/base.tar" .
for tag in 12 12-slim; do
    pod import "$work/base.tar" docker.io/library/debian:$tag >"$work/log" 2>&1 || fail "podman import: $(tail -n 3 "$work/log")"
done
git clone -q "$source" "$work/source"
pod build -t gyre -f "$work/source/packaging/container/Containerfile" "$work/source" >"$work/log" 2>&1 || fail "podman build: $(tail -n 20 "$work/log")"

mkdir "$work/data" "$work/out"
zcat "$source/nn/data/digits.csv.gz" >"$work/data/train.csv"
chown 1000 "$work/out"
pod run --rm -v "$work/data:/data:ro" -v "$work/out:/out" gyre -n 4 gyre-train --data csv:/data/train.csv --checkpoint /out/model.safetensors |
    tee "$work/log" | tail -n 1
accuracy=$(sed -nE 's/^test accuracy ([0-9.]+) %.*/\1/p' "$work/log")
awk "BEGIN {exit !(${accuracy:-0} >= 95)}" || fail "an accuracy of ${accuracy:-nothing}"
[ "$(stat -c %u "$work/out/model.safetensors")" = 1000 ] || fail "the checkpoint is not there, or not the user's"
pod run --rm -v "$work/data:/data:ro" -v "$work/out:/out" gyre -n 1 gyre-train --quiet --data csv:/data/train.csv --resume /out/model.safetensors |
    grep -q "^test accuracy $accuracy %" || fail "the checkpoint does not load to the same model"
echo "an image built by the recipe trains with a mounted volume: $accuracy %"
