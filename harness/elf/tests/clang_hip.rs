//! What clang's HIP mode exports in spite of hidden visibility. Without a clang that knows AMD
//! GPUs there is nothing to see, and the test says so.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::*;
use dnn_assay_elf::{Policy, Severity};
use std::process::Command;

const SOURCE: &str = r#"
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
typedef struct ihipStream_t *hipStream_t;
struct dim3 { unsigned x, y, z; constexpr dim3(unsigned a) : x(a), y(1), z(1) {} };
extern "C" int __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, hipStream_t = nullptr);
extern "C" int __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, hipStream_t *);
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, hipStream_t);
__global__ void scale(float *p, float f) { p[0] *= f; }
extern "C" __global__ void plain_c(float *p) { p[0] += 1; }
template <class T> __global__ void any(T *p) { p[0] += 1; }
void launch(float *p) {
    scale<<<dim3(1), dim3(1)>>>(p, 2.f);
    plain_c<<<dim3(1), dim3(1)>>>(p);
    any<float><<<dim3(1), dim3(1)>>>(p);
}
#define EXPORT extern "C" __attribute__((visibility("default")))
"#;

const RUNTIME: [&str; 6] = [
    "__hipPushCallConfiguration",
    "__hipPopCallConfiguration",
    "__hipRegisterFatBinary",
    "__hipRegisterFunction",
    "__hipUnregisterFatBinary",
    "hipLaunchKernel",
];

fn clang() -> Option<&'static str> {
    ["clang++-19", "clang++"].into_iter().find(|clang| {
        let targets = Command::new(clang).arg("-print-targets").output();
        targets.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("amdgcn"))
    })
}

fn bundle(code_object: &[u8]) -> Vec<u8> {
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    let ids = [
        "host-x86_64-unknown-linux--",
        "hipv4-amdgcn-amd-amdhsa--gfx942",
    ];
    bytes.extend((ids.len() as u64).to_le_bytes());
    for (id, size) in ids.iter().zip([0, code_object.len()]) {
        for word in [4096, size, id.len()] {
            bytes.extend((word as u64).to_le_bytes());
        }
        bytes.extend(id.bytes());
    }
    bytes.resize(4096, 0);
    bytes.extend(code_object);
    bytes
}

#[test]
fn a_hip_build_with_hidden_visibility_has_no_finding() {
    let Some(clang) = clang() else {
        eprintln!("no clang for AMD GPUs here: nothing was checked");
        return;
    };
    let shop = Workshop::new();
    let entries = engine_source().replace("int hipdnn", "EXPORT int hipdnn");
    shop.write("k.hip", format!("{SOURCE}\n{entries}"));
    let flags = "-nogpuinc -nogpulib -O2 -fvisibility=hidden";
    shop.run(clang, &format!("-x hip --cuda-device-only --offload-arch=gfx942 {flags} k.hip -o k.co --no-gpu-bundle-output"));
    shop.write("k.hipfb", bundle(&shop.read("k.co")));
    shop.run(clang, &format!("-x hip --cuda-host-only {flags} -fPIC -Xclang -fcuda-include-gpubinary -Xclang k.hipfb -c k.hip -o k.o"));
    shop.c_file(
        "libamdhip64.so.6",
        &functions(RUNTIME),
        "-Wl,-soname,libamdhip64.so.6",
    );
    shop.run(
        "cc",
        "-shared k.o -o k.so -L. -l:libamdhip64.so.6 -Wl,-rpath,$ORIGIN -Wl,-soname,k.so",
    );

    let policy = Policy {
        arch: Some("gfx942:sramecc+:xnack-".into()),
        ..Policy::default()
    };
    let inspection = inspect_file(&shop.path("k.so"), &policy);
    let serious = inspection
        .findings
        .iter()
        .filter(|f| f.severity > Severity::Info);
    let serious: Vec<_> = serious.collect();
    assert!(serious.is_empty(), "{serious:#?}");
    // Three handles and the id of the module.
    assert_eq!(inspection.of_rule("export/hip-generated").count(), 4);
    assert_eq!(inspection.facts.device.images[0].kernels.len(), 3);
}
