#!/bin/bash
# package_test.sh SOURCE PACKAGES: installs the Debian packages in a root of their own, uses them there, and removes
# them again.
#
# dpkg does all of it, with this system's list of installed packages copied into the root: so it checks every dependency
# against what is really here, and changes nothing outside. A package whose dependency is missing must be refused.
set -euo pipefail
source=$1 packages=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
fail() { echo "package_test: $*" >&2; exit 1; }
root=$place/root

fresh_root() {
    rm -rf "$root"
    mkdir -p "$root/var/lib/dpkg/"{info,updates,triggers}
    cp /var/lib/dpkg/status /var/lib/dpkg/arch "$root/var/lib/dpkg/" 2>/dev/null || cp /var/lib/dpkg/status "$root/var/lib/dpkg/"
    : >"$root/var/lib/dpkg/diversions"
    # An earlier gyre of this machine is not there.
    sed -i '/^Package: \(libgyre\|gyre-tools\|gyre-mpi\)/,/^$/d' "$root/var/lib/dpkg/status"
}
# The loader's cache is this system's: the packages' scripts shall not touch it.
mkdir "$place/bin" && printf '#!/bin/sh\n' >"$place/bin/ldconfig" && chmod +x "$place/bin/ldconfig"
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(fakeroot)
in_root() { PATH=$place/bin:$PATH "${as_root[@]}" dpkg --root="$root" --force-not-root --force-script-chrootless --no-triggers --log=/dev/null \
    "$@" >"$place/log" 2>&1; }
package() { compgen -G "$packages/${1}_*.deb" | head -n 1; }

version=$(sed -n 's/^project(gyre VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
abi=$(sed -n 's/^set(GYRE_SOVERSION \([0-9]*\)).*/\1/p' "$source/CMakeLists.txt")
names=("libgyre$abi" "libgyre-nn$abi" libgyre-dev gyre-tools)
for library in openmpi mpich; do
    [ -z "$(package "gyre-mpi-$library")" ] || names+=("gyre-mpi-$library")
done
[ -z "$(package "libgyre-cuda$abi")" ] || names+=("libgyre-cuda$abi")
files=()
for name in "${names[@]}"; do
    file=$(package "$name") || true
    [ -n "$file" ] || fail "there is no package $name in $packages"
    files+=("$file")
    [ "$(dpkg-deb -f "$file" Version)" = "$version-1" ] || fail "$name has version $(dpkg-deb -f "$file" Version), expected $version-1"
done

# What each must depend on. The libraries' own dependencies were found by dpkg-shlibdeps.
depends() { dpkg-deb -f "$(package "$1")" Depends; }
for need in libc6 libhwloc15 libsodium23 libxxhash0; do
    [[ $(depends "libgyre$abi") == *"$need "* ]] || fail "libgyre$abi does not depend on $need: $(depends "libgyre$abi")"
done
for name in "libgyre-nn$abi" libgyre-dev gyre-tools; do
    [[ $(depends "$name") == *"libgyre$abi (= $version-1)"* ]] || fail "$name does not depend on libgyre$abi: $(depends "$name")"
done
[[ $(depends "libgyre-nn$abi") == *openblas* || $(depends "libgyre-nn$abi") == *libblas* ]] || fail "libgyre-nn$abi does not depend on a BLAS"

fresh_root
! in_root --install "$(package gyre-tools)" || fail "gyre-tools can be installed without libgyre$abi"
grep -q "libgyre$abi" "$place/log" || { cat "$place/log"; fail "the refusal of gyre-tools does not name libgyre$abi"; }

fresh_root
in_root --install "${files[@]}" || { cat "$place/log"; fail "dpkg could not install the packages"; }
for name in "${names[@]}"; do
    [ "$(dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${db:Status-Status}' "$name")" = installed ] || fail "$name is not installed"
done

library=$(dirname "$(find "$root/usr/lib" -name "libgyre.so.$abi")")
export LD_LIBRARY_PATH=$library PKG_CONFIG_PATH=$library/pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs gyre-nn gyre)"
cc -std=c11 -Wall -Wextra -Werror "$source/tests/install/consumer/consumer.c" "${flags[@]}" -o "$place/consumer" || fail "no consumer builds with libgyre-dev"
[ "$("$place/consumer")" = "gyre $version" ] || fail "the consumer of libgyre-dev failed"
objdump -p "$place/consumer" | grep -q "NEEDED *libgyre.so.$abi$" || fail "the consumer does not need libgyre.so.$abi"
! objdump -p "$library/libgyre.so.$abi" | grep -qE 'RPATH|RUNPATH' || fail "the packaged library has a search path of its own"
cmake -S "$source/tests/install/consumer" -B "$place/by_cmake" -DCMAKE_PREFIX_PATH="$root/usr" >"$place/log" 2>&1 &&
    cmake --build "$place/by_cmake" >>"$place/log" 2>&1 || { cat "$place/log"; fail "the consumer does not build with find_package(gyre)"; }
sed -n '/^```c$/,/^```$/{/^```/!p}' "$source/README.md" >"$place/sum.c"
cc -std=c11 "$place/sum.c" "${flags[@]}" -o "$place/sum" || fail "the program of README.md does not build"
sums=$(timeout 60 "$root/usr/bin/gyre-run" -n 4 "$place/sum" | sort | tr '\n' ';')
[ "$sums" = "$(for rank in 0 1 2 3; do printf 'rank %d of 4: 6 10 14 18;' $rank; done)" ] || fail "the program of README.md says: $sums"
for program in gyre-run gyre-info gyre-top gyre-train gyre-perf gyre-tune; do
    "$root/usr/bin/$program" --version | grep -qF "$version" || fail "the packaged $program does not say version $version"
done
folder=$library
for library in openmpi mpich; do
    [[ " ${names[*]} " == *" gyre-mpi-$library "* ]] || continue
    ! objdump -p "$folder/libgyre-mpi-$library.so" | grep -q 'NEEDED *libgyre' || fail "gyre-mpi-$library needs libgyre, which it holds"
    [[ $(depends "gyre-mpi-$library") == *"lib$library"* ]] || fail "gyre-mpi-$library does not depend on its MPI library"
done
if [[ " ${names[*]} " == *" libgyre-cuda$abi "* ]]; then
    "$root/usr/bin/gyre-info" | grep -q "^GPU kernels: .*/libgyre-cuda.so.$abi, version" || fail "gyre-info does not find the packaged GPU kernels"
fi
for page in man1/gyre-run.1 man3/gyre_all_reduce.3 man3/gyre_nn_train.3 man7/gyre-environment.7; do
    gzip -t "$root/usr/share/man/$page.gz" || fail "there is no manual page $page"
done

# Only the two runtimes, for a program that was built elsewhere.
in_root --remove gyre-tools libgyre-dev || { cat "$place/log"; fail "dpkg could not remove gyre-tools and libgyre-dev"; }
[ "$("$place/consumer")" = "gyre $version" ] || fail "a program does not run with libgyre$abi alone"
! in_root --remove "libgyre$abi" || fail "libgyre$abi can be removed while libgyre-nn$abi needs it"
in_root --purge "${names[@]}" || { cat "$place/log"; fail "dpkg could not remove the packages"; }
left=$(find "$root/usr" ! -type d 2>/dev/null || true)
[ -z "$left" ] || fail "removed packages left behind: $left"
echo "packages installed, used and removed: ${names[*]}, $version-1"
