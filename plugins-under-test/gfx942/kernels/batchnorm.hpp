// Batch normalisation in double: per channel coefficients first, then one elementwise pass
//
//     out = gain_dy * dy + gain_x * (x - mean) + offset
//
// in which every one of the operations can be written. Statistics are two passes over a channel by
// one block: thread t sums elements t, t + 256, ..., then a fixed tree adds the threads' sums.
#pragma once
#include "elements.hpp"
#include "walk.hpp"

// One value per channel, or nothing where base is null.
struct ChannelValues {
  void *base;
  i64 step;
  u32 type;
  u32 unused;
};

// The coefficients of a channel. In memory they are four rows of one value per channel, so that
// threads of neighbouring channels read neighbours.
struct Coefficients {
  double mean, gain_x, gain_dy, offset;
};

struct StatisticsParams {
  const void *x, *dy;
  double *coefficients;
  ChannelValues mean, inverse;  // inputs of inference and backward, outputs of training
  ChannelValues variance;       // input of inference with a variance
  ChannelValues scale, bias;
  ChannelValues previous_mean, previous_variance, next_mean, next_variance;
  ChannelValues dscale, dbias;
  double epsilon, momentum;
  u32 x_type, dy_type;
  u32 channels;
  u32 count;       // elements per channel
  u32 extents[3];  // the extents behind the batch: element / product is the image
  u32 unused;
  i64 x_step[4], dy_step[4];  // batch, then the three extents
  i64 x_channel, dy_channel;
};

struct ApplyParams {
  void *out;
  const void *x, *dy;
  const double *coefficients;
  u32 out_type, x_type, dy_type, channels;
  Walk walk;
  Steps steps[4];  // out, x, dy, coefficients
};

DNN_FN double value_of(const ChannelValues &v, u32 channel) {
  return load(v.base, v.type, (i64)channel * v.step);
}
DNN_FN void set_value(const ChannelValues &v, u32 channel, double value) {
  if (v.base) store(v.base, v.type, (i64)channel * v.step, value);
}

DNN_FN u64 coefficient_row(u32 channels) { return (channels + VECTOR - 1) / VECTOR * VECTOR; }
DNN_FN void set_coefficients(const StatisticsParams &p, u32 channel, const Coefficients &c) {
  double *mean = p.coefficients + channel;
  const u64 row = coefficient_row(p.channels);
  mean[0] = c.mean;
  mean[row] = c.gain_x;
  mean[2 * row] = c.gain_dy;
  mean[3 * row] = c.offset;
}
DNN_FN Coefficients coefficients_of(const ApplyParams &p, i64 channel) {
  const double *mean = p.coefficients + channel;
  const u64 row = coefficient_row(p.channels);
  return {mean[0], mean[row], p.dy ? mean[2 * row] : 0.0, mean[3 * row]};
}
DNN_FN double applied(const Coefficients &c, bool backward, double x, double dy) {
  const double v = fused(c.gain_x, x - c.mean, c.offset);
  return backward ? fused(c.gain_dy, dy, v) : v;
}

// The offset of element `index` of a channel.
DNN_FN i64 channel_offset(const StatisticsParams &p, u32 index, const i64 (&step)[4]) {
  u32 rest = index / p.extents[2];
  i64 at = (i64)(index - rest * p.extents[2]) * step[3];
  index = rest;
  rest = index / p.extents[1];
  at += (i64)(index - rest * p.extents[1]) * step[2];
  index = rest;
  rest = index / p.extents[0];
  at += (i64)(index - rest * p.extents[0]) * step[1];
  return at + (i64)rest * step[0];
}

DNN_FN double x_at(const StatisticsParams &p, u32 channel, u32 index) {
  return load(p.x, p.x_type, (i64)channel * p.x_channel + channel_offset(p, index, p.x_step));
}
DNN_FN double dy_at(const StatisticsParams &p, u32 channel, u32 index) {
  return load(p.dy, p.dy_type, (i64)channel * p.dy_channel + channel_offset(p, index, p.dy_step));
}

