// Stands before libcuda.so.1 and makes one fault of every launch of a plugin's, on a real device:
// what mocks/hip does with DNN_ASSAY_MOCK_HIP_PLUGIN. The harness's own kernels go through as they
// are. See faults.sh.
//
// DNN_ASSAY_CUDA_FAULT is one of
//   default-stream            launches go to the default stream
//   unjoined-stream           launches go to a stream that nobody waits for
//   lost-error                launches do not happen, and succeed
//   overwrite:WORD:OFFSET:N   N bytes are set to 0, from OFFSET on, relative to the address in these
//                             eight bytes of the parameters (pointwise kernels: 0 output, 1 input)
// DNN_ASSAY_CUDA_FAULT_DEVICE=N leaves every process alone but those whose CUDA_VISIBLE_DEVICES is N.
// DNN_ASSAY_CUDA_LIBRARY is the path of the real library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Everything that the harness and the plugin call.
#define EACH_FORWARDED(X)                                                                          \
  X(cuInit) X(cuDeviceGetCount) X(cuDeviceGet) X(cuDevicePrimaryCtxRetain)                         \
  X(cuDevicePrimaryCtxRelease_v2) X(cuCtxSetCurrent) X(cuCtxGetCurrent) X(cuCtxGetDevice)          \
  X(cuGetErrorString) X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceTotalMem_v2)            \
  X(cuDeviceGetUuid_v2) X(cuDeviceGetPCIBusId) X(cuDriverGetVersion) X(cuMemGetInfo_v2)            \
  X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemcpyHtoDAsync_v2) X(cuMemcpyDtoHAsync_v2)                 \
  X(cuMemcpyDtoDAsync_v2) X(cuStreamCreate) X(cuStreamDestroy_v2) X(cuLaunchHostFunc)              \
  X(cuStreamSynchronize) X(cuCtxSynchronize) X(cuEventCreate) X(cuEventRecord) X(cuEventQuery)     \
  X(cuEventSynchronize) X(cuEventElapsedTime) X(cuEventDestroy_v2) X(cuModuleLoadData)             \
  X(cuModuleUnload)

// A jump keeps all arguments, whatever their types are.
#define FORWARD(name)                                                                              \
  __attribute__((visibility("hidden"))) void *real_##name;                                         \
  __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name                            \
          ":\n\tjmp *real_" #name "(%rip)\n");
EACH_FORWARDED(FORWARD)

typedef int (*Launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      void *, void **, void **);
typedef int (*GetFunction)(void **, void *, const char *);
typedef int (*NewStream)(void **, unsigned);
typedef int (*Set)(uint64_t, unsigned char, size_t, void *);

static Launch real_launch;
static GetFunction real_get_function;
static Set real_set;
static void *own[16];
static int owned;

__attribute__((constructor)) static void resolve(void) {
  const char *path = getenv("DNN_ASSAY_CUDA_LIBRARY");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) {
    fprintf(stderr, "DNN_ASSAY_CUDA_LIBRARY: %s\n", path ? dlerror() : "not set");
    exit(2);
  }
#define RESOLVE(name) real_##name = dlsym(library, #name);
  EACH_FORWARDED(RESOLVE)
  real_launch = (Launch)dlsym(library, "cuLaunchKernel");
  real_get_function = (GetFunction)dlsym(library, "cuModuleGetFunction");
  real_set = (Set)dlsym(library, "cuMemsetD8Async");
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
  int status = real_get_function(function, module, name);
  if (status == 0 && strncmp(name, "dnn_guard_", 10) == 0 && owned < 16) own[owned++] = *function;
  return status;
}

// The fault that this process shall make, or NULL.
static const char *fault_here(void) {
  const char *only = getenv("DNN_ASSAY_CUDA_FAULT_DEVICE");
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  if (only && (!visible || strcmp(only, visible) != 0)) return NULL;
  return getenv("DNN_ASSAY_CUDA_FAULT");
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
  static void *stray;
  const char *fault = fault_here();
  int is_own = 0;
  for (int i = 0; i < owned; ++i) is_own |= own[i] == function;
  unsigned word, bytes;
  int offset, overwrites = 0;
  if (fault && !is_own) {
    if (strcmp(fault, "lost-error") == 0) return 0;
    if (strcmp(fault, "default-stream") == 0) stream = NULL;
    if (strcmp(fault, "unjoined-stream") == 0) {
      if (!stray) ((NewStream)real_cuStreamCreate)(&stray, 1);
      stream = stray;
    }
    overwrites = sscanf(fault, "overwrite:%u:%d:%u", &word, &offset, &bytes) == 3;
  }
  int status =
      real_launch(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
  if (status == 0 && overwrites) {
    uint64_t base;
    memcpy(&base, (const char *)parameters[0] + 8 * word, sizeof base);
    status = real_set(base + (int64_t)offset, 0, bytes, stream);
  }
  return status;
}
