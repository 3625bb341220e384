// Element types in memory, and the way from and to double.
//
// Every value is rounded once, to nearest even. A NaN is stored as the one canonical NaN of its
// type, so that all targets store the same bits. Integers saturate and truncate toward zero.
#pragma once
#include "portable.hpp"

enum ElementType : u32 {
  F32 = 0,
  F16 = 1,
  BF16 = 2,
  F64 = 3,
  I8 = 4,
  U8 = 5,
  I32 = 6,
  I64 = 7,
  CONSTANT = 8,  // no memory: the value travels in the parameters
};

DNN_FN float from_brain(u16 bits) { return float_of((u32)bits << 16); }

DNN_FN double load(const void *base, u32 type, i64 at) {
  switch (type) {
    case F32: return (double)static_cast<const float *>(base)[at];
    case F16: return (double)from_half(static_cast<const u16 *>(base)[at]);
    case BF16: return (double)from_brain(static_cast<const u16 *>(base)[at]);
    case F64: return static_cast<const double *>(base)[at];
    case I8: return (double)static_cast<const i8 *>(base)[at];
    case U8: return (double)static_cast<const u8 *>(base)[at];
    case I32: return (double)static_cast<const i32 *>(base)[at];
    default: return (double)static_cast<const i64 *>(base)[at];
  }
}

// The same for the floating types that convolutions take, without the way through double.
DNN_FN float load_as(const void *base, u32 type, i64 at, float) {
  switch (type) {
    case F32: return static_cast<const float *>(base)[at];
    case F16: return from_half(static_cast<const u16 *>(base)[at]);
    case BF16: return from_brain(static_cast<const u16 *>(base)[at]);
    default: return (float)static_cast<const double *>(base)[at];
  }
}
DNN_FN double load_as(const void *base, u32 type, i64 at, double) { return load(base, type, at); }

DNN_FN float to_single(double v) {
  const float near = (float)v;
  return near != near ? float_of(0x7FC00000u) : near;
}

// A float that rounds to every narrower type as `v` does: truncated, and the last bit set if
// anything was lost ("round to odd"; float has more than two bits more than the half types).
DNN_FN float to_narrowable(double v) {
  const float near = (float)v;
  const double back = (double)near;
  const double magnitude = absolute(back);
  if (back == v || magnitude == infinity()) return near;
  const u32 bits = bits_of(near) - (magnitude > absolute(v) ? 1u : 0u);
  return float_of(bits | 1u);
}

DNN_FN u16 to_half(double v) {
  if (v != v) return 0x7E00;
  return half_of(to_narrowable(v));
}

