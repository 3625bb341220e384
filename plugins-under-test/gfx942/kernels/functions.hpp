// Transcendental functions without a library, the same bits on every target: in double, and GELU in
// single precision too.
//
// They use +, -, *, /, fma, sqrt and rounding only, each correctly rounded by the targets. The
// polynomials are Taylor series where the interval is short enough for their tail to vanish below
// 2^-57, and Chebyshev expansions of our own fit (50 digits, tail below 2^-57) for erf and erfc.
// Error on their domain: below 4 units in the last place of double for exp, expm1, log, log1p,
// tanh, erf and erfc (whose exp(-x*x) adds x*x*2^-52), below 2^-30 of the value for sin, cos and
// tan at arguments beyond 2^20, which must be values of float. Rounded to float each is within
// 0.51 units in the last place, GELU in single precision within 3.2; a test measures that.
#pragma once
#include "portable.hpp"

template <class T>
DNN_FN T horner(T, T c) {
  return c;
}
template <class T, class... Rest>
DNN_FN T horner(T x, T c, Rest... rest) {
  return fused(horner(x, rest...), x, c);
}

// Clenshaw's sum of a Chebyshev expansion, coefficients from the highest degree down.
DNN_FN double chebyshev(double t, double b1, double b2, double c) { return fused(t, b1, c - b2); }
template <class... Rest>
DNN_FN double chebyshev(double t, double b1, double b2, double c, Rest... rest) {
  return chebyshev(t, fused(2.0 * t, b1, c - b2), b1, rest...);
}

// 2^k for -1022 <= k <= 1023.
DNN_FN double power_of_two(i32 k) { return double_of((u64)(k + 1023) << 52); }

// v * 2^k, rounded once more only where the result is subnormal.
DNN_FN double scaled(double v, i32 k) {
  const i32 half = k / 2;
  return v * power_of_two(half) * power_of_two(k - half);
}

constexpr double LN2_HIGH = 0x1.62e42fefa3800p-1;  // 42 bits: times an exponent it is exact
constexpr double LN2_LOW = 0x1.ef35793c76730p-45;

// (e^r - 1 - r) / r^2 for |r| <= ln(2)/2.
DNN_FN double exp_tail(double r) {
  return horner(r, 0x1p-1, 0x1.5555555555555p-3, 0x1.5555555555555p-5, 0x1.1111111111111p-7,
                0x1.6c16c16c16c17p-10, 0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-16,
                0x1.71de3a556c734p-19, 0x1.27e4fb7789f5cp-22, 0x1.ae64567f544e4p-26,
                0x1.1eed8eff8d898p-29, 0x1.6124613a86d09p-33);
}


// x = exponent * ln(2) + r with |r| <= ln(2)/2 (1 + 2^-40), for |x| < 2^20. Adding 1.5 * 2^52 rounds
// to an integer, which then is the low bits.
DNN_FN double exp_reduced(double x, i32 &exponent) {
  const double rounded = fused(x, 0x1.71547652b82fep+0, 0x1.8p52);
  const double k = rounded - 0x1.8p52;
  exponent = (i32)(u32)bits_of(rounded);
  return fused(-k, LN2_LOW, fused(-k, LN2_HIGH, x));
}

// Without branches: beyond the limits the scaling gives infinity and 0 by itself, and NaN stays.
DNN_FN double exponential(double x) {
  const double below = x > 710.0 ? 710.0 : x;
  const double within = below < -746.0 ? -746.0 : below;
  i32 exponent;
  const double r = exp_reduced(within, exponent);
  return scaled(fused(r * r, exp_tail(r), r) + 1.0, exponent);
}

// e^x - 1.
DNN_FN double exponential_minus_one(double x) {
  if (absolute(x) < 0.34) return fused(x * x, exp_tail(x), x);
  return exponential(x) - 1.0;
}

