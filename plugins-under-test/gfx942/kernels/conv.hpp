// Convolutions as one matrix product whose operands are gathered on the fly (implicit GEMM).
//
//     out(row, column) = sum over depth, ascending, of a(row, depth) * b(column, depth)
//
//               rows          columns      depth
//     fprop     n, output     filter       channel, tap
//     dgrad     n, input      channel      filter, tap
//     wgrad     filter        channel, tap n, output
//
// An operand's element is found from a row part and a depth part. Both are mixed-radix numbers
// whose digits add to an offset, and to a position on up to three spatial axes. Where a position
// is not a multiple of the axis's divisor, or outside its extent, the element is 0 (padding, and
// the holes of a strided dgrad). Each output element is one chain of fused multiply-adds in the
// order of the depth, so the bits do not depend on the tiling. A long depth is split into parts of
// a fixed length that depends on the shapes alone; their sums are added in order.
#pragma once
#include "elements.hpp"

constexpr u32 AXES = 3;

struct Decoder {
  u32 radix[AXES];  // of digits 1, 2 and 3; digit 0 is what remains
  u32 unused;
  i64 step[AXES + 1];
  i32 factor[AXES];  // position[a] = digit[a + 1] * factor[a] + offset[a]
  i32 offset[AXES];
};

struct Operand {
  const void *base;
  Decoder row, depth;
  i64 step[AXES];
  i32 extent[AXES];
  i32 divisor[AXES];
  i64 group;  // elements from one group of channels to the next
  u32 type;
  u32 spatial;  // 0: positions are not looked at
};

struct ConvParams {
  Operand a, b;
  Decoder row, column;  // of the output: offsets only
  void *out;
  void *partial;  // sums of the parts, where there are more than one
  i64 group;
  u32 out_type;
  u32 rows, columns, depth;
  u32 groups;
  u32 parts, part;  // how many, and how deep each is
  u32 beside;       // A_BESIDE and B_BESIDE, for conv_linear.hpp only
};

struct Place {
  i64 offset;
  i32 position[AXES];
};

DNN_FN Place decoded(const Decoder &d, u32 index) {
  u32 digit[AXES];
DNN_UNROLL
  for (u32 i = 0; i < AXES; ++i) {
    const u32 a = AXES - 1 - i;
    digit[a] = 0;
    if (d.radix[a] > 1) {
      const u32 rest = index / d.radix[a];
      digit[a] = index - rest * d.radix[a];
      index = rest;
    }
  }
  Place place;
  place.offset = (i64)index * d.step[0];
DNN_UNROLL
  for (u32 a = 0; a < AXES; ++a) {
    place.offset += (i64)digit[a] * d.step[a + 1];
    place.position[a] = (i32)digit[a] * d.factor[a] + d.offset[a];
  }
  return place;
}

template <class T>
DNN_FN T gathered(const Operand &o, i64 base, const Place &row, const Place &depth) {
  i64 at = base + row.offset + depth.offset;
  if (o.spatial) {
DNN_UNROLL
    for (u32 a = 0; a < AXES; ++a) {
      i32 position = row.position[a] + depth.position[a];
      if (position < 0) return T(0);
      if (o.divisor[a] != 1) {
        const i32 quotient = position / o.divisor[a];
        if (quotient * o.divisor[a] != position) return T(0);
        position = quotient;
      }
      if (position >= o.extent[a]) return T(0);
      at += (i64)position * o.step[a];
    }
  }
  return load_as(o.base, o.type, at, T());
}

