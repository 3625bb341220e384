//! Where rules send the reader.

pub(crate) const DSO_HOWTO: &str = "https://www.akkadia.org/drepper/dsohowto.pdf";
pub(crate) const LD_SO: &str = "https://man7.org/linux/man-pages/man8/ld.so.8.html";
pub(crate) const DLOPEN: &str = "https://man7.org/linux/man-pages/man3/dlopen.3.html";
pub(crate) const LD_VERSION: &str = "https://sourceware.org/binutils/docs/ld/VERSION.html";
pub(crate) const LD_OPTIONS: &str = "https://sourceware.org/binutils/docs/ld/Options.html";
pub(crate) const GCC_CODE_GEN: &str = "https://gcc.gnu.org/onlinedocs/gcc/Code-Gen-Options.html";
pub(crate) const GCC_VISIBILITY: &str = "https://gcc.gnu.org/wiki/Visibility";
pub(crate) const GABI_DYNAMIC: &str =
    "https://refspecs.linuxfoundation.org/elf/gabi4+/ch5.dynamic.html";
pub(crate) const ENGINE_API: &str = "https://github.com/ROCm/rocm-libraries/blob/develop/projects/hipdnn/plugin_sdk/include/hipdnn_plugin_sdk/EnginePluginApi.h";
pub(crate) const HIPDNN_PLUGINS: &str =
    "https://github.com/ROCm/rocm-libraries/tree/develop/projects/hipdnn/docs";
pub(crate) const BUNDLER: &str = "https://clang.llvm.org/docs/ClangOffloadBundler.html";
pub(crate) const AMDGPU: &str = "https://llvm.org/docs/AMDGPUUsage.html#target-id";
pub(crate) const GLIBC_2_41: &str = "https://sourceware.org/glibc/wiki/Release/2.41";
pub(crate) const ELF_HASH: &str = "https://flapenguin.me/elf-dt-gnu-hash";
