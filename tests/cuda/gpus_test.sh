#!/bin/bash
# gyre-run --gpus, and the output of gyre-info and of the log about the device of a rank, with the stand-in driver.
#   gpus_test.sh GYRE-RUN GYRE-INFO PROGRAM     PROGRAM attaches to GYRE_CUDA_DEFAULT
set -u
run=$1 info=$2 program=$3
failures=0
unset CUDA_VISIBLE_DEVICES
show='echo "$RANK ${CUDA_VISIBLE_DEVICES-unset}"'

# expect WANTED COMMAND...: the sorted lines of its output are WANTED.
expect()
{
    local wanted=$1 got
    shift
    got=$("$@" 2>&1 | LC_ALL=C sort)
    [ "$got" = "$wanted" ] || { printf 'FAILED: %s\n%s\ninstead of\n%s\n' "$*" "$got" "$wanted"; failures=$((failures + 1)); }
}

# expect_line PATTERN COMMAND...: a line of its output matches PATTERN.
expect_line()
{
    local pattern=$1 got
    shift
    got=$("$@" 2>&1)
    grep -Eq -- "$pattern" <<<"$got" || { printf 'FAILED: %s\n%s\nhas no line %s\n' "$*" "$got" "$pattern"; failures=$((failures + 1)); }
}

lines() { printf '%s\n' "$@"; }

expect "$(lines '0 unset' '1 unset')" "$run" -n 2 sh -c "$show"
expect "$(lines '0 5,7' '1 5,7')" env CUDA_VISIBLE_DEVICES=5,7 "$run" -n 2 sh -c "$show"
expect "$(lines '0 ' '1 ')" env CUDA_VISIBLE_DEVICES=5,7 "$run" -n 2 --gpus none sh -c "$show"
expect "$(lines '0 3' '1 1' '2 3')" "$run" --gpus 3,1 -n 3 sh -c "$show"
expect "$(lines '0 GPU-5ab3/1' '1 MIG-GPU-c')" "$run" --gpus=GPU-5ab3/1,MIG-GPU-c -n 2 sh -c "$show"
expect "$(lines '0 0' '1 1' '2 0')" env GYRE_TEST_GPUS=2 "$run" -n 3 --gpus auto sh -c "$show"
expect "$(lines '0 1' '1 0' '2 1')" env GYRE_TEST_GPUS=2 CUDA_VISIBLE_DEVICES=1,0 "$run" -n 3 --gpus auto sh -c "$show"
expect "$(lines '0 2' '1 2')" env GYRE_TEST_GPUS=3 CUDA_VISIBLE_DEVICES=2,9,0 "$run" -n 2 --gpus auto sh -c "$show"
expect "$(lines '0 0' '1 1')" env GYRE_TEST_GPUS=2 "$run" --hosts localhost:2 --gpus auto sh -c "$show"
expect "$(lines '0 7' '1 6')" "$run" --hosts localhost:2 --gpus 7,6 sh -c "$show"
expect "$(lines '0 unset' '1 unset' 'gyre-run: --gpus auto: no GPU: the CUDA driver finds no device')" \
    env GYRE_TEST_GPUS=0 "$run" -n 2 --gpus auto sh -c "$show"
expect "$(lines '0 ' '1 ' 'gyre-run: --gpus auto: no GPU: the CUDA driver finds no device; CUDA_VISIBLE_DEVICES is ""')" \
    env CUDA_VISIBLE_DEVICES= "$run" -n 2 --gpus auto sh -c "$show"
for wrong in '' , 0, ,0 0,,1 x -1 '0 1' GPU 0,auto; do
    expect_line "--gpus '$wrong' is not auto, none or a list of GPUs" "$run" -n 1 --gpus "$wrong" true
done

# The device of a rank: with two GPUs that all ranks see, and with one GPU per rank.
expect_line '^a rank with LOCAL_RANK 1 is attached to GPU 1 by default$' env GYRE_TEST_GPUS=2 "$run" -n 2 "$info"
expect_line '^\[1\] GPU 0: stand-in 1, ' env GYRE_TEST_GPUS=2 "$run" -n 2 -l --gpus auto "$info"
expect_line '^\[1\] CUDA_VISIBLE_DEVICES is "1"$' env GYRE_TEST_GPUS=2 "$run" -n 2 -l --gpus auto "$info"
expect_line '^\[1\] a rank with LOCAL_RANK 1 is attached to GPU 0 by default$' env GYRE_TEST_GPUS=2 "$run" -n 2 -l --gpus auto "$info"
expect_line '^no GPU: .*CUDA_VISIBLE_DEVICES is ""$' "$run" -n 1 --gpus none "$info"
expect_line 'rank 1, number 1 on its host, is attached to GPU 1: stand-in 1' env GYRE_TEST_GPUS=2 GYRE_LOG=info "$run" -n 2 "$program"
expect_line 'rank 1, number 1 on its host, is attached to GPU 0: stand-in 1' env GYRE_TEST_GPUS=2 GYRE_LOG=info "$run" -n 2 --gpus auto "$program"
expect_line 'rank 1, number 1 on its host, is attached to GPU 0: stand-in 0' env GYRE_TEST_GPUS=1 GYRE_LOG=info "$run" -n 2 "$program"
expect_line 'rank 1 cannot use its GPU|rank 0 cannot use its GPU' "$run" -n 2 --gpus none "$program"
[ "$failures" -eq 0 ]
