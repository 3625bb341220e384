#!/usr/bin/env bash
# Builds the harness and the gfx942 plugin, runs everything on an AMD GPU through HIP, and packs what
# was seen. Needs Rust, ROCm 6 or 7 (its clang builds the kernels) and an MI300X.
#
#   ci/mi300x/run.sh OUT     makes OUT and OUT.tar.gz; the latter is what to send back
#
#   --device mock-hip        a rehearsal without a GPU, on the mock HIP runtime
#   --bin DIR                takes dnn-assay and the libraries from there instead of building them
#   --suite NAME             this suite only; may be repeated
#   -- ARGUMENT...           more arguments of `dnn-assay run`
set -euo pipefail
usage() {
    sed -n '5,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
device=hip built= suites=() out=
while [ $# -gt 0 ]; do
    case $1 in
    --device) device=${2:?--device needs hip or mock-hip} && shift 2 ;;
    --bin) built=$(realpath "${2:?--bin needs a folder}") && shift 2 ;;
    --suite) suites+=("${2:?--suite needs a name}") && shift 2 ;;
    --) shift && break ;;
    -*) usage ;;
    *) [ -z "$out" ] || usage
       out=$(realpath -m "$1") && shift ;;
    esac
done
[ -n "$out" ] || usage
case $device in
hip | mock-hip) ;;
*) echo "--device $device: expected hip, or mock-hip for a rehearsal" >&2 && exit 2 ;;
esac
cd "$(dirname "$0")/../.."
mkdir -p "$out"
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
files=(dnn-assay libdnn_assay_gfx942_plugin.so)
packages=(-p dnn-assay -p dnn-assay-gfx942-plugin)
if [ "$device" = mock-hip ]; then
    files+=(libdnn_assay_mock_hip.so libdnn_assay_gfx942_host_kernels.so)
    packages+=(-p dnn-assay-mock-hip -p dnn-assay-gfx942-host-kernels)
fi
if [ -z "$built" ]; then
    cargo build --release "${packages[@]}"
    built=${CARGO_TARGET_DIR:-target}/release
    # HIP's own header says whether our layout of its device properties is right.
    cargo test --release -p dnn-assay-abi hip_header -- --nocapture >"$out/header.txt" 2>&1 ||
        echo "the check against HIP's header failed: see $out/header.txt"
fi
for file in "${files[@]}"; do
    cp "$built/$file" "$bin"
done
code=0
ci/device-run.sh "$device" "$bin" "$out" ${suites[@]+"${suites[@]}"} -- "$@" || code=$?
git rev-parse HEAD >"$out/revision.txt" 2>/dev/null || true
rm -rf "$out"/run-*
tar -czf "$out.tar.gz" -C "$(dirname "$out")" "$(basename "$out")"
if [ "$device" = hip ]; then
    echo "send back $out.tar.gz (exit code of the run: $code)"
else
    echo "a rehearsal on $device: $out.tar.gz (exit code of the run: $code)"
fi
exit $code
