#!/usr/bin/env bash
# Runs the device path and the suites on an NVIDIA GPU through libcuda, with the sm_90 build of the
# gfx942 plugin's kernels.
#
#   ci/h200/run.sh BIN OUT [SUITE...]     default suites: smoke full
#
# BIN is a folder with dnn-assay and libdnn_assay_gfx942_plugin.so, OUT a folder for journals,
# JUnit files and a table. Nothing is installed or set on the device.
set -uo pipefail
bin=$(cd "$1" && pwd)
out=$2
shift 2
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(smoke full)
mkdir -p "$out"

{
    date -u +%Y-%m-%dT%H:%M:%SZ
    nvidia-smi --query-gpu=name,driver_version,memory.total,pcie.link.gen.current --format=csv
    "$bin/dnn-assay" device --device cuda
} 2>&1 | tee "$out/device.txt"

code=0
for suite in "${suites[@]}"; do
    started=$(date +%s.%N)
    "$bin/dnn-assay" run "$bin/libdnn_assay_gfx942_plugin.so" --device cuda --suite "$suite" \
        --out "$out/run-$suite" --junit "$out/$suite.xml" --plain >"$out/$suite.txt" 2>&1
    rc=$?
    [ $rc -eq 0 ] || code=$rc
    ended=$(date +%s.%N)
    echo "suite $suite: exit $rc, $(echo "$ended $started" | awk '{printf "%.1f", $1 - $2}') s"
    grep -v '^\[' "$out/$suite.txt" | tail -n 25
    gzip -c "$out/run-$suite/journal.jsonl" >"$out/$suite.journal.jsonl.gz"
done
exit $code
