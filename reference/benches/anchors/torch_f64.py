"""Times PyTorch on the CPU in f64 for `cargo bench --bench figures`.

Reads one problem per line, answers with the seconds of the fastest round. The bench starts it with
the interpreter that DNN_ASSAY_TORCH_PYTHON names; any PyTorch will do.
"""

import os
import sys
import time

import torch


def best(work):
    """Seconds of the fastest of some rounds, the first ones left out."""
    clock = time.process_time if os.environ.get("DNN_ASSAY_CLOCK") == "cpu" else time.perf_counter
    start = clock()
    work()
    once = clock() - start
    shortest = float("inf")
    for _ in range(max(3, min(2000, int(0.4 / max(once, 1e-6))))):
        start = clock()
        work()
        shortest = min(shortest, clock() - start)
    return shortest


def convolution(direction, batch, groups, channels, filters, depth, size, taps):
    spatial = ([depth] if depth else []) + [size, size]
    rank = len(spatial)
    x = torch.rand(batch, groups * channels, *spatial, dtype=torch.float64) - 0.5
    w = torch.rand(groups * filters, channels, *[taps] * rank, dtype=torch.float64) - 0.5
    dy = torch.rand(batch, groups * filters, *spatial, dtype=torch.float64) - 0.5
    ones, padding, zeros = [1] * rank, [taps // 2] * rank, [0] * rank
    if direction == "Fprop":
        return lambda: torch.ops.aten.convolution(
            x, w, None, ones, padding, ones, False, zeros, groups
        )
    mask = [direction == "Dgrad", direction == "Wgrad", False]
    return lambda: torch.ops.aten.convolution_backward(
        dy, x, w, None, ones, padding, ones, False, zeros, groups, mask
    )


def norm(form, *dims):
    x = torch.rand(*dims, dtype=torch.float64)
    dy = torch.rand(*dims, dtype=torch.float64)
    scale, bias, mean, var = (torch.rand(dims[1], dtype=torch.float64) + 0.5 for _ in range(4))
    if form == "Backward":
        return lambda: torch.ops.aten.native_batch_norm_backward(
            dy, x, scale, None, None, mean, var, True, 1e-5, [True, True, True]
        )
    train = form == "Train"
    kept = (None, None) if train else (mean, var)
    return lambda: torch.ops.aten.native_batch_norm(x, scale, bias, *kept, train, 0.1, 1e-5)


def main():
    torch.set_num_threads(int(sys.argv[1]))
    torch.set_grad_enabled(False)
    print(torch.__version__, flush=True)
    for line in sys.stdin:
        name, *numbers = line.split()
        if name == "end":
            return
        numbers = [int(number) for number in numbers]
        if name in ("Fprop", "Dgrad", "Wgrad"):
            work = convolution(name, *numbers)
        elif name == "Relu":
            x = torch.rand(numbers[0], dtype=torch.float64) - 0.5
            work = lambda: torch.relu(x)
        else:
            work = norm(name, *numbers)
        print(best(work), flush=True)


main()
