#!/bin/bash
# Checks the manifests of packaging/kubernetes against the schemas that the package index has (published_test.py), in a
# virtual environment in build/published that is kept. Exit status 77: no package index can be reached.
#   tests/deploy/published_test.sh [CRD...]
# CRD: definitions of resources, as the controllers' repositories have them.
set -euo pipefail
definitions=()
for file; do definitions+=("$(realpath "$file")"); done
cd "$(dirname "$0")/../.."
env=$PWD/build/published log=$PWD/build/published.log
packages=(kubernetes-validate==1.37.* kubeflow-training==1.9.* kubeflow-trainer-api==2.* jsonschema PyYAML)
mkdir -p build
if [ "$(cat "$env/made" 2>/dev/null || true)" != "${packages[*]}" ]; then
    python3 -m venv --clear "$env" >"$log" 2>&1 || { cat "$log"; echo "published_test.sh: python3 has no venv (package python3-venv)" >&2; exit 1; }
    "$env/bin/pip" install --quiet --retries 1 --timeout 15 PyYAML >>"$log" 2>&1 || { echo "skipped: published schemas, as no package index can be reached (build/published.log)"; exit 77; }
    "$env/bin/pip" install --quiet "${packages[@]}" >>"$log" 2>&1 || { tail -n 20 "$log"; echo "published_test.sh: pip could not install ${packages[*]}" >&2; exit 1; }
    echo "${packages[*]}" >"$env/made"
fi
"$env/bin/python" tests/deploy/published_test.py . "${definitions[@]}"