// ln((1 + s) / (1 - s)) for |s| <= 0.1716.
DNN_FN double twice_artanh(double s) {
  return s * horner(s * s, 0x1p+1, 0x1.5555555555555p-1, 0x1.999999999999ap-2, 0x1.2492492492492p-2,
                    0x1.c71c71c71c71cp-3, 0x1.745d1745d1746p-3, 0x1.3b13b13b13b14p-3,
                    0x1.1111111111111p-3, 0x1.e1e1e1e1e1e1ep-4, 0x1.af286bca1af28p-4,
                    0x1.8618618618618p-4, 0x1.642c8590b2164p-4);
}

DNN_FN double logarithm(double x) {
  if (x != x || x < 0.0) return not_a_number();
  if (x == 0.0) return -infinity();
  if (x == infinity()) return x;
  i32 exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent = -54;
  }
  u64 bits = bits_of(x);
  exponent += (i32)(bits >> 52) - 1023;
  double m = double_of((bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    exponent += 1;
  }
  const double f = m - 1.0;
  const double part = twice_artanh(f / (2.0 + f));
  const double e = (double)exponent;
  return fused(e, LN2_HIGH, fused(e, LN2_LOW, part));
}

// ln(1 + x) for 0 <= x <= 1.
DNN_FN double logarithm_plus_one(double x) {
  if (x < 0.41) return twice_artanh(x / (2.0 + x));
  return logarithm(1.0 + x);
}

DNN_FN double hyperbolic_tangent(double x) {
  const double a = absolute(x);
  if (a > 22.0) return with_sign(1.0, x);
  const double e = exponential_minus_one(2.0 * a);
  return with_sign(e / (e + 2.0), x);
}

// erf(x) for |x| <= 1.
DNN_FN double error_function_near(double x) {
  return x * horner(x * x, 0x1.20dd750429b6dp+0, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b32p-4,
                    -0x1.b82ce31284e9cp-6, 0x1.565bcd0dbc1adp-8, -0x1.c02db3db06d60p-11,
                    0x1.f9a321dd3898cp-14, -0x1.f4d1e3a67dc3ep-17, 0x1.b9df2954a9147p-20,
                    -0x1.5f1f0634fb062p-23, 0x1.f7b72e5bcd4ffp-27, -0x1.38a4b8db8a7c5p-30,
                    0x1.0613987edce0dp-34);
}

// erfc(x) for x >= 0.4: exp(-x*x) times a Chebyshev expansion of erfcx(x) * (1 + 2x) in
// t = (x - 3) / (x + 3).
DNN_FN double error_function_tail(double x) {
  if (x > 27.3) return 0.0;
  const double t = (x - 3.0) / (x + 3.0);
  const double sum = chebyshev(
      t, 0.0, 0.0, 0x1.cd735a47689e1p-54, 0x1.0f1961ec15384p-52, -0x1.b53df628d2864p-50,
      -0x1.06936b1f73973p-47, 0x1.638030c63c7f0p-46, 0x1.985a4960fe196p-43, -0x1.d4332818308fep-43,
      -0x1.2cfdb55ec9583p-38, 0x1.9f608af345dfcp-40, 0x1.c7b5541def983p-34, -0x1.00dc1e286e8a4p-36,
      -0x1.7304e1f937812p-29, 0x1.032a101f63204p-29, 0x1.44433d928dcbap-24, -0x1.84299dc44cfe9p-23,
      -0x1.0d67d92ebb170p-19, 0x1.aee3ed67adcfbp-17, 0x1.285081fb7471ep-16, -0x1.4c2a11331e0e4p-11,
      0x1.23dc174a04d86p-8, -0x1.36e99d8ff90f7p-6, 0x1.bd5ede288613bp-5, -0x1.801abe05df685p-4,
      0x1.5edf9ce74f65ep-8, 0x1.2d74bda92af4ep+0);
  const double square = x * x;
  const double lost = fused(x, x, -square);
  const double gauss = exponential(-square);
  return (gauss - gauss * lost) * (sum / fused(2.0, x, 1.0));
}

DNN_FN double error_function(double x) {
  const double a = absolute(x);
  if (!(a > 0.9)) return error_function_near(x);
  return with_sign(1.0 - error_function_tail(a), x);
}

