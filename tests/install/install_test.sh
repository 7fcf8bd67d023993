#!/bin/bash
# install_test.sh SOURCE BUILD: installs BUILD aside, moves the tree, builds a consumer with pkg-config and one with
# find_package(gyre), and runs the program of README.md on four ranks.
set -euo pipefail
source=$1 build=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
fail() { echo "install_test: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$place/first" >"$place/log" || { cat "$place/log"; fail "cmake --install failed"; }
mv "$place/first" "$place/tree" # nothing installed may remember where it was
tree=$place/tree
library=$(dirname "$(find "$tree" -name 'libgyre.so' | head -n 1)")
[ -n "$library" ] || fail "libgyre.so was not installed"

export PKG_CONFIG_PATH=$library/pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs gyre)"
cc -std=c11 -Wall -Wextra -Werror "$source/tests/install/consumer/consumer.c" "${flags[@]}" -o "$place/by_pkg_config" ||
    fail "the consumer does not build with pkg-config: ${flags[*]}"
version=$(pkg-config --modversion gyre)
[ "$(LD_LIBRARY_PATH=$library "$place/by_pkg_config")" = "gyre $version" ] || fail "the consumer built with pkg-config failed"
read -ra flags <<<"$(pkg-config --cflags --libs gyre-nn)"
echo '#include <gyre/nn.h>
int main(void) { return gyre_version()[0] == 0; }' >"$place/nn.c"
cc -std=c11 -Wall -Wextra -Werror "$place/nn.c" "${flags[@]}" -o "$place/nn" || fail "no program builds with gyre-nn: ${flags[*]}"
LD_LIBRARY_PATH=$library "$place/nn" || fail "a program linked with gyre-nn does not start"

cmake -S "$source/tests/install/consumer" -B "$place/by_cmake" -DCMAKE_PREFIX_PATH="$tree" >"$place/log" 2>&1 &&
    cmake --build "$place/by_cmake" >>"$place/log" 2>&1 || { cat "$place/log"; fail "the consumer does not build with find_package(gyre)"; }
[ "$("$place/by_cmake/consumer")" = "gyre $version" ] || fail "the consumer built with find_package failed"

sed -n '/^```c$/,/^```$/{/^```/!p}' "$source/README.md" >"$place/sum.c"
read -ra flags <<<"$(pkg-config --cflags --libs gyre)"
cc -std=c11 -Wall -Wextra -Werror "$place/sum.c" "${flags[@]}" -o "$place/sum" || fail "the program of README.md does not build"
sums=$(LD_LIBRARY_PATH=$library timeout 60 "$tree/bin/gyre-run" -n 4 "$place/sum" | sort | tr '\n' ';')
[ "$sums" = "$(for rank in 0 1 2 3; do printf 'rank %d of 4: 6 10 14 18;' $rank; done)" ] || fail "the program of README.md says: $sums"

for program in gyre-run gyre-info gyre-top gyre-train gyre-perf gyre-tune; do
    [ "$("$tree/bin/$program" --version | grep -cF "$version")" -ge 1 ] || fail "the installed $program does not say version $version"
    [ ! -d "$2/completions" ] ||
        { [ -s "$tree/share/bash-completion/completions/$program.bash" ] && [ -s "$tree/share/zsh/vendor-completions/_$program" ]; } ||
        fail "the completions of $program were not installed"
    [ -s "$tree/share/man/man1/$program.1" ] || fail "the manual page of $program was not installed"
done
for page in man3/gyre_all_reduce.3 man3/gyre_nn_train.3 man7/gyre.7 man7/gyre-nn.7 man7/gyre-environment.7; do
    [ -s "$tree/share/man/$page" ] || fail "the manual page $page was not installed"
done
echo "installed, moved, and used by pkg-config, find_package and the program of README.md: gyre $version"