// Adds up sums[0..DNN_BLOCK) in place, halves onto halves; the result is in sums[0].
#define DNN_TREE(sums)                                                                             \
  for (u32 half = DNN_BLOCK / 2; half > 0; half /= 2) {                                            \
    DNN_THREADS(t) {                                                                               \
      if (t < half) sums[t] = sums[t] + sums[t + half];                                            \
    }                                                                                              \
    DNN_BARRIER();                                                                                 \
  }

// Mean and biased variance of a channel; ends with a barrier.
#define DNN_MEAN_AND_VARIANCE(p, channel, sums, mean, variance)                                    \
  DNN_THREADS(t) {                                                                                 \
    double sum = 0.0;                                                                              \
    for (u32 i = t; i < p.count; i += DNN_BLOCK) sum = sum + x_at(p, channel, i);                  \
    sums[t] = sum;                                                                                 \
  }                                                                                                \
  DNN_BARRIER();                                                                                   \
  DNN_TREE(sums)                                                                                   \
  const double mean = sums[0] / (double)p.count;                                                   \
  DNN_BARRIER();                                                                                   \
  DNN_THREADS(t) {                                                                                 \
    double sum = 0.0;                                                                              \
    for (u32 i = t; i < p.count; i += DNN_BLOCK) {                                                 \
      const double d = x_at(p, channel, i) - mean;                                                 \
      sum = fused(d, d, sum);                                                                      \
    }                                                                                              \
    sums[t] = sum;                                                                                 \
  }                                                                                                \
  DNN_BARRIER();                                                                                   \
  DNN_TREE(sums)                                                                                   \
  const double variance = sums[0] / (double)p.count;                                               \
  DNN_BARRIER();

DNN_FN double inverse_deviation(double variance, double epsilon) {
  return 1.0 / square_root(variance + epsilon);
}

// Inference: given statistics. One thread per channel.
DNN_FN void inference_block(const StatisticsParams &p, Block block) {
  DNN_THREADS(t) {
    const u32 channel = block.x * DNN_BLOCK + t;
    if (channel < p.channels) {
      const double inverse = p.variance.base
                                 ? inverse_deviation(value_of(p.variance, channel), p.epsilon)
                                 : value_of(p.inverse, channel);
      set_coefficients(p, channel, {value_of(p.mean, channel), value_of(p.scale, channel) * inverse,
                                 0.0, value_of(p.bias, channel)});
    }
  }
}

// Training: the batch's statistics. One block per channel.
DNN_FN void training_block(const StatisticsParams &p, Block block) {
  DNN_SHARED double sums[DNN_BLOCK];
  const u32 channel = block.x;
  DNN_MEAN_AND_VARIANCE(p, channel, sums, mean, variance)
  DNN_THREADS(t) {
    if (t == 0) {
      const double inverse = inverse_deviation(variance, p.epsilon);
      set_coefficients(p, channel, {mean, value_of(p.scale, channel) * inverse, 0.0,
                                 value_of(p.bias, channel)});
      set_value(p.mean, channel, mean);
      set_value(p.inverse, channel, inverse);
      const double m = p.momentum;
      const double count = (double)p.count;
      const double unbiased = p.count > 1 ? variance * (count / (count - 1.0)) : variance;
      if (p.next_mean.base) {
        const double previous = value_of(p.previous_mean, channel);
        set_value(p.next_mean, channel, (1.0 - m) * previous + m * mean);
      }
      if (p.next_variance.base) {
        const double previous = value_of(p.previous_variance, channel);
        set_value(p.next_variance, channel, (1.0 - m) * previous + m * unbiased);
      }
    }
  }
}

// Backward, given or recomputed statistics. One block per channel. With n = (x - mean) * inverse:
// dscale = sum n*dy, dbias = sum dy, dx = scale * inverse * (dy - dbias/M - n * dscale/M).
DNN_FN void finish_backward(const StatisticsParams &p, u32 channel, double mean, double inverse,
                            double sum_scale, double sum_bias) {
  set_value(p.dscale, channel, sum_scale);
  set_value(p.dbias, channel, sum_bias);
  const double count = (double)p.count;
  const double factor = value_of(p.scale, channel) * inverse;
  set_coefficients(p, channel, {mean, -factor * inverse * (sum_scale / count), factor,
                             -factor * (sum_bias / count)});
}

