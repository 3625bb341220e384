// Elementwise kernels: one element per thread.
#pragma once
#include "portable.hpp"

constexpr u32 MAX_RANK = 6;

// Extents from slowest to fastest, right aligned: unused ones come first and are 1.
struct Walk {
  u32 total;
  u32 rank;
  u32 dims[MAX_RANK];
};

// Steps in elements along the extents of a Walk.
struct Steps {
  i64 step[MAX_RANK];
};

// The offsets of element `index` in COUNT operands.
template <u32 COUNT>
DNN_FN void offsets(const Walk &walk, const Steps (&steps)[COUNT], u32 index, i64 (&at)[COUNT]) {
DNN_UNROLL
  for (u32 o = 0; o < COUNT; ++o) at[o] = 0;
DNN_UNROLL
  for (u32 i = 0; i < MAX_RANK; ++i) {
    const u32 axis = MAX_RANK - 1 - i;
    if (i >= walk.rank) continue;
    u32 digit = index;
    if (i + 1 < walk.rank) {
      const u32 rest = index / walk.dims[axis];
      digit = index - rest * walk.dims[axis];
      index = rest;
    }
DNN_UNROLL
    for (u32 o = 0; o < COUNT; ++o) at[o] += (i64)digit * steps[o].step[axis];
  }
}
