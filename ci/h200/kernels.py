"""Runs the gfx942 plugin's sm_90 kernels on an NVIDIA GPU, and compares their bits with the host
build of the same kernels.

    python3 kernels.py KERNELS.ptx LIBDNN_ASSAY_GFX942_HOST_KERNELS.so

Needs libcuda only; with PyTorch it also measures speed beside cuDNN and a copy.
"""
import ctypes as C
import hashlib
import math
import random
import struct
import sys

ptx, host_library = sys.argv[1:3]
cu = C.CDLL("libcuda.so.1")


def call(name, *args):
    status = getattr(cu, name)(*args)
    if status:
        text = C.c_char_p()
        cu.cuGetErrorString(status, C.byref(text))
        raise SystemExit(f"{name}: {status} {text.value}")


class Row(C.Structure):
    _fields_ = [("name", C.c_char_p), ("size", C.c_uint64), ("run", C.c_void_p)]


host = C.CDLL(host_library)
host.dnn_assay_host_kernels.restype = C.POINTER(Row)
table, i = host.dnn_assay_host_kernels(), 0
RUN = C.CFUNCTYPE(None, C.c_void_p, C.c_uint32, C.c_uint32, C.c_uint32)
kernels = {}
while table[i].name:
    kernels[table[i].name.decode()] = (table[i].size, RUN(table[i].run))
    i += 1

call("cuInit", 0)
device, context, module = C.c_int(), C.c_void_p(), C.c_void_p()
call("cuDeviceGet", C.byref(device), 0)
call("cuDevicePrimaryCtxRetain", C.byref(context), device)
call("cuCtxSetCurrent", context)
version = C.c_int()
call("cuDriverGetVersion", C.byref(version))
name = C.create_string_buffer(100)
call("cuDeviceGetName", name, 100, device)
print("device", name.value.decode(), "driver", version.value)
text = C.create_string_buffer(open(ptx, "rb").read())
call("cuModuleLoadData", C.byref(module), text)
functions = {}
for kernel in kernels:
    f = C.c_void_p()
    call("cuModuleGetFunction", C.byref(f), module, kernel.encode())
    functions[kernel] = f


def launch(kernel, params, grid, stream=None):
    assert len(params) == kernels[kernel][0], (kernel, len(params))
    block = C.create_string_buffer(params, len(params))
    pointers = (C.c_void_p * 1)(C.addressof(block))
    call("cuLaunchKernel", functions[kernel], *map(C.c_uint, grid), 256, 1, 1, 0, stream, pointers, None)


def on_host(kernel, params, grid):
    block = C.create_string_buffer(params, len(params))
    for z in range(grid[2]):
        for y in range(grid[1]):
            for x in range(grid[0]):
                kernels[kernel][1](C.addressof(block), x, y, z)


def compare(kernel, build, inputs, out_bytes, grid):
    """build(out, *inputs) gives the parameters for addresses; True if both give the same bits."""
    out = C.create_string_buffer(out_bytes)
    held = [C.create_string_buffer(data, len(data)) for data in inputs]
    on_host(kernel, build(C.addressof(out), *map(C.addressof, held)), grid)
    addresses = []
    for size in [out_bytes] + [len(data) for data in inputs]:
        a = C.c_uint64()
        call("cuMemAlloc_v2", C.byref(a), C.c_size_t(size))
        addresses.append(a.value)
    for a, data in zip(addresses[1:], held):
        call("cuMemcpyHtoD_v2", C.c_uint64(a), data, C.c_size_t(len(data)))
    launch(kernel, build(*addresses), grid)
    call("cuCtxSynchronize")
    got = C.create_string_buffer(out_bytes)
    call("cuMemcpyDtoH_v2", got, C.c_uint64(addresses[0]), C.c_size_t(out_bytes))
    for a in addresses:
        call("cuMemFree_v2", C.c_uint64(a))
    return got.raw == out.raw, hashlib.sha256(got.raw).hexdigest()[:16]


