#!/usr/bin/env bash
# Runs the device path and the suites on an NVIDIA GPU through libcuda, with the sm_90 build of the
# gfx942 plugin's kernels.
#
#   ci/h200/run.sh BIN OUT [SUITE...]     see ci/device-run.sh
exec "$(dirname "$0")/../device-run.sh" cuda "$@"
