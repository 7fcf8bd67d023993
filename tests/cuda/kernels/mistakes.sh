#!/bin/bash
# Plants one mistake after another in the kernels, builds their tests with it, and wants each to be caught. Prints by
# what. The tests run on two types, without optimisation. A mistake that no longer fits the source is
# a failure.
#   mistakes.sh OBJECTS FLAGS...   what the tests are linked with: reference and gyre
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compile() { ${CXX:-c++} -std=c++17 -O0 -fno-lto -w -ffp-contract=off -fno-strict-aliasing "$@"; }

for source in emu emu_switch; do
    compile -c "$root/tests/support/gpu/$source.cc" -o "$work/$source.o"
done

# PROGRAM: built with the sources as they are in $work/src, and run with two seeds. Sets `by`.
caught() {
    by=""
    compile -DGYRE_TWO_TYPES -I"$work/src" -I"$root/include" -I"$here" -I"$root/tests/support/gpu" \
        "$here/$1_test.cc" "$work"/emu.o "$work"/emu_switch.o "${link[@]}" -o "$work/$1"
    for seed in 1 100; do
        if ! (timeout 60 "$work/$1" "$seed" || { rc=$? && echo "status $rc" && exit 1; }) >"$work/out" 2>&1; then
            by=$(grep -a -m1 -oE 'no end|not so: .*|a store behind|is not aligned|wrong|is .*, not .*|divergent' "$work/out" ||
                tail -1 "$work/out") # 124: the time limit, 139: a fault
            return 0
        fi
    done
    return 1
}

missed=0 planted=0
# WHAT PROGRAM FILE SED-COMMAND
mistake() {
    rm -rf "$work/src"
    cp -r "$root/src" "$work/src"
    sed -i -E "$4" "$work/src/cuda/$3"
    planted=$((planted + 1))
    if cmp -s "$root/src/cuda/$3" "$work/src/cuda/$3"; then
        echo "DOES NOT FIT  $1"
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
mistake "no barrier of the block before it tells the others" peers kernels/two_shot.cuh 's/^    gy_sync\(\);//'
mistake "no barrier of the block after it has waited" peers kernels/two_shot.cuh 's/return !gy_sync_or\(aborted\);/return !aborted;/'
mistake "no first barrier" peers kernels/two_shot.cuh 's/!gy_meet_block\(a.meeting, 0, step\)/false/'
mistake "no second barrier" peers kernels/two_shot.cuh 's/!gy_meet_block\(a.meeting, 1, step\)/false/'
mistake "a comparison that does not wrap" peers kernels/language.h 's/return \(int32_t\)\(value - wanted\) >= 0;/return value >= wanted;/'
mistake "a lost abort in the wait for a word" peers kernels/language.h 's/ \&\& gy_aborted\(abort\)\)/ \&\& false)/'
mistake "a lost abort in the wait for a line" peers kernels/one_shot.cuh 's/ \&\& gy_aborted\(a.meeting.abort\)\)/ \&\& false)/'
mistake "no parity" peers kernels/one_shot.cuh 's/\(size_t\)\(step \& 1\)/(size_t)0/'
mistake "one flag of a line is looked at" peers kernels/one_shot.cuh 's/l.flag1 != step \|\| l.flag2 != step/l.flag1 != step/'
mistake "a step that is not counted" peers kernels/two_shot.cuh 's/gy_word_store\(m.step, step\);//'
mistake "blocks that are through are not reset" peers kernels/two_shot.cuh 's/gy_word_store\(m.through, 0\);//'
mistake "a missing peel" fused kernels/fused.cuh 's/head = \(16 - .*$/head = 0;/'
mistake "pointers that disagree are taken as vectors" fused kernels/fused.cuh 's/return !gy_sync_or\(disagree\)/gy_sync_or(disagree); return true/'
mistake "a forgotten tail" fused kernels/fused.cuh 's/i < count - done;/i < head;/'
mistake "the first element of a piece is ignored" fused kernels/fused.cuh 's/\(p.first \+ head\) \* size/head * size/'
mistake "rank order in place of the canonical tree" fused kernels/fused.cuh 's/if constexpr \(work::tree\)/if constexpr (false)/'
mistake "the divisor is left out" fused kernels/fused.cuh 's/GYRE_AVERAGE \&\& divisor/GYRE_AVERAGE \&\& divisor > 99/'
mistake "rounding at every operand" element element.h 's/return op == GYRE_PRODUCT \? gy_product\(a, b\) : gy_add\(a, b\);/return gy_number<type>::load(gy_number<type>::store(op == GYRE_PRODUCT ? gy_product(a, b) : gy_add(a, b)));/'
mistake "a NaN that is not canonical" element element.h 's/value != value \? 0x7fc00000 : //'
mistake "-0 is no less than +0" element element.h 's/return \(value\)\(b \& sign \? \(bits\)\(b \^ most\) : b\);/return (value)(b == sign ? 0 : b \& sign ? (bits)(b ^ most) : b);/'
echo "$planted mistakes, $missed missed"
test "$missed" -eq 0