SIZE = {0: 4, 1: 2, 2: 2, 3: 8}


def encode(values, kind):
    if kind == 2:
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack({0: "<%df", 1: "<%de", 3: "<%dd"}[kind] % len(values), *values)


def pointwise(out, inputs, mode, kind, count):
    p = struct.pack("<4Q9d", out, *inputs, 0, 0, 0, -0.5, 2.0, 0.1, 1.5, 0.75, 2.0)
    p += struct.pack("<6I", kind, kind, kind, kind, mode, 5)
    p += struct.pack("<8I", count, 1, 1, 1, 1, 1, 1, count)
    return p + struct.pack("<6q", 0, 0, 0, 0, 0, 1) * 4


def decoder(radix, step, factor=(0, 0, 0), offset=(0, 0, 0)):
    return struct.pack("<4I4q6i", *radix, 0, *step, *factor, *offset)


def operand(base, row, depth, kind, group, spatial=None):
    step, extent, divisor = spatial or ((0, 0, 0), (0, 0, 0), (1, 1, 1))
    return (struct.pack("<Q", base) + row + depth + struct.pack("<3q6i", *step, *extent, *divisor)
            + struct.pack("<qII", group, kind, 1 if spatial else 0))


def fprop(out, x, w, shape, kind, tall=128, beside=0):
    n, c, h, wd, k, r, s, pad, stride = shape
    oh, ow = (h + 2 * pad - r) // stride + 1, (wd + 2 * pad - s) // stride + 1
    a = operand(x, decoder((1, oh, ow), (c * h * wd, 0, 0, 0), (1, stride, stride), (0, -pad, -pad)),
                decoder((1, r, s), (h * wd, 0, 0, 0), (1, 1, 1)), kind, 0,
                ((0, wd, 1), (1, h, wd), (1, 1, 1)))
    b = operand(w, decoder((1, 1, 1), (c * r * s, 0, 0, 0)),
                decoder((1, r, s), (r * s, 0, s, 1)), kind, 0)
    p = a + b + decoder((1, oh, ow), (k * oh * ow, 0, ow, 1)) + decoder((1, 1, 1), (oh * ow, 0, 0, 0))
    rows, depth = n * oh * ow, c * r * s
    p += struct.pack("<QQq8I", out, 0, 0, kind, rows, k, depth, 1, 1, depth, beside)
    return p, ((rows + tall - 1) // tall, (k + 63) // 64, 1), rows * k


LIGHT = {*range(1, 12), 17, 23, *range(25, 32), 33, 34, 42}


def vector_kernels(mode):
    """The one that the plugin takes first."""
    single = ["dnn_pointwise_single"] if mode == 21 else []
    return single + ["dnn_pointwise_light" if mode in LIGHT else "dnn_pointwise_heavy"]


def main():
    rng = random.Random(1)
    specials = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, 2.0]
    same = total = elements = 0
    digest = hashlib.sha256()
    count = 4093
    for mode in [m for m in range(1, 48) if m != 22]:
        for kind in (0, 1, 2):
            data = []
            for _ in range(3):
                values = [rng.choice(specials) if rng.random() < 0.02 else
                          rng.uniform(-1, 1) * 10 ** rng.uniform(-4, 3) for _ in range(count)]
                data.append(encode(values, kind))
            hashes = set()
            for kernel, each in [("dnn_pointwise", 256)] + [(k, 1024) for k in vector_kernels(mode)]:
                ok, hashed = compare(kernel,
                                     lambda o, a, b, c: pointwise(o, (a, b, c), mode, kind, count),
                                     data, count * SIZE[kind], ((count + each - 1) // each, 1, 1))
                hashes.add(hashed)
                same, total, elements = same + ok, total + 1, elements + count
                if not ok:
                    print(kernel, "mode", mode, "type", kind, "differs")
            digest.update(hashed.encode())
            if len(hashes) > 1:
                same -= 1
                print("pointwise mode", mode, "type", kind, "has other bits in vectors")
    for shape in [(2, 5, 9, 7, 7, 3, 3, 1, 1), (1, 33, 12, 12, 17, 1, 1, 0, 1), (2, 16, 11, 13, 65, 5, 5, 2, 2)]:
        for kind in (0, 1, 2, 3):
            n, c, h, w, k, r, s, pad, stride = shape
            if kind == 3:
                continue
            x = encode([rng.uniform(-1, 1) for _ in range(n * c * h * w)], kind)
            f = encode([rng.uniform(-1, 1) for _ in range(k * c * r * s)], kind)
            hashes = set()
            kernels_of = [("dnn_conv_f32", 128, 0), ("dnn_conv_linear", 256, 0)]
            if c * r * s % 2 == 0:  # weights in wide loads
                kernels_of.append(("dnn_conv_linear", 256, 2))
            for kernel, tall, beside in kernels_of:
                _, grid, size = fprop(0, 0, 0, shape, kind, tall)
                ok, hashed = compare(kernel, lambda o, a, b: fprop(o, a, b, shape, kind, tall, beside)[0],
                                     [x, f], size * SIZE[kind], grid)
                hashes.add(hashed)
                same, total, elements = same + ok, total + 1, elements + size
                if not ok:
                    print(kernel, shape, "type", kind, "differs")
            digest.update(hashed.encode())
            if len(hashes) > 1:
                same -= 1
                print("conv", shape, "type", kind, "has other bits with linear offsets")
    print(f"same bits on GPU and host: {same} of {total} launches, {elements} elements, "
          f"digest {digest.hexdigest()[:16]}")
    speed()
    return same != total


def speed():
    try:
        import torch
    except ImportError:
        print("no PyTorch: speed was not measured")
        return
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False

    def median(work):
        times = []
        for i in range(25):
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            work()
            b.record()
            b.synchronize()
            if i >= 5:
                times.append(a.elapsed_time(b))
        return sorted(times)[len(times) // 2]

    stream = C.c_void_p(torch.cuda.current_stream().cuda_stream)
    shape = (64, 64, 56, 56, 64, 3, 3, 1, 1)
    x, w = torch.randn(64, 64, 56, 56, device="cuda"), torch.randn(64, 64, 3, 3, device="cuda")
    y = torch.full((64, 64, 56, 56), math.nan, device="cuda")
    theirs = median(lambda: torch.nn.functional.conv2d(x, w, padding=1))
    p, grid, _ = fprop(y.data_ptr(), x.data_ptr(), w.data_ptr(), shape, 0)
    general = median(lambda: launch("dnn_conv_f32", p, grid, stream))
    p, grid, _ = fprop(y.data_ptr(), x.data_ptr(), w.data_ptr(), shape, 0, 256)
    narrow = median(lambda: launch("dnn_conv_linear", p, grid, stream))
    p, grid, _ = fprop(y.data_ptr(), x.data_ptr(), w.data_ptr(), shape, 0, 256, 2)
    y.fill_(math.nan)
    ours = median(lambda: launch("dnn_conv_linear", p, grid, stream))
    want = torch.nn.functional.conv2d(x.double(), w.double(), padding=1)
    error = ((y.double() - want).norm() / want.norm()).item()
    print(f"conv fprop f32 64x64x56x56 K=64 3x3: {ours:.3f} ms, cuDNN without TF32 {theirs:.3f} ms, "
          f"ratio {ours / theirs:.2f}, relative error {error:.1e}; without wide loads {narrow:.3f} ms, "
          f"the general kernel {general:.3f} ms")
    window_of_one(median, stream)
    count = 1 << 28
    a, b, c = (torch.randn(count, device="cuda") for _ in range(3))
    copy = median(lambda: b.copy_(a))
    bandwidth = 2 * 4 * count / copy / 1e6
    for mode, words, operands in ((2, "add", 3), (34, "relu", 2), (16, "exp", 2), (21, "gelu", 2)):
        inputs = (a.data_ptr(), b.data_ptr() if operands == 3 else a.data_ptr(), a.data_ptr())
        p = bytearray(pointwise(c.data_ptr(), inputs, mode, 0, count))
        for unused in range(operands - 1, 3):
            struct.pack_into("<I", p, 104 + 4 + 4 * unused, 8)
        p = bytes(p)
        time = median(lambda: launch(vector_kernels(mode)[0], p, (count // 1024, 1, 1), stream))
        moved = operands * 4 * count / time / 1e6
        print(f"pointwise {words} f32 of 2^28: {time:.3f} ms, {moved:.0f} GB/s, copy {bandwidth:.0f} GB/s, "
              f"ratio {bandwidth / moved:.2f}")
    n, channels, plane = 64, 256, 128 * 128
    coefficients = torch.rand(4, channels, device="cuda", dtype=torch.float64)
    for layout, inner, per_channel in (("nchw", [channels, plane], [1, 0]),
                                       ("nhwc", [plane, channels], [0, 1])):
        q = struct.pack("<4Q4I", c.data_ptr(), a.data_ptr(), 0, coefficients.data_ptr(), 0, 0, 0, channels)
        q += struct.pack("<8I", count, 3, 1, 1, 1, n, *inner)
        q += struct.pack("<6q", 0, 0, 0, channels * plane, inner[1], 1) * 3
        q += struct.pack("<6q", 0, 0, 0, 0, *per_channel)
        time = median(lambda: launch("dnn_batchnorm_apply_vector", q, (count // 1024, 1, 1), stream))
        moved = 2 * 4 * count / time / 1e6
        print(f"batchnorm inference {layout} f32 of 2^28: {time:.3f} ms, {moved:.0f} GB/s, "
              f"copy {bandwidth:.0f} GB/s, ratio {bandwidth / moved:.2f}")


def window_of_one(median, stream):
    """1x1 filters on channels-last f16 and f32: both operands lie side by side along the depth."""
    import torch
    n, c, h, k = 32, 256, 28, 256
    for kind, element in ((0, torch.float32), (1, torch.float16)):
        x = torch.randn(n, h, h, c, device="cuda").to(element)
        w = torch.randn(k, c, device="cuda").to(element)
        y = torch.full((n, h, h, k), math.nan, device="cuda", dtype=element)
        rows = n * h * h
        a = operand(x.data_ptr(), decoder((1, h, h), (h * h * c, 0, h * c, c)), decoder((1, 1, 1), (1, 0, 0, 0)), kind, 0)
        b = operand(w.data_ptr(), decoder((1, 1, 1), (c, 0, 0, 0)), decoder((1, 1, 1), (1, 0, 0, 0)), kind, 0)
        p = a + b + decoder((1, h, h), (h * h * k, 0, h * k, k)) + decoder((1, 1, 1), (1, 0, 0, 0))
        grid = ((rows + 255) // 256, k // 64, 1)
        times = []
        for beside in (0, 3):
            q = p + struct.pack("<QQq8I", y.data_ptr(), 0, 0, kind, rows, k, c, 1, 1, c, beside)
            times.append(median(lambda: launch("dnn_conv_linear", q, grid, stream)))
        want = x.reshape(rows, c).double() @ w.double().T
        error = ((y.reshape(rows, k).double() - want).norm() / want.norm()).item()
        xs, ws = x.permute(0, 3, 1, 2), w.reshape(k, c, 1, 1).to(memory_format=torch.channels_last)
        theirs = median(lambda: torch.nn.functional.conv2d(xs, ws))
        print(f"conv fprop {'f16' if kind else 'f32'} nhwc {n}x{c}x{h}x{h} K={k} 1x1: wide loads {times[1]:.3f} ms, "
              f"without {times[0]:.3f} ms, cuDNN {theirs:.3f} ms, relative error {error:.1e}")


sys.exit(main())
