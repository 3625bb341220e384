#!/usr/bin/env bash
# Makes faults of the plugin's launches on an NVIDIA GPU, and looks whether the harness sees them:
# work on other streams, launches that do not happen, writes beyond buffers.
#
#   ci/h200/faults.sh BIN OUT     BIN as for ci/device-run.sh; needs a C compiler, or BIN/faults.so
#
# With two devices or more, one of them also makes faults alone: its failures must be marked
# device-suspect, and those of all devices must not be.
#
# Prints a line per fault with the verdicts of its cases, and fails where they are not the expected
# ones. Nothing is changed on the device.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ -f "$bin/faults.so" ]; then
    cp "$bin/faults.so" "$folder/libcuda.so.1"
else
    cc -O2 -shared -fPIC -Wl,-soname,libcuda.so.1 "$here/faults.c" -ldl -o "$folder/libcuda.so.1" || exit 2
fi
real=
for candidate in ${LD_LIBRARY_PATH:+${LD_LIBRARY_PATH//:/ }} /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu; do
    [ -z "$real" ] && [ -e "$candidate/libcuda.so.1" ] && real=$candidate/libcuda.so.1
done
[ -n "$real" ] || real=$(ldconfig -p | awk '/libcuda\.so\.1 .*x86-64/ { print $NF; exit }')
[ -n "$real" ] || { echo "no libcuda.so.1 here"; exit 2; }

# 840 bytes of output and of each input.
cases=(--case pointwise.add/f32/nchw/n2-c3-i5x7)
code=0
try() { # FAULT EXPECTED [ARGUMENT...]
    local fault=$1 expected=$2 name seen
    shift 2
    name=$(echo "$fault${*:+ $*}" | tr -c 'a-z0-9\n' _)
    "$bin/dnn-assay" run "$bin/libdnn_assay_gfx942_plugin.so" --device cuda "${cases[@]}" --plain \
        --lib-path "$folder" --env "CUDA_CACHE_PATH=$folder/cache" --env "DNN_ASSAY_CUDA_LIBRARY=$real" --env "DNN_ASSAY_CUDA_FAULT=$fault" \
        --out "$out/fault-$name" "$@" >"$out/fault-$name.log" 2>&1
    seen=$(sed -n 's/.*"record":"case-end".*"verdict":"\([a-z-]*\)","kind":"\{0,1\}\([a-z-]*\).*/\1:\2/p' \
        "$out/fault-$name/journal.jsonl" | sed 's/:null//' | sort -u | paste -sd ' ')
    suspect=$(grep -c '"record":"case-end".*"device-suspect: ' "$out/fault-$name/journal.jsonl")
    failed=$(grep -c '"record":"case-end".*"verdict":"fail"' "$out/fault-$name/journal.jsonl")
    echo "$fault${*:+, $*}: $seen${*:+, $failed failed, $suspect of them device-suspect}" | tee -a "$out/faults.txt"
    [[ " $expected " == *" $seen "* ]] || { echo "  expected: $expected"; code=1; }
}
rm -f "$out/faults.txt"
try none 'pass'
try default-stream 'fail:abi'
try unjoined-stream 'fail:abi fail:unwritten'
try lost-error 'fail:unwritten'
for bytes in 1 16 4096; do
    try "overwrite:0:840:$bytes" 'fail:guard-after'
    try "overwrite:0:-$bytes:$bytes" 'fail:guard-before'
    try "overwrite:1:840:$bytes" 'fail:guard-after'
done
try overwrite:1:100:40 'fail:input-changed'
if [ "$("$bin/dnn-assay" device --device cuda | grep -c '^  device [0-9]')" -gt 1 ]; then
    cases=(--suite smoke --filter 'op=pointwise.add dtype=f32')
    try lost-error 'fail:unwritten' --jobs 2
    [ "$suspect" -eq 0 ] || { echo "  expected: none suspect"; code=1; }
    try lost-error 'fail:unwritten pass' --jobs 2 --env DNN_ASSAY_CUDA_FAULT_DEVICE=0
    [ "$suspect" -gt 0 ] && [ "$suspect" -eq "$failed" ] || { echo "  expected: all failures suspect"; code=1; }
fi
exit $code
