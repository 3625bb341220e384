// What the host build offers to a runtime that stands in for a GPU's.
#pragma once
#include "portable.hpp"

struct HostKernel {
  const char *name;  // null ends the table
  u64 parameter_bytes;
  void (*run)(const void *parameters, u32 x, u32 y, u32 z);  // one block
};
