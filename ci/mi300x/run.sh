#!/usr/bin/env bash
# Builds the harness and the gfx942 plugin, runs everything on an AMD GPU through HIP, and packs what
# was seen. Needs Rust, ROCm 6 or 7 (its clang builds the kernels) and an MI300X.
#
#   ci/mi300x/run.sh OUT     makes OUT and OUT.tar.gz; the latter is what to send back
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-mi300x}")
cargo build --release -p dnn-assay -p dnn-assay-gfx942-plugin
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
cp target/release/dnn-assay "$bin"
cp target/release/libdnn_assay_gfx942_plugin.so "$bin"
code=0
ci/device-run.sh hip "$bin" "$out" || code=$?
git rev-parse HEAD >"$out/revision.txt" 2>/dev/null || true
rm -rf "$out"/run-*
tar -czf "$out.tar.gz" -C "$(dirname "$out")" "$(basename "$out")"
echo "send back $out.tar.gz (exit code of the run: $code)"
exit $code
