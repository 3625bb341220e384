// The layer under the kernels: one spelling for gfx942, sm_90 and the host.
//
// A kernel is a sequence of phases. Inside a phase, DNN_THREADS(t) runs its body once for each of
// the DNN_BLOCK threads of a block: on a GPU each thread runs it for itself, on the host it is a
// loop. DNN_BARRIER() ends a phase. What a thread keeps from one phase to the next is declared with
// DNN_PRIVATE and reached with DNN_MINE. Blocks have one fixed size and no kernel asks for it, so
// that the compiler adds no hidden arguments.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef int i32;
typedef long long i64;

constexpr u32 DNN_BLOCK = 256;

struct Block {
  u32 x, y, z;
};

#if defined(__CUDACC_RTC__)  // NVRTC's own spellings
#define DNN_GPU 1
#define DNN_FN static __device__ __forceinline__
#define DNN_SHARED static __shared__
#define DNN_CONSTANT static __constant__ const
#define DNN_GLOBAL(blocks) __global__ __launch_bounds__(256, blocks)
#elif defined(__AMDGCN__) || defined(__NVPTX__) || defined(__CUDA_ARCH__)
#define DNN_GPU 1
#define DNN_FN static inline __attribute__((device)) __attribute__((always_inline))
#define DNN_SHARED static __attribute__((shared))
#define DNN_CONSTANT static __attribute__((constant)) const
#define DNN_GLOBAL(blocks) __attribute__((global)) __attribute__((launch_bounds(256, blocks)))
#endif

#if defined(DNN_GPU)
#define DNN_PRIVATE(type, name) type name
#define DNN_MINE(name, t) name
#define DNN_THREADS(t) if (const u32 t = thread_index(); true)

#if defined(__AMDGCN__)
DNN_FN u32 thread_index() { return __builtin_amdgcn_workitem_id_x(); }
DNN_FN Block this_block() {
  return {__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
          __builtin_amdgcn_workgroup_id_z()};
}
DNN_FN void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#elif defined(__CUDACC_RTC__)
DNN_FN u32 thread_index() { return threadIdx.x; }
DNN_FN Block this_block() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
DNN_FN void barrier() { __syncthreads(); }
#else
DNN_FN u32 thread_index() { return __nvvm_read_ptx_sreg_tid_x(); }
DNN_FN Block this_block() {
  return {(u32)__nvvm_read_ptx_sreg_ctaid_x(), (u32)__nvvm_read_ptx_sreg_ctaid_y(),
          (u32)__nvvm_read_ptx_sreg_ctaid_z()};
}
DNN_FN void barrier() { __syncthreads(); }
#endif
#define DNN_BARRIER() barrier()
#define DNN_UNROLL _Pragma("unroll")

// A kernel of which at least `blocks` blocks shall fit on a multiprocessor or compute unit.
#define DNN_KERNEL_OF(blocks, name, Params, body)                                                  \
  extern "C" DNN_GLOBAL(blocks) void name(const Params p) { body(p, this_block()); }
#define DNN_KERNEL(name, Params, body) DNN_KERNEL_OF(1, name, Params, body)

// The name of the source, as a symbol of the object.
#if defined(DNN_FINGERPRINT) && !defined(__CUDACC_RTC__)
extern "C" __attribute__((device)) __attribute__((used)) u8 DNN_FINGERPRINT = 1;
#endif

#else  // the host
#define DNN_FN static inline __attribute__((always_inline))
#define DNN_SHARED
#define DNN_CONSTANT static const
#define DNN_PRIVATE(type, name) type name[DNN_BLOCK]
#define DNN_MINE(name, t) name[t]
#define DNN_THREADS(t) for (u32 t = 0; t < DNN_BLOCK; ++t)
#define DNN_BARRIER()
#if defined(__clang__)
#define DNN_UNROLL _Pragma("unroll")
#else
#define DNN_UNROLL _Pragma("GCC unroll 16")
#endif

#define DNN_KERNEL(name, Params, body) DNN_KERNEL_OF(1, name, Params, body)
#define DNN_KERNEL_OF(blocks, name, Params, body)                                                  \
  static void name(const void *p, u32 x, u32 y, u32 z) {                                           \
    body(*static_cast<const Params *>(p), Block{x, y, z});                                         \
  }
#endif

#if defined(__CUDACC_RTC__)
#define DNN_MATH(name) name
DNN_FN float from_half(u16 bits) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
  return v;
}
DNN_FN u16 half_of(float v) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
  return bits;
}
#else
#define DNN_MATH(name) __builtin_##name
DNN_FN float from_half(u16 bits) { return (float)__builtin_bit_cast(_Float16, bits); }
DNN_FN u16 half_of(float v) { return __builtin_bit_cast(u16, (_Float16)v); }
#endif

DNN_FN float fused(float a, float b, float c) { return DNN_MATH(fmaf)(a, b, c); }
DNN_FN double fused(double a, double b, double c) { return DNN_MATH(fma)(a, b, c); }
DNN_FN double absolute(double v) { return DNN_MATH(fabs)(v); }
DNN_FN double square_root(double v) { return DNN_MATH(sqrt)(v); }
DNN_FN double nearest(double v) { return DNN_MATH(rint)(v); }
DNN_FN double ceiling(double v) { return DNN_MATH(ceil)(v); }
DNN_FN double floored(double v) { return DNN_MATH(floor)(v); }
DNN_FN double with_sign(double v, double sign) { return DNN_MATH(copysign)(v, sign); }

DNN_FN u64 bits_of(double v) { return __builtin_bit_cast(u64, v); }
DNN_FN u32 bits_of(float v) { return __builtin_bit_cast(u32, v); }
DNN_FN double double_of(u64 v) { return __builtin_bit_cast(double, v); }
DNN_FN float float_of(u32 v) { return __builtin_bit_cast(float, v); }

DNN_FN double infinity() { return double_of(0x7FF0000000000000ull); }
DNN_FN double not_a_number() { return double_of(0x7FF8000000000000ull); }