DNN_FN double complementary_error_function(double x) {
  if (!(absolute(x) > 0.45)) return 1.0 - error_function_near(x);
  if (x < 0.0) return 2.0 - error_function_tail(-x);
  return error_function_tail(x);
}

// GELU in single precision, x times the normal distribution's integral up to x: for operands and
// results of f32 or less, where the arithmetic of double would cost more time than the memory. With
// a = |x|:
//
// below 0.8 x/2 + x^2 P(x^2), where P(x^2) is (integral - 1/2) / x; beyond, from
// h = a * integral up to -a = exp(-a^2/2) Q(t) with t = (a - 4) / (a + 4): x - h for positive, and -h
// for negative x. P and Q are Chebyshev fits of our own (40 digits, tails below 2^-28), written in
// powers. Both are computed, and one is taken, without a branch.
DNN_FN float gelu_single(float x) {
  constexpr float LAST = 15.0f;  // beyond, h is below half the least float
  constexpr float ROUNDER = 0x1.8p23f;  // added, it rounds to an integer: the low bits
  const float magnitude = x < 0.0f ? -x : x;
  const float a = magnitude > LAST ? LAST : magnitude;
  const float square = a * a;
  const float slope = horner(square, 0x1.988454p-2f, -0x1.105804p-4f, 0x1.46bd72p-7f,
                             -0x1.34ddeep-10f, 0x1.a42b16p-14f);
  const float near = fused(square, slope, 0.5f * x);
  // 1 / (a + 4): a guess from the bits, with an error e below 0.051, and twice it becomes e^3.
  const float d = a + 4.0f;
  float inverse = float_of(0x7EF311C2u - bits_of(d));
DNN_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    const float e = fused(-d, inverse, 1.0f);
    inverse = fused(inverse, fused(e, e, e), inverse);
  }
  // t, with what rounding a + 4 and its inverse took.
  const float off = fused(d - 4.0f - a, inverse, fused(-d, inverse, 1.0f));
  const float t = fused(-8.0f * off, inverse, fused(-8.0f, inverse, 1.0f));
  const float sum = horner(t, 0x1.82b4bcp-2f, 0x1.2dda04p-4f, -0x1.c41d6cp-4f, 0x1.9adc46p-4f,
                           -0x1.024dfcp-4f, 0x1.b102e0p-6f, -0x1.69124ep-8f, -0x1.e72d20p-11f,
                           0x1.cc7194p-11f, -0x1.22294ap-15f, -0x1.af2deep-14f);
  // exp(-a^2/2) = 2^k * e^r, with what rounding took from a^2. 2^k is put in two halves into the
  // exponents' bits, the second last, so that only a subnormal result is rounded once more.
  const float lost = fused(a, a, -square);
  const float rounded = fused(square, -0x1.715476p-1f, ROUNDER);
  const float k = rounded - ROUNDER;
  const float high = fused(k, -0x1.62e400p-1f, -0.5f * square);
  const float r = fused(lost, -0.5f, fused(k, -0x1.7f7d1cp-20f, high));
  const float power = horner(r, 1.0f, 1.0f, 0.5f, 0x1.555556p-3f, 0x1.555556p-5f, 0x1.111112p-7f,
                             0x1.6c16c2p-10f, 0x1.a01a02p-13f);
  const i32 exponent = (i32)(bits_of(rounded) - bits_of(ROUNDER));
  const i32 half = exponent >> 1;
  const float gauss = float_of(bits_of(power) + ((u32)half << 23));
  const float rest = float_of((u32)(exponent - half + 127) << 23);
  const float h = sum * gauss * rest;
  const float below = magnitude > LAST ? x * 0.0f : h;
  const float far = x < 0.0f ? below : x - h;
  // The sign is always that of x, of a zero too.
  return float_of(bits_of(magnitude < 0.8f ? near : far) | (bits_of(x) & 0x80000000u));
}

