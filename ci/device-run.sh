#!/usr/bin/env bash
# Runs the device path and the suites on a GPU, and keeps everything that was seen.
#
#   ci/device-run.sh KIND BIN OUT [SUITE...] [-- ARGUMENT...]
#
# KIND is hip, cuda or mock-hip; the suites are smoke and full where none are named; arguments go to
# `dnn-assay run`.
#
# BIN is a folder with dnn-assay and libdnn_assay_gfx942_plugin.so. OUT gets what the driver says,
# and per suite a report, a JUnit file, the journal and, from a second run, the trace: a line per
# launch with hashes of its arguments, inputs and outputs, sorted. Nothing is installed or set on
# the device. With fixtures/h200 beside this script the traces are compared with the kept ones.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kind=$1
bin=$(cd "$2" && pwd)
out=$3
shift 3
suites=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    suites+=("$1")
    shift
done
[ $# -eq 0 ] || shift
arguments=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(smoke full)
mkdir -p "$out"
kept=${DNN_ASSAY_KEPT:-$here/../fixtures/h200}
plugin=$bin/libdnn_assay_gfx942_plugin.so

{
    date -u +%Y-%m-%dT%H:%M:%SZ
    nvidia-smi --query-gpu=name,driver_version,memory.total,pcie.link.gen.current --format=csv
    rocm-smi --showproductname --showdriverversion
    "$bin/dnn-assay" device --device "$kind"
} 2>&1 | grep -v 'command not found' | sed "s|$bin|BIN|g" | tee "$out/device.txt"

code=0
run() { # NAME SUITE ARGUMENT...
    local name=$1 suite=$2 started ended rc
    shift 2
    started=$(date +%s.%N)
    "$bin/dnn-assay" run "$plugin" --device "$kind" --suite "$suite" --out "$out/run-$name" \
        --junit "$out/$name.junit.xml" --plain ${arguments[@]+"${arguments[@]}"} "$@" \
        >"$out/$name.log" 2>&1
    rc=$?
    ended=$(date +%s.%N)
    [ $rc -eq 0 ] || code=$rc
    grep -v '^\[' "$out/$name.log" | sed "s|$bin|BIN|g; s|$out|OUT|g" >"$out/$name.txt"
    echo "$name: exit $rc, $(echo "$ended $started" | awk '{printf "%.1f", $1 - $2}') s" | tee -a "$out/table.txt"
    tail -n 22 "$out/$name.txt"
}

# A deep product of f64, which no suite has: its parts are added by a kernel of their own.
beside=conv.wgrad/f64/nchw/n4-c3-k4-i24x24-f3x3/pre1x1-post1x1-str1x1-dil1x1-g1/uni

for suite in "${suites[@]}"; do
    run "$suite" "$suite"
    gzip -nc "$out/run-$suite/journal.jsonl" >"$out/$suite.journal.jsonl.gz"
    rm -f "$out/trace"
    run "$suite-traced" "$suite" --env "DNN_ASSAY_GFX942_TRACE=$out/trace" >/dev/null
    "$bin/dnn-assay" run "$plugin" --device "$kind" --case "$beside" --out "$out/run-beside" --plain \
        --env "DNN_ASSAY_GFX942_TRACE=$out/trace" >"$out/beside.log" 2>&1 || code=$?
    touch "$out/trace"
    LC_ALL=C sort -u "$out/trace" >"$out/$suite.trace"
    rm -f "$out/trace"
    echo "$suite: $(wc -l <"$out/$suite.trace") different launches" | tee -a "$out/table.txt"
    if [ -f "$kept/full.trace" ]; then
        differ=$(LC_ALL=C comm -23 "$out/$suite.trace" "$kept/full.trace" | wc -l)
        echo "$suite: $differ launches are not in the kept trace of an H200" | tee -a "$out/table.txt"
    fi
done
exit $code
