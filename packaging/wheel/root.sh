#!/bin/bash
# root.sh ROOT PYTHON: makes in the folder ROOT a file system that holds an interpreter, its standard library, a shell,
# and the libraries that the manylinux standard expects of every system. It holds no compiler, no header, and none of
# the libraries that gyre is linked with.
set -euo pipefail
root=$1 python=$2

mkdir -p "$root"/{bin,tmp,proc,sys,dev,etc}
chmod 1777 "$root/tmp"
read -r program library platform < <("$python" -c 'import os, sys, sysconfig
print(os.path.realpath(sys.executable), sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))')

# Every file keeps its path, because the interpreter finds its library by its own.
tar -C / -cf - --exclude=site-packages --exclude=dist-packages --exclude=test --exclude=tests --exclude='config-*' --exclude=__pycache__ --exclude=idlelib \
    --exclude=ensurepip --exclude='_tkinter*' \
    "${program#/}" "${library#/}" "${platform#/}" | tar -C "$root" -xf -
cp -L "$(command -v sh)" "$root/bin/sh"
ln -s "$program" "$root/bin/python3"

libraries=$(ldd "$program" | sed -n 's/.*libc\.so\.6 => \(.*\)\/libc\.so\.6 .*/\1/p')
{
    ldd "$program" "$root/bin/sh" "$platform"/lib-dynload/*.so 2>/dev/null |
        sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\) .*/\1/p'
    for name in libm.so.6 libdl.so.2 librt.so.1 libpthread.so.0 libgcc_s.so.1 libstdc++.so.6; do
        for folder in "$libraries" "/usr$libraries"; do
            [ ! -e "$folder/$name" ] || echo "$folder/$name"
        done
    done
} | sort -u | while read -r file; do
    [ -e "$root$file" ] || cp -L --parents "$file" "$root"
done
