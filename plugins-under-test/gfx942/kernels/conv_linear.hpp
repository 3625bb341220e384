// The common convolutions, faster: the same product as in conv.hpp, in the same order and so with
// the same bits, where no axis has a divisor, 32 bits hold every offset and 28 every
// position.
//
// Then an element lies at the sum of two offsets, one of its row and one of its depth, and it is
// inside the image where, on each axis, the sum of two positions is below the extent as an
// unsigned number. Rows behind the last and depths behind the end get a position that fails that.
//
// Where the depths of an operand lie side by side (weights; channels-last images under a window of
// one; the gradient in a weight's gradient), a thread takes its depths of a tile with wide loads.
//
// A block has a tile of 256 x 64 outputs, a thread 8 x 8 of them: two runs of four rows by two
// runs of four columns, so that the threads of a warp read neighbours. While a tile of DEEP depths
// is multiplied, the next one is on its way to registers.
#pragma once
#include "conv.hpp"

struct Spot {
  u32 offset;
  u32 position[AXES];
};

// Beyond every extent, twice too, and with any position of a window added.
constexpr u32 NOWHERE = 0x40000000u;
constexpr u32 LINEAR_ROWS = 256, LINEAR_COLUMNS = 64, DEEP = 8;
// Operands whose depths of a tile lie side by side and are aligned for the widest loads.
constexpr u32 A_BESIDE = 1, B_BESIDE = 2;
constexpr u32 A_EACH = DEEP * LINEAR_ROWS / DNN_BLOCK, B_EACH = DEEP * LINEAR_COLUMNS / DNN_BLOCK;

DNN_FN Spot spot(const Operand &o, const Decoder &d, u32 index, bool there) {
  const Place place = decoded(d, index);
  Spot s;
  i64 offset = place.offset;
DNN_UNROLL
  for (u32 a = 0; a < AXES; ++a) {
    offset += o.spatial ? (i64)place.position[a] * o.step[a] : 0;
    s.position[a] = o.spatial ? (u32)place.position[a] : 0;
  }
  s.offset = (u32)offset;
  if (!there) s.position[0] = NOWHERE;
  return s;
}

template <u32 TYPE, class Element>
DNN_FN float single_of(Element element) {
  if constexpr (TYPE == F32) return element;
  else if constexpr (TYPE == F16) return from_half(element);
  else return from_brain(element);
}

template <u32 TYPE, class Element>
DNN_FN float element_at(const Element *base, const u32 (&extent)[AXES], const Spot &row,
                        const Spot &depth) {
  const bool inside = row.position[0] + depth.position[0] < extent[0] &&
                      row.position[1] + depth.position[1] < extent[1] &&
                      row.position[2] + depth.position[2] < extent[2];
  if (!inside) return 0.0f;
  return single_of<TYPE>(base[(i32)(row.offset + depth.offset)]);
}

template <class Element, u32 COUNT>
struct alignas(sizeof(Element) * COUNT < 16 ? sizeof(Element) * COUNT : 16) Beside {
  Element v[COUNT];
};

// EACH elements of one row, from depth `first` of a tile on.
template <u32 TYPE, class Element, u32 EACH>
DNN_FN void fetch_as(const void *base, i64 group, const u32 (&extent)[AXES], const Spot &row,
                     const Spot (&depths)[DEEP], u32 first, bool beside, float (&to)[EACH]) {
  const Element *at = static_cast<const Element *>(base) + group;
  if (beside) {  // without positions: the first of them says whether the row is there
    Beside<Element, EACH> all{};
    if (row.position[0] < extent[0])
      all = *reinterpret_cast<const Beside<Element, EACH> *>(
          at + (i32)(row.offset + depths[first].offset));
DNN_UNROLL
    for (u32 i = 0; i < EACH; ++i) to[i] = single_of<TYPE>(all.v[i]);
    return;
  }
DNN_UNROLL
  for (u32 i = 0; i < EACH; ++i) to[i] = element_at<TYPE>(at, extent, row, depths[first + i]);
}

template <u32 EACH>
DNN_FN void fetch(const Operand &o, i64 group, const Spot &row, const Spot (&depths)[DEEP],
                  u32 first, bool beside, float (&to)[EACH]) {
  u32 extent[AXES];
DNN_UNROLL
  for (u32 a = 0; a < AXES; ++a) extent[a] = o.spatial ? (u32)o.extent[a] : 1u;
  if (o.type == F32) fetch_as<F32, float>(o.base, group, extent, row, depths, first, beside, to);
  else if (o.type == F16) fetch_as<F16, u16>(o.base, group, extent, row, depths, first, beside, to);
  else fetch_as<BF16, u16>(o.base, group, extent, row, depths, first, beside, to);
}

DNN_FN u32 linear_row(u32 t, u32 i) { return t / 8 * 4 + i / 4 * (LINEAR_ROWS / 2) + i % 4; }
DNN_FN u32 linear_column(u32 t, u32 j) {
  return t % 8 * 4 + j / 4 * (LINEAR_COLUMNS / 2) + j % 4;
}

struct LinearSums {
  float v[8][8];
};
struct LinearNext {
  float a[A_EACH], b[B_EACH];
};