#define DNN_BACKWARD_SUMS(p, channel, sums, mean, inverse)                                         \
  DNN_THREADS(t) {                                                                                 \
    double sum = 0.0;                                                                              \
    for (u32 i = t; i < p.count; i += DNN_BLOCK) {                                                 \
      const double n = (x_at(p, channel, i) - mean) * inverse;                                     \
      sum = fused(n, dy_at(p, channel, i), sum);                                                   \
    }                                                                                              \
    sums[t] = sum;                                                                                 \
  }                                                                                                \
  DNN_BARRIER();                                                                                   \
  DNN_TREE(sums)                                                                                   \
  const double sum_scale = sums[0];                                                                \
  DNN_BARRIER();                                                                                   \
  DNN_THREADS(t) {                                                                                 \
    double sum = 0.0;                                                                              \
    for (u32 i = t; i < p.count; i += DNN_BLOCK) sum = sum + dy_at(p, channel, i);                 \
    sums[t] = sum;                                                                                 \
  }                                                                                                \
  DNN_BARRIER();                                                                                   \
  DNN_TREE(sums)                                                                                   \
  DNN_THREADS(t) {                                                                                 \
    if (t == 0) finish_backward(p, channel, mean, inverse, sum_scale, sums[0]);                    \
  }

DNN_FN void backward_block(const StatisticsParams &p, Block block) {
  DNN_SHARED double sums[DNN_BLOCK];
  const u32 channel = block.x;
  DNN_MEAN_AND_VARIANCE(p, channel, sums, mean, variance)
  const double inverse = inverse_deviation(variance, p.epsilon);
  DNN_BACKWARD_SUMS(p, channel, sums, mean, inverse)
}

DNN_FN void backward_saved_block(const StatisticsParams &p, Block block) {
  DNN_SHARED double sums[DNN_BLOCK];
  const u32 channel = block.x;
  const double mean = value_of(p.mean, channel);
  const double inverse = value_of(p.inverse, channel);
  DNN_BACKWARD_SUMS(p, channel, sums, mean, inverse)
}

DNN_FN void apply_block(const ApplyParams &p, Block block) {
  DNN_THREADS(t) {
    const u32 index = block.x * DNN_BLOCK + t;
    if (index < p.walk.total) {
      i64 at[4];
      offsets(p.walk, p.steps, index, at);
      const Coefficients c = coefficients_of(p, at[3]);
      const double x = load(p.x, p.x_type, at[1]);
      const double dy = p.dy ? load(p.dy, p.dy_type, at[2]) : 0.0;
      store(p.out, p.out_type, at[0], applied(c, p.dy, x, dy));
    }
  }
}

// The same for VECTOR neighbours per thread.
DNN_FN void apply_vector_block(const ApplyParams &p, Block block) {
  DNN_THREADS(t) {
    const u32 index = (block.x * DNN_BLOCK + t) * VECTOR;
    if (index < p.walk.total) {
      i64 at[4];
      offsets(p.walk, p.steps, index, at);
      const u32 count = p.walk.total - index < VECTOR ? p.walk.total - index : VECTOR;
      Vector x = load_vector(p.x, p.x_type, at[1], true, count), dy = repeated(0.0);
      if (p.dy) dy = load_vector(p.dy, p.dy_type, at[2], true, count);
      if (p.steps[3].step[MAX_RANK - 1] == 0) {  // one channel for all
        const Coefficients c = coefficients_of(p, at[3]);
DNN_UNROLL
        for (u32 i = 0; i < VECTOR; ++i) x.v[i] = applied(c, p.dy, x.v[i], dy.v[i]);
      } else {  // rows are whole vectors long: what lies behind the last channel is not stored
        const double *mean = p.coefficients + at[3];
        const u64 row = coefficient_row(p.channels);
        const Vector m = doubles_at(mean), gain = doubles_at(mean + row),
                     offset = doubles_at(mean + 3 * row);
        const Vector gain_dy = p.dy ? doubles_at(mean + 2 * row) : repeated(0.0);
DNN_UNROLL
        for (u32 i = 0; i < VECTOR; ++i)
          x.v[i] = applied({m.v[i], gain.v[i], gain_dy.v[i], offset.v[i]}, p.dy, x.v[i], dy.v[i]);
      }
      store_vector(p.out, p.out_type, at[0], x, count);
    }
  }
}
