#!/bin/bash
# Mutation test of the kernels: plants one mistake after another, builds the tests with it, and expects that they fail.
# Prints the failure. The tests use two types, without optimisation. A mistake that does not apply to the source fails.
#   mistakes.sh OBJECTS FLAGS...   OBJECTS and FLAGS with which the tests are linked: reference and gyre
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compile() { ${CXX:-c++} -std=c++17 -O0 -fno-lto -w -ffp-contract=off -fno-strict-aliasing "$@"; }

for source in emu emu_switch; do
    compile -c "$root/tests/support/gpu/$source.cc" -o "$work/$source.o"
done

# caught PROGRAM: builds it from the sources in $work/src and runs it with two seeds. Sets `by` to the failure.
caught() {
    by=""
    compile -DGYRE_TWO_TYPES -I"$work/src" -I"$root/include" -I"$here" -I"$root/tests/support/gpu" \
        "$here/$1_test.cc" "$work"/emu.o "$work"/emu_switch.o "${link[@]}" -o "$work/$1"
    for seed in 1 100; do
        if ! (timeout 60 "$work/$1" "$seed" || { rc=$? && echo "status $rc" && exit 1; }) >"$work/out" 2>&1; then
            by=$(grep -a -m1 -oE 'does not end|does not hold: .*|a store beyond|is not aligned|wrong|is .*, not .*|divergent' "$work/out" ||
                tail -1 "$work/out") # status 124: the time limit; 139: a segmentation fault
            return 0
        fi
    done
    return 1
}

missed=0 planted=0
# mistake WHAT PROGRAM FILE SED-COMMAND
mistake() {
    rm -rf "$work/src"
    cp -r "$root/src" "$work/src"
    sed -i -E "$4" "$work/src/cuda/$3"
    planted=$((planted + 1))
    if cmp -s "$root/src/cuda/$3" "$work/src/cuda/$3"; then
        echo "NOT APPLIED   $1"
        missed=$((missed + 1))
    elif caught "$2"; then
        echo "caught        $1: $by"
    else
        echo "MISSED        $1"
        missed=$((missed + 1))
    fi
}
link=("$@")

rm -rf "$work/src" && cp -r "$root/src" "$work/src"
for program in element fused peers; do
    if caught "$program"; then
        echo "$program fails without a mistake: $by"
        exit 1
    fi
done
mistake "no fence before the flags" peers kernels/two_shot.cuh 's/^    gy_fence\(\);//'
mistake "no barrier of the block before it stores its counters" peers kernels/two_shot.cuh 's/^    gy_sync\(\);//'
mistake "no barrier of the block after its wait" peers kernels/two_shot.cuh 's/return !gy_sync_or\(aborted\);/return !aborted;/'
mistake "no first barrier" peers kernels/two_shot.cuh 's/!gy_peer_barrier\(a.sync, 0, step\)/false/'
mistake "no second barrier" peers kernels/two_shot.cuh 's/!gy_peer_barrier\(a.sync, 1, step\)/false/'
mistake "a comparison that does not wrap" peers kernels/language.h 's/return \(int32_t\)\(value - wanted\) >= 0;/return value >= wanted;/'
mistake "a lost abort in the wait for a word" peers kernels/language.h 's/ \&\& gy_aborted\(abort\)\)/ \&\& false)/'
mistake "a lost abort in the wait for a line" peers kernels/one_shot.cuh 's/ \&\& gy_aborted\(a.sync.abort\)\)/ \&\& false)/'
mistake "no parity" peers kernels/one_shot.cuh 's/\(size_t\)\(step \& 1\)/(size_t)0/'
mistake "only one flag of a line is checked" peers kernels/one_shot.cuh 's/l.flag1 != step \|\| l.flag2 != step/l.flag1 != step/'
mistake "the step is not incremented" peers kernels/two_shot.cuh 's/gy_word_store\(m.step, step\);//'
mistake "the number of finished blocks is not reset" peers kernels/two_shot.cuh 's/gy_word_store\(m.finished, 0\);//'
mistake "no elements before the first vector" fused kernels/fused.cuh 's/head = \(16 - .*$/head = 0;/'
mistake "vectors although offsets modulo 16 differ" fused kernels/fused.cuh 's/return !gy_sync_or\(disagree\)/gy_sync_or(disagree); return true/'
mistake "no elements after the last vector" fused kernels/fused.cuh 's/i < count - done;/i < head;/'
mistake "the first element of a piece is ignored" fused kernels/fused.cuh 's/\(p.first \+ head\) \* size/head * size/'
mistake "rank order in place of the canonical tree" fused kernels/fused.cuh 's/if constexpr \(work::tree\)/if constexpr (false)/'
mistake "no division" fused kernels/fused.cuh 's/GYRE_AVERAGE \&\& divisor/GYRE_AVERAGE \&\& divisor > 99/'
mistake "rounding at every operand" element element.h 's/return op == GYRE_PRODUCT \? gy_product\(a, b\) : gy_add\(a, b\);/return gy_number<type>::load(gy_number<type>::store(op == GYRE_PRODUCT ? gy_product(a, b) : gy_add(a, b)));/'
mistake "a NaN that is not canonical" element element.h 's/value != value \? 0x7fc00000 : //'
mistake "-0 is not less than +0" element element.h 's/return \(value\)\(b \& sign \? \(bits\)\(b \^ most\) : b\);/return (value)(b == sign ? 0 : b \& sign ? (bits)(b ^ most) : b);/'
echo "$planted mistakes, $missed missed"
test "$missed" -eq 0
