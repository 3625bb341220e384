// Pointwise operations: one element of the output from up to three operands.
//
// Values are computed in double from the operands and rounded once. Modes have hipDNN's numbers.
#pragma once
#include "elements.hpp"
#include "functions.hpp"
#include "walk.hpp"

struct PointwiseParams {
  void *out;
  const void *in[3];
  double constant[3];
  double lower, upper, slope, swish_beta, elu_alpha, softplus_beta;
  u32 out_type;
  u32 in_type[3];
  u32 mode;
  u32 axis;  // of the walk, GEN_INDEX only
  Walk walk;
  Steps steps[4];  // out, in_0, in_1, in_2
};

DNN_FN double truth(bool v) { return v ? 1.0 : 0.0; }

DNN_FN double relu(const PointwiseParams &p, double x) {
  if (x <= p.lower) return p.slope * (x - p.lower) + p.lower;
  return x >= p.upper ? p.upper : x;
}

DNN_FN double relu_slope(const PointwiseParams &p, double x) {
  if (x <= p.lower) return p.slope;
  return x > p.upper ? 0.0 : 1.0;
}

// ln(1 + e^x), without overflow above or cancellation below.
DNN_FN double softplus(double x) {
  if (x != x) return x;
  return (x > 0.0 ? x : 0.0) + logarithm_plus_one(exponential(-absolute(x)));
}

constexpr double SQRT_2_OVER_PI = 0x1.9884533d43651p-1;
constexpr double SQRT_HALF = 0x1.6a09e667f3bcdp-1;
constexpr double GELU_CUBIC = 0.044715;

DNN_FN double normal_cdf(double x) { return 0.5 * complementary_error_function(-x * SQRT_HALF); }
DNN_FN double normal_density(double x) {
  return 0.5 * SQRT_2_OVER_PI * exponential(-0.5 * x * x);
}
DNN_FN double gelu_argument(double x) { return SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x); }

DNN_FN double gelu_tanh_slope(double x) {
  const double u = 2.0 * gelu_argument(x);
  const double inner = SQRT_2_OVER_PI * (1.0 + 3.0 * GELU_CUBIC * x * x);
  return sigmoid(u) + 2.0 * x * sigmoid(u) * sigmoid(-u) * inner;
}

DNN_FN double swish_slope(double t) {
  const double s = sigmoid(t);
  return s + t * s * sigmoid(-t);
}

// dy / cosh(x)^2, without overflow.
DNN_FN double tanh_backward(double dy, double x) {
  const double e = exponential(-2.0 * absolute(x));
  return dy * (4.0 * e / ((1.0 + e) * (1.0 + e)));
}

// Whether the first operand and the result are of f32 or less.
DNN_FN bool is_single(const PointwiseParams &p) { return p.out_type <= BF16 && p.in_type[0] <= BF16; }

