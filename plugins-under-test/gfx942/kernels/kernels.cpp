// All kernels, and on the host a table of them.
#include "batchnorm.hpp"
#include "conv_linear.hpp"
#include "pointwise.hpp"

DNN_KERNEL(dnn_pointwise, PointwiseParams, pointwise_block)
DNN_KERNEL(dnn_pointwise_light, PointwiseParams, pointwise_light_block)
DNN_KERNEL_OF(4, dnn_pointwise_heavy, PointwiseParams, pointwise_heavy_block)
DNN_KERNEL_OF(6, dnn_pointwise_single, PointwiseParams, pointwise_single_block)
DNN_KERNEL(dnn_batchnorm_inference, StatisticsParams, inference_block)
DNN_KERNEL(dnn_batchnorm_training, StatisticsParams, training_block)
DNN_KERNEL(dnn_batchnorm_backward, StatisticsParams, backward_block)
DNN_KERNEL(dnn_batchnorm_backward_saved, StatisticsParams, backward_saved_block)
DNN_KERNEL(dnn_batchnorm_apply, ApplyParams, apply_block)
DNN_KERNEL_OF(5, dnn_batchnorm_apply_vector, ApplyParams, apply_vector_block)
DNN_KERNEL(dnn_conv_f32, ConvParams, (conv_block<float, 8, 4, 16>))
DNN_KERNEL_OF(2, dnn_conv_linear, ConvParams, conv_linear_block)
DNN_KERNEL(dnn_conv_f64, ConvParams, (conv_block<double, 4, 4, 16>))
DNN_KERNEL(dnn_conv_sum_f32, ConvParams, conv_sum_block<float>)
DNN_KERNEL(dnn_conv_sum_f64, ConvParams, conv_sum_block<double>)

#if !defined(DNN_GPU)
#include "host_table.hpp"

// Each function of one argument, for the measurement of its error.
extern "C" double DNN_HOST_FUNCTION(u32 mode, double x) {
  PointwiseParams p{};
  p.upper = infinity();
  p.swish_beta = p.elu_alpha = p.softplus_beta = 1.0;
  p.mode = mode;
  return pointwise(p, x, 0.0, 0.0);
}

extern "C" const HostKernel *DNN_HOST_TABLE() {
  static const HostKernel table[] = {
      {"dnn_pointwise", sizeof(PointwiseParams), dnn_pointwise},
      {"dnn_pointwise_light", sizeof(PointwiseParams), dnn_pointwise_light},
      {"dnn_pointwise_heavy", sizeof(PointwiseParams), dnn_pointwise_heavy},
      {"dnn_pointwise_single", sizeof(PointwiseParams), dnn_pointwise_single},
      {"dnn_batchnorm_inference", sizeof(StatisticsParams), dnn_batchnorm_inference},
      {"dnn_batchnorm_training", sizeof(StatisticsParams), dnn_batchnorm_training},
      {"dnn_batchnorm_backward", sizeof(StatisticsParams), dnn_batchnorm_backward},
      {"dnn_batchnorm_backward_saved", sizeof(StatisticsParams), dnn_batchnorm_backward_saved},
      {"dnn_batchnorm_apply", sizeof(ApplyParams), dnn_batchnorm_apply},
      {"dnn_batchnorm_apply_vector", sizeof(ApplyParams), dnn_batchnorm_apply_vector},
      {"dnn_conv_f32", sizeof(ConvParams), dnn_conv_f32},
      {"dnn_conv_linear", sizeof(ConvParams), dnn_conv_linear},
      {"dnn_conv_f64", sizeof(ConvParams), dnn_conv_f64},
      {"dnn_conv_sum_f32", sizeof(ConvParams), dnn_conv_sum_f32},
      {"dnn_conv_sum_f64", sizeof(ConvParams), dnn_conv_sum_f64},
      {nullptr, 0, nullptr},
  };
  return table;
}
#endif