DNN_FN u16 to_brain(double v) {
  if (v != v) return 0x7FC0;
  const u32 bits = bits_of(to_narrowable(v));
  return (u16)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

DNN_FN i64 to_integer(double v, double least, double most, i64 low, i64 high) {
  if (v != v) return 0;
  if (v <= least) return low;
  if (v >= most) return high;
  return (i64)v;
}

DNN_FN void store(void *base, u32 type, i64 at, double v) {
  switch (type) {
    case F32: static_cast<float *>(base)[at] = to_single(v); break;
    case F16: static_cast<u16 *>(base)[at] = to_half(v); break;
    case BF16: static_cast<u16 *>(base)[at] = to_brain(v); break;
    case F64: static_cast<double *>(base)[at] = v != v ? not_a_number() : v; break;
    case I8: static_cast<i8 *>(base)[at] = (i8)to_integer(v, -128.0, 127.0, -128, 127); break;
    case U8: static_cast<u8 *>(base)[at] = (u8)to_integer(v, 0.0, 255.0, 0, 255); break;
    case I32:
      static_cast<i32 *>(base)[at] =
          (i32)to_integer(v, -2147483648.0, 2147483647.0, -2147483647ll - 1, 2147483647ll);
      break;
    default:
      static_cast<i64 *>(base)[at] = to_integer(v, -9223372036854775808.0, 9223372036854775807.0,
                                                -9223372036854775807ll - 1, 9223372036854775807ll);
  }
}

// The same bits from float, for the types that it has more digits than.
DNN_FN float canonical(float v) { return v != v ? float_of(0x7FC00000u) : v; }
DNN_FN u16 half_from(u32 type, float v) {
  if (type == F16) return v != v ? (u16)0x7E00 : half_of(v);
  const u32 bits = bits_of(v);
  return v != v ? (u16)0x7FC0 : (u16)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}
DNN_FN void store_single(void *base, u32 type, i64 at, float v) {
  if (type == F32) {
    static_cast<float *>(base)[at] = canonical(v);
  } else {
    static_cast<u16 *>(base)[at] = half_from(type, v);
  }
}

// Neighbours that one thread treats, and the widest access of memory for them.
constexpr u32 VECTOR = 4;
struct Vector {
  double v[VECTOR];
};
struct alignas(16) Singles {
  float v[VECTOR];
};
struct alignas(8) Halves {
  u16 v[VECTOR];
};

DNN_FN Vector repeated(double value) {
  Vector all;
DNN_UNROLL
  for (u32 i = 0; i < VECTOR; ++i) all.v[i] = value;
  return all;
}

// VECTOR doubles, aligned to two of them.
DNN_FN Vector doubles_at(const double *base) {
  struct alignas(16) Two {
    double v[2];
  };
  const Two low = reinterpret_cast<const Two *>(base)[0];
  const Two high = reinterpret_cast<const Two *>(base)[1];
  return {{low.v[0], low.v[1], high.v[0], high.v[1]}};
}

// The first `count` of VECTOR elements; `beside` each other, else the same one for all. Whole
// vectors of f32, f16 and bf16 must be aligned to their size.
DNN_FN Vector load_vector(const void *base, u32 type, i64 at, bool beside, u32 count) {
  if (!beside) return repeated(load(base, type, at));
  Vector all;
  if (count == VECTOR && type == F32) {
    const Singles s = *reinterpret_cast<const Singles *>(static_cast<const float *>(base) + at);
DNN_UNROLL
    for (u32 i = 0; i < VECTOR; ++i) all.v[i] = (double)s.v[i];
    return all;
  }
  if (count == VECTOR && (type == F16 || type == BF16)) {
    const Halves h = *reinterpret_cast<const Halves *>(static_cast<const u16 *>(base) + at);
DNN_UNROLL
    for (u32 i = 0; i < VECTOR; ++i)
      all.v[i] = (double)(type == F16 ? from_half(h.v[i]) : from_brain(h.v[i]));
    return all;
  }
DNN_UNROLL
  for (u32 i = 0; i < VECTOR; ++i) all.v[i] = i < count ? load(base, type, at + i) : 0.0;
  return all;
}

DNN_FN void store_vector(void *base, u32 type, i64 at, const Vector &all, u32 count) {
  if (count == VECTOR && type == F32) {
    Singles s;
DNN_UNROLL
    for (u32 i = 0; i < VECTOR; ++i) s.v[i] = to_single(all.v[i]);
    *reinterpret_cast<Singles *>(static_cast<float *>(base) + at) = s;
    return;
  }
  if (count == VECTOR && (type == F16 || type == BF16)) {
    Halves h;
DNN_UNROLL
    for (u32 i = 0; i < VECTOR; ++i) h.v[i] = type == F16 ? to_half(all.v[i]) : to_brain(all.v[i]);
    *reinterpret_cast<Halves *>(static_cast<u16 *>(base) + at) = h;
    return;
  }
DNN_UNROLL
  for (u32 i = 0; i < VECTOR; ++i) {
    if (i < count) store(base, type, at + i, all.v[i]);
  }
}

// The same in single precision, for f32, f16 and bf16.
DNN_FN Singles load_singles(const void *base, u32 type, i64 at, bool beside, u32 count) {
  Singles all;
  if (beside && count == VECTOR && type == F32)
    return *reinterpret_cast<const Singles *>(static_cast<const float *>(base) + at);
  if (beside && count == VECTOR) {
    const Halves h = *reinterpret_cast<const Halves *>(static_cast<const u16 *>(base) + at);
DNN_UNROLL
    for (u32 i = 0; i < VECTOR; ++i)
      all.v[i] = type == F16 ? from_half(h.v[i]) : from_brain(h.v[i]);
    return all;
  }
DNN_UNROLL
  for (u32 i = 0; i < VECTOR; ++i)
    all.v[i] = i < count ? load_as(base, type, beside ? at + i : at, 0.0f) : 0.0f;
  return all;
}

DNN_FN void store_singles(void *base, u32 type, i64 at, const Singles &all, u32 count) {
  if (count == VECTOR && type == F32) {
    Singles s;
DNN_UNROLL
    for (u32 i = 0; i < VECTOR; ++i) s.v[i] = canonical(all.v[i]);
    *reinterpret_cast<Singles *>(static_cast<float *>(base) + at) = s;
    return;
  }
  if (count == VECTOR) {
    Halves h;
DNN_UNROLL
    for (u32 i = 0; i < VECTOR; ++i) h.v[i] = half_from(type, all.v[i]);
    *reinterpret_cast<Halves *>(static_cast<u16 *>(base) + at) = h;
    return;
  }
DNN_UNROLL
  for (u32 i = 0; i < VECTOR; ++i) {
    if (i < count) store_single(base, type, at + i, all.v[i]);
  }
}