// The value of one mode.
template <u32 MODE>
DNN_FN double value_of_mode(const PointwiseParams &p, double x, double y, double z) {
  if constexpr (MODE == 1) return absolute(x);
  else if constexpr (MODE == 2) return x + y;
  else if constexpr (MODE == 3) return x + y * y;
  else if constexpr (MODE == 4) return z != 0.0 ? x : y;
  else if constexpr (MODE == 5) return ceiling(x);
  else if constexpr (MODE == 6) return truth(x == y);
  else if constexpr (MODE == 7) return truth(x >= y);
  else if constexpr (MODE == 8) return truth(x > y);
  else if constexpr (MODE == 9) return truth(x <= y);
  else if constexpr (MODE == 10) return truth(x < y);
  else if constexpr (MODE == 11) return truth(x != y);
  else if constexpr (MODE == 12) return x / y;
  else if constexpr (MODE == 13) return x * (y > 0.0 ? 1.0 : p.elu_alpha * exponential(y));
  else if constexpr (MODE == 14) return x > 0.0 ? x : p.elu_alpha * exponential_minus_one(x);
  else if constexpr (MODE == 15) return error_function(x);
  else if constexpr (MODE == 16) return exponential(x);
  else if constexpr (MODE == 17) return floored(x);
  else if constexpr (MODE == 18) return x * gelu_tanh_slope(y);
  else if constexpr (MODE == 19) return x * sigmoid(2.0 * gelu_argument(x));
  else if constexpr (MODE == 20) return x * (normal_cdf(y) + y * normal_density(y));
  else if constexpr (MODE == 21) return is_single(p) ? (double)gelu_single((float)x) : x * normal_cdf(x);
  else if constexpr (MODE == 23) return x;
  else if constexpr (MODE == 24) return logarithm(x);
  else if constexpr (MODE == 25) return truth(x != 0.0 && y != 0.0);
  else if constexpr (MODE == 26) return truth(x == 0.0);
  else if constexpr (MODE == 27) return truth(x != 0.0 || y != 0.0);
  else if constexpr (MODE == 28) return x > y || x != x ? x : y;
  else if constexpr (MODE == 29) return x < y || x != x ? x : y;
  else if constexpr (MODE == 30) return x * y;
  else if constexpr (MODE == 31) return -x;
  else if constexpr (MODE == 32) return 1.0 / x;
  else if constexpr (MODE == 33) return x * relu_slope(p, y);
  else if constexpr (MODE == 34) return relu(p, x);
  else if constexpr (MODE == 35) return 1.0 / square_root(x);
  else if constexpr (MODE == 36) return x * sigmoid(y) * sigmoid(-y);
  else if constexpr (MODE == 37) return sigmoid(x);
  else if constexpr (MODE == 38) return sine(x);
  else if constexpr (MODE == 39) return x * sigmoid(p.softplus_beta * y);
  else if constexpr (MODE == 40) return softplus(p.softplus_beta * x) / p.softplus_beta;
  else if constexpr (MODE == 41) return square_root(x);
  else if constexpr (MODE == 42) return x - y;
  else if constexpr (MODE == 43) return x * swish_slope(p.swish_beta * y);
  else if constexpr (MODE == 44) return x * sigmoid(p.swish_beta * x);
  else if constexpr (MODE == 45) return tangent(x);
  else if constexpr (MODE == 46) return tanh_backward(x, y);
  else if constexpr (MODE == 47) return hyperbolic_tangent(x);
  else return not_a_number();
}

// Modes of a few instructions, and the others: apart, so that those that only wait for memory
// need few registers and many of their threads can wait at once.
#define DNN_LIGHT_MODES(EACH)                                                                      \
  EACH(1) EACH(2) EACH(3) EACH(4) EACH(5) EACH(6) EACH(7) EACH(8) EACH(9) EACH(10) EACH(11)        \
  EACH(17) EACH(23) EACH(25) EACH(26) EACH(27) EACH(28) EACH(29) EACH(30) EACH(31) EACH(33)        \
  EACH(34) EACH(42)
#define DNN_HEAVY_MODES(EACH)                                                                      \
  EACH(12) EACH(13) EACH(14) EACH(15) EACH(16) EACH(18) EACH(19) EACH(20) EACH(21) EACH(24)        \
  EACH(32) EACH(35) EACH(36) EACH(37) EACH(38) EACH(39) EACH(40) EACH(41) EACH(43) EACH(44)        \
  EACH(45) EACH(46) EACH(47)

DNN_FN double pointwise(const PointwiseParams &p, double x, double y, double z) {
  switch (p.mode) {
#define DNN_CASE(mode) case mode: return value_of_mode<mode>(p, x, y, z);
    DNN_LIGHT_MODES(DNN_CASE)
    DNN_HEAVY_MODES(DNN_CASE)
#undef DNN_CASE
    default: return not_a_number();
  }
}

DNN_FN double operand(const PointwiseParams &p, u32 which, i64 at) {
  if (p.in_type[which] == CONSTANT) return p.constant[which];
  return load(p.in[which], p.in_type[which], at);
}