// 2/pi = 0.(words), 32 bits each, after one word of zeros.
DNN_CONSTANT u32 TWO_OVER_PI[9] = {0u,          0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                   0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u};

// x = n * pi/2 + r with |r| <= pi/4; returns r, and n modulo 4.
//
// Below 2^20 in three steps with fma; beyond, as Payne and Hanek: 96 bits of 2/pi from the bit of
// weight 2 on, times the 24 bits of x, modulo 4.
DNN_FN double reduced(double x, u32 &quadrant) {
  if (absolute(x) < 0x1p20) {
    const double k = nearest(x * 0x1.45f306dc9c883p-1);
    quadrant = (u32)(i32)k & 3u;
    double r = fused(-k, 0x1.921fb54442d18p+0, x);
    r = fused(-k, 0x1.1a62633145c07p-54, r);
    return fused(-k, -0x1.f1976b7ed8fbcp-110, r);
  }
  const u32 bits = bits_of((float)absolute(x));
  const u32 mantissa = (bits & 0x7FFFFFu) | 0x800000u;
  // x = mantissa * 2^e; the first bit wanted has weight 2^(e-1) in 2/pi, which is bit e - 1 after
  // the point counted from 0 at weight 1/2, hence e + 30 with the word of zeros in front.
  const i32 e = (i32)(bits >> 23) - 150;
  const u32 at = (u32)(e + 30);
  const u32 word = at >> 5, shift = at & 31u;
  u32 w[3];
  for (u32 i = 0; i < 3; ++i) {
    const u64 two = ((u64)TWO_OVER_PI[word + i] << 32) | TWO_OVER_PI[word + i + 1];
    w[i] = (u32)(two >> (32 - shift));
  }
  // mantissa * w modulo 2^96, its upper 64 bits: weight 2^-62.
  const u64 low = (u64)mantissa * w[2];
  const u64 middle = (u64)mantissa * w[1] + (low >> 32);
  const u64 high = ((u64)(mantissa * w[0]) << 32) + middle;
  const u64 n = (high + (1ull << 61)) >> 62;
  const i64 fraction = (i64)(high - (n << 62));
  const double r = (double)fraction * 0x1.921fb54442d18p-62;
  quadrant = x < 0.0 ? (u32)(4u - (u32)n) & 3u : (u32)n & 3u;
  return x < 0.0 ? -r : r;
}

DNN_FN double sine_near(double r) {
  const double s = r * r;
  return fused(r * s,
               horner(s, -0x1.5555555555555p-3, 0x1.1111111111111p-7, -0x1.a01a01a01a01ap-13,
                      0x1.71de3a556c734p-19, -0x1.ae64567f544e4p-26, 0x1.6124613a86d09p-33,
                      -0x1.ae7f3e733b81fp-41, 0x1.952c77030ad4ap-49),
               r);
}

DNN_FN double cosine_near(double r) {
  return horner(r * r, 1.0, -0x1p-1, 0x1.5555555555555p-5, -0x1.6c16c16c16c17p-10,
                0x1.a01a01a01a01ap-16, -0x1.27e4fb7789f5cp-22, 0x1.1eed8eff8d898p-29,
                -0x1.93974a8c07c9dp-37, 0x1.ae7f3e733b81fp-45, -0x1.6827863b97d97p-53);
}

DNN_FN double sine(double x) {
  if (!(absolute(x) < infinity())) return not_a_number();
  u32 quadrant;
  const double r = reduced(x, quadrant);
  const double v = quadrant & 1u ? cosine_near(r) : sine_near(r);
  return quadrant & 2u ? -v : v;
}

DNN_FN double tangent(double x) {
  if (!(absolute(x) < infinity())) return not_a_number();
  u32 quadrant;
  const double r = reduced(x, quadrant);
  const double s = sine_near(r), c = cosine_near(r);
  return quadrant & 1u ? -c / s : s / c;
}

// 1 / (1 + e^-x), without overflow on either side.
DNN_FN double sigmoid(double x) {
  const double e = exponential(-absolute(x));
  return x < 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}