// A tile of ROWS x COLUMNS outputs per block, of R x C per thread, DEPTH deep at a time.
template <class T, u32 R, u32 C, u32 DEPTH>
DNN_FN void conv_block(const ConvParams &p, Block block) {
  constexpr u32 ACROSS = 16;  // threads along the columns
  constexpr u32 ROWS = DNN_BLOCK / ACROSS * R, COLUMNS = ACROSS * C;
  DNN_SHARED T a_tile[DEPTH][ROWS] __attribute__((aligned(16)));
  DNN_SHARED T b_tile[DEPTH][COLUMNS] __attribute__((aligned(16)));
  DNN_SHARED Place a_depth[DEPTH];
  DNN_SHARED Place b_depth[DEPTH];
  struct Sums {
    T v[R][C];
  };
  DNN_PRIVATE(Sums, sums);
  DNN_PRIVATE(Place, a_row);
  DNN_PRIVATE(Place, b_row);

  const u32 group = block.z / p.parts, part = block.z - group * p.parts;
  const u32 row0 = block.x * ROWS, column0 = block.y * COLUMNS;
  const u32 begin = part * p.part;
  const u32 end = begin + p.part < p.depth ? begin + p.part : p.depth;
  const i64 a_base = (i64)group * p.a.group, b_base = (i64)group * p.b.group;

  DNN_THREADS(t) {
    DNN_MINE(a_row, t) = decoded(p.a.row, row0 + t % ROWS);
    DNN_MINE(b_row, t) = decoded(p.b.row, column0 + t % COLUMNS);
DNN_UNROLL
    for (u32 i = 0; i < R; ++i) {
DNN_UNROLL
      for (u32 j = 0; j < C; ++j) DNN_MINE(sums, t).v[i][j] = T(0);
    }
  }
  for (u32 deep = begin; deep < end; deep += DEPTH) {
    DNN_THREADS(t) {
      if (t < DEPTH) a_depth[t] = decoded(p.a.depth, deep + t);
      if (t >= DEPTH && t < 2 * DEPTH) b_depth[t - DEPTH] = decoded(p.b.depth, deep + t - DEPTH);
    }
    DNN_BARRIER();
    DNN_THREADS(t) {
      const bool a_there = row0 + t % ROWS < p.rows;
DNN_UNROLL
      for (u32 i = 0; i < DEPTH * ROWS / DNN_BLOCK; ++i) {
        const u32 k = t / ROWS + i * (DNN_BLOCK / ROWS);
        a_tile[k][t % ROWS] = a_there && deep + k < end
                                  ? gathered<T>(p.a, a_base, DNN_MINE(a_row, t), a_depth[k])
                                  : T(0);
      }
      const bool b_there = column0 + t % COLUMNS < p.columns;
DNN_UNROLL
      for (u32 i = 0; i < DEPTH * COLUMNS / DNN_BLOCK; ++i) {
        const u32 k = t / COLUMNS + i * (DNN_BLOCK / COLUMNS);
        b_tile[k][t % COLUMNS] = b_there && deep + k < end
                                     ? gathered<T>(p.b, b_base, DNN_MINE(b_row, t), b_depth[k])
                                     : T(0);
      }
    }
    DNN_BARRIER();
    DNN_THREADS(t) {
      const u32 r = t / ACROSS * R, c = t % ACROSS * C;
      // A thread whose whole tile is outside has nothing to add up.
      if (row0 + r < p.rows && column0 + c < p.columns) {
        const u32 deepest = end - deep < DEPTH ? end - deep : DEPTH;
        for (u32 k = 0; k < deepest; ++k) {
DNN_UNROLL
          for (u32 i = 0; i < R; ++i) {
DNN_UNROLL
            for (u32 j = 0; j < C; ++j) {
              T &sum = DNN_MINE(sums, t).v[i][j];
              sum = fused(a_tile[k][r + i], b_tile[k][c + j], sum);
            }
          }
        }
      }
    }
    DNN_BARRIER();
  }
  DNN_THREADS(t) {
    const u32 r = row0 + t / ACROSS * R, c = column0 + t % ACROSS * C;
DNN_UNROLL
    for (u32 i = 0; i < R; ++i) {
      if (r + i >= p.rows) continue;
      const i64 row = decoded(p.row, r + i).offset;
DNN_UNROLL
      for (u32 j = 0; j < C; ++j) {
        if (c + j >= p.columns) continue;
        const T sum = DNN_MINE(sums, t).v[i][j];
        if (p.parts > 1) {
          const u64 plane = (u64)part * p.groups + group;
          static_cast<T *>(p.partial)[(plane * p.rows + r + i) * p.columns + c + j] = sum;
        } else {
          const i64 at = (i64)group * p.group + row + decoded(p.column, c + j).offset;
          store(p.out, p.out_type, at, (double)sum);
        }
      }
    }
  }
}

// Adds the parts of each element, in order.
template <class T>
DNN_FN void conv_sum_block(const ConvParams &p, Block block) {
  DNN_THREADS(t) {
    const u64 index = (u64)block.x * DNN_BLOCK + t;
    const u64 plane = (u64)p.rows * p.columns;
    if (index < plane * p.groups) {
      const T *partial = static_cast<const T *>(p.partial) + index;
      T sum = T(0);
      for (u32 i = 0; i < p.parts; ++i) sum = sum + partial[(u64)i * p.groups * plane];
      const u32 group = (u32)(index / plane);
      const u32 rest = (u32)(index - (u64)group * plane);
      const u32 row = rest / p.columns;
      const i64 at = (i64)group * p.group + decoded(p.row, row).offset +
                     decoded(p.column, rest - row * p.columns).offset;
      store(p.out, p.out_type, at, (double)sum);
    }
  }
}