DNN_FN void conv_linear_block(const ConvParams &p, Block block) {
  DNN_SHARED float a_tile[2][DEEP][LINEAR_ROWS] __attribute__((aligned(16)));
  DNN_SHARED float b_tile[2][DEEP][LINEAR_COLUMNS] __attribute__((aligned(16)));
  DNN_SHARED Spot a_depth[2][DEEP];
  DNN_SHARED Spot b_depth[2][DEEP];
  DNN_PRIVATE(LinearSums, sums);
  DNN_PRIVATE(LinearNext, next);
  DNN_PRIVATE(Spot, a_row);
  DNN_PRIVATE(Spot, b_row);

  const u32 group = block.z / p.parts, part = block.z - group * p.parts;
  const u32 row0 = block.x * LINEAR_ROWS, column0 = block.y * LINEAR_COLUMNS;
  const u32 begin = part * p.part;
  const u32 end = begin + p.part < p.depth ? begin + p.part : p.depth;
  const i64 a_base = (i64)group * p.a.group, b_base = (i64)group * p.b.group;

  // Depths of the tile at `deep`, by the first threads, into one of two tables.
#define DNN_DEPTHS(t, deep, table)                                                                 \
  if (t < DEEP) a_depth[table][t] = spot(p.a, p.a.depth, (deep) + t, (deep) + t < end);            \
  if (t >= DEEP && t < 2 * DEEP)                                                                   \
    b_depth[table][t - DEEP] =                                                                     \
        spot(p.b, p.b.depth, (deep) + t - DEEP, (deep) + t - DEEP < end);
#define DNN_FETCH(t, deep, table)                                                                  \
  fetch(p.a, a_base, DNN_MINE(a_row, t), a_depth[table], 0,                                        \
        (p.beside & A_BESIDE) && (deep) + DEEP <= end, DNN_MINE(next, t).a);                       \
  fetch(p.b, b_base, DNN_MINE(b_row, t), b_depth[table], t / LINEAR_COLUMNS * B_EACH,              \
        (p.beside & B_BESIDE) && (deep) + DEEP <= end, DNN_MINE(next, t).b);
#define DNN_KEEP(t, buffer)                                                                        \
  DNN_UNROLL                                                                                       \
  for (u32 i = 0; i < A_EACH; ++i) a_tile[buffer][i][t] = DNN_MINE(next, t).a[i];                  \
  DNN_UNROLL                                                                                       \
  for (u32 i = 0; i < B_EACH; ++i)                                                                 \
    b_tile[buffer][t / LINEAR_COLUMNS * B_EACH + i][t % LINEAR_COLUMNS] = DNN_MINE(next, t).b[i];

  DNN_THREADS(t) {
    DNN_MINE(a_row, t) = spot(p.a, p.a.row, row0 + t, row0 + t < p.rows);
    const u32 column = column0 + t % LINEAR_COLUMNS;
    DNN_MINE(b_row, t) = spot(p.b, p.b.row, column, column < p.columns);
DNN_UNROLL
    for (u32 i = 0; i < 8; ++i) {
DNN_UNROLL
      for (u32 j = 0; j < 8; ++j) DNN_MINE(sums, t).v[i][j] = 0.0f;
    }
    DNN_DEPTHS(t, begin, 0)
  }
  DNN_BARRIER();
  DNN_THREADS(t) {
    DNN_FETCH(t, begin, 0)
    DNN_KEEP(t, 0)
    DNN_DEPTHS(t, begin + DEEP, 1)
  }
  DNN_BARRIER();
  u32 now = 0;
  for (u32 deep = begin; deep < end; deep += DEEP) {
    const bool more = deep + DEEP < end;
    DNN_THREADS(t) {
      if (more) {
        DNN_FETCH(t, deep + DEEP, now ^ 1)
      }
    }
    DNN_THREADS(t) {
      // A thread whose whole tile is outside has nothing to add up. What is behind the end of the
      // depth is not added: 0 * x would turn -0 into 0, and an infinite x into NaN.
      if (row0 + linear_row(t, 0) < p.rows && column0 + linear_column(t, 0) < p.columns) {
        const u32 deepest = end - deep < DEEP ? end - deep : DEEP;
        for (u32 k = 0; k < deepest; ++k) {
DNN_UNROLL
          for (u32 i = 0; i < 8; ++i) {
DNN_UNROLL
            for (u32 j = 0; j < 8; ++j) {
              float &sum = DNN_MINE(sums, t).v[i][j];
              sum = fused(a_tile[now][k][linear_row(t, i)], b_tile[now][k][linear_column(t, j)],
                          sum);
            }
          }
        }
      }
    }
    DNN_THREADS(t) {
      if (more) {
        DNN_KEEP(t, now ^ 1)
        DNN_DEPTHS(t, deep + 2 * DEEP, now)
      }
    }
    DNN_BARRIER();
    now ^= 1;
  }
  DNN_THREADS(t) {
    const u32 plane = part * p.groups + group;
    i64 columns[8];
DNN_UNROLL
    for (u32 j = 0; j < 8; ++j)
      columns[j] = (i64)group * p.group + decoded(p.column, column0 + linear_column(t, j)).offset;
DNN_UNROLL
    for (u32 i = 0; i < 8; ++i) {
      const u32 r = row0 + linear_row(t, i);
      const i64 row = decoded(p.row, r).offset;
DNN_UNROLL
      for (u32 j = 0; j < 8; ++j) {
        const u32 c = column0 + linear_column(t, j);
        const float sum = DNN_MINE(sums, t).v[i][j];
        if (r >= p.rows || c >= p.columns) continue;
        if (p.parts > 1)
          static_cast<float *>(p.partial)[((u64)plane * p.rows + r) * p.columns + c] = sum;
        else
          store_single(p.out, p.out_type, row + columns[j], sum);
      }
    }
  }
#undef DNN_DEPTHS
#undef DNN_FETCH
#undef DNN_KEEP
}
