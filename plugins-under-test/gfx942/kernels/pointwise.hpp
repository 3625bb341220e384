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
  return (x > 0.0 ? x : 0.0) + logarithm_plus_one(exponential(-__builtin_fabs(x)));
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
  const double e = exponential(-2.0 * __builtin_fabs(x));
  return dy * (4.0 * e / ((1.0 + e) * (1.0 + e)));
}

DNN_FN double pointwise(const PointwiseParams &p, double x, double y, double z) {
  switch (p.mode) {
    case 1: return __builtin_fabs(x);
    case 2: return x + y;
    case 3: return x + y * y;
    case 4: return z != 0.0 ? x : y;
    case 5: return __builtin_ceil(x);
    case 6: return truth(x == y);
    case 7: return truth(x >= y);
    case 8: return truth(x > y);
    case 9: return truth(x <= y);
    case 10: return truth(x < y);
    case 11: return truth(x != y);
    case 12: return x / y;
    case 13: return x * (y > 0.0 ? 1.0 : p.elu_alpha * exponential(y));
    case 14: return x > 0.0 ? x : p.elu_alpha * exponential_minus_one(x);
    case 15: return error_function(x);
    case 16: return exponential(x);
    case 17: return __builtin_floor(x);
    case 18: return x * gelu_tanh_slope(y);
    case 19: return x * sigmoid(2.0 * gelu_argument(x));
    case 20: return x * (normal_cdf(y) + y * normal_density(y));
    case 21: return x * normal_cdf(x);
    case 23: return x;
    case 24: return logarithm(x);
    case 25: return truth(x != 0.0 && y != 0.0);
    case 26: return truth(x == 0.0);
    case 27: return truth(x != 0.0 || y != 0.0);
    case 28: return x > y || x != x ? x : y;
    case 29: return x < y || x != x ? x : y;
    case 30: return x * y;
    case 31: return -x;
    case 32: return 1.0 / x;
    case 33: return x * relu_slope(p, y);
    case 34: return relu(p, x);
    case 35: return 1.0 / __builtin_sqrt(x);
    case 36: return x * sigmoid(y) * sigmoid(-y);
    case 37: return sigmoid(x);
    case 38: return sine(x);
    case 39: return x * sigmoid(p.softplus_beta * y);
    case 40: return softplus(p.softplus_beta * x) / p.softplus_beta;
    case 41: return __builtin_sqrt(x);
    case 42: return x - y;
    case 43: return x * swish_slope(p.swish_beta * y);
    case 44: return x * sigmoid(p.swish_beta * x);
    case 45: return tangent(x);
    case 46: return tanh_backward(x, y);
    case 47: return hyperbolic_tangent(x);
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