// The coordinate of element `index` along an axis of the walk.
DNN_FN u32 coordinate(const Walk &walk, u32 index, u32 wanted) {
  u32 found = 0;
DNN_UNROLL
  for (u32 i = 0; i < MAX_RANK; ++i) {
    const u32 axis = MAX_RANK - 1 - i;
    if (i >= walk.rank) continue;
    const u32 rest = index / walk.dims[axis];
    if (axis == wanted) found = index - rest * walk.dims[axis];
    index = rest;
  }
  return found;
}

DNN_FN void pointwise_block(const PointwiseParams &p, Block block) {
  DNN_THREADS(t) {
    const u32 index = block.x * DNN_BLOCK + t;
    if (index < p.walk.total) {
      i64 at[4];
      offsets(p.walk, p.steps, index, at);
      const double v = p.mode == 22
                           ? (double)coordinate(p.walk, index, p.axis)
                           : pointwise(p, operand(p, 0, at[1]), operand(p, 1, at[2]),
                                       operand(p, 2, at[3]));
      store(p.out, p.out_type, at[0], v);
    }
  }
}

// The same for VECTOR neighbours per thread, which lie side by side in the output and side by side
// or in one place in every operand: one decision for all of them, and wide loads and stores. The
// last thread may have fewer.
DNN_FN Vector operand_vector(const PointwiseParams &p, u32 which, i64 at, u32 count) {
  if (p.in_type[which] == CONSTANT) return repeated(p.constant[which]);
  const bool beside = p.steps[which + 1].step[MAX_RANK - 1] != 0;
  return load_vector(p.in[which], p.in_type[which], at, beside, count);
}

#define DNN_CASE(mode)                                                                             \
  case mode:                                                                                       \
    DNN_UNROLL                                                                                     \
    for (u32 i = 0; i < VECTOR; ++i)                                                               \
      x.v[i] = value_of_mode<mode>(p, x.v[i], y.v[i], z.v[i]);                                     \
    break;
#define DNN_VECTOR_BLOCK(name, MODES)                                                              \
  DNN_FN void name(const PointwiseParams &p, Block block) {                                        \
    DNN_THREADS(t) {                                                                               \
      const u32 index = (block.x * DNN_BLOCK + t) * VECTOR;                                        \
      if (index < p.walk.total) {                                                                  \
        i64 at[4];                                                                                 \
        offsets(p.walk, p.steps, index, at);                                                       \
        const u32 count = p.walk.total - index < VECTOR ? p.walk.total - index : VECTOR;           \
        Vector x = operand_vector(p, 0, at[1], count);                                             \
        const Vector y = operand_vector(p, 1, at[2], count);                                       \
        const Vector z = operand_vector(p, 2, at[3], count);                                       \
        switch (p.mode) {                                                                          \
          MODES(DNN_CASE)                                                                          \
          default: x = repeated(not_a_number());                                                   \
        }                                                                                          \
        store_vector(p.out, p.out_type, at[0], x, count);                                          \
      }                                                                                            \
    }                                                                                              \
  }
DNN_VECTOR_BLOCK(pointwise_light_block, DNN_LIGHT_MODES)
DNN_VECTOR_BLOCK(pointwise_heavy_block, DNN_HEAVY_MODES)
#undef DNN_CASE
#undef DNN_VECTOR_BLOCK

// The same in single precision, for the mode whose function is worked out in it: GELU, where
// `is_single`.
DNN_FN void pointwise_single_block(const PointwiseParams &p, Block block) {
  DNN_THREADS(t) {
    const u32 index = (block.x * DNN_BLOCK + t) * VECTOR;
    if (index < p.walk.total) {
      i64 at[4];
      offsets(p.walk, p.steps, index, at);
      const u32 count = p.walk.total - index < VECTOR ? p.walk.total - index : VECTOR;
      const bool beside = p.steps[1].step[MAX_RANK - 1] != 0;
      Singles x = load_singles(p.in[0], p.in_type[0], at[1], beside, count);
DNN_UNROLL
      for (u32 i = 0; i < VECTOR; ++i) x.v[i] = gelu_single(x.v[i]);
      store_singles(p.out, p.out_type, at[0], x, count);
    }
  }
}
