//! What `hip-runtime-sys` is too old for, held to HIP's own header by a C++ compiler: the type of
//! `hipGetDevicePropertiesR0600`, and our layout of the structure that it fills. Looked for below
//! `$HIP_PATH`, `$ROCM_PATH` and `/opt/rocm`; a header from before HIP 6 does not have it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::hip_properties::{ARCH_NAME, MULTIPROCESSORS, SIZE};

/// Compiles only where the header agrees. Later structures are larger, at their end.
fn proof() -> String {
    format!(
        "#define __HIP_PLATFORM_AMD__\n\
         #include <hip/hip_runtime_api.h>\n\
         #include <cstddef>\n\
         using P = hipDeviceProp_t;\n\
         static_assert(sizeof(P) >= {SIZE} && sizeof(P) <= {room}, \"size\");\n\
         static_assert(offsetof(P, multiProcessorCount) == {MULTIPROCESSORS}, \"units\");\n\
         static_assert(sizeof(P::multiProcessorCount) == 4, \"units\");\n\
         static_assert(offsetof(P, gcnArchName) == {ARCH_NAME}, \"architecture\");\n\
         static_assert(sizeof(P::gcnArchName) == 256, \"architecture\");\n\
         static_assert(sizeof(hipError_t) == 4 && sizeof(hipStream_t) == 8, \"handles\");\n\
         hipError_t (*proof)(P *, int) = &hipGetDevicePropertiesR0600;\n",
        room = 2 * SIZE,
    )
}

/// What a C++ compiler says of the proof with the header below `root`.
fn compile(root: &Path) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("dnn-hip-header-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!(
        "{}.cpp",
        root.display().to_string().replace('/', "-")
    ));
    std::fs::write(&file, proof()).unwrap();
    let output = Command::new("c++")
        .args(["-std=c++17", "-fsyntax-only", "-I"])
        .arg(root.join("include"))
        .arg(&file)
        .output()
        .map_err(|error| error.to_string())?;
    std::fs::remove_dir_all(&folder).unwrap();
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn has_compiler() -> bool {
    Command::new("c++").arg("--version").output().is_ok()
}

#[test]
fn hip_header_agrees_where_there_is_one() {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let roots = [
        variable("HIP_PATH"),
        variable("ROCM_PATH"),
        Some("/opt/rocm".into()),
    ];
    let newer = roots.into_iter().flatten().find(|root| {
        let header = root.join("include/hip/hip_runtime_api.h");
        std::fs::read_to_string(header).is_ok_and(|text| text.contains("R0600"))
    });
    match newer {
        None => eprintln!("not checked: no header of HIP 6 or later here"),
        Some(root) => {
            compile(&root).unwrap_or_else(|text| panic!("{}: {text}", root.display()));
            eprintln!("{}: the header agrees", root.display());
        }
    }
}

#[test]
fn hip_header_of_another_layout_is_refused() {
    if !has_compiler() {
        eprintln!("not checked: no C++ compiler here");
        return;
    }
    let root = std::env::temp_dir().join(format!("dnn-hip-stub-{}", std::process::id()));
    let header = root.join("include/hip/hip_runtime_api.h");
    std::fs::create_dir_all(header.parent().unwrap()).unwrap();
    let stub = |units: usize, arguments: &str| {
        let text = format!(
            "enum hipError_t {{ hipSuccess }};\n\
             typedef struct ihipStream_t *hipStream_t;\n\
             struct hipDeviceProp_t {{\n\
               char before[{units}]; int multiProcessorCount;\n\
               char between[{between}]; char gcnArchName[256]; char rest[{rest}];\n\
             }};\n\
             hipError_t hipGetDevicePropertiesR0600({arguments});\n",
            between = ARCH_NAME - units - 4,
            rest = SIZE - ARCH_NAME - 256,
        );
        std::fs::write(&header, text).unwrap();
        compile(&root)
    };
    let ours = "hipDeviceProp_t *, int";
    assert_eq!(stub(MULTIPROCESSORS, ours), Ok(()));
    assert!(
        stub(MULTIPROCESSORS + 4, ours)
            .unwrap_err()
            .contains("units")
    );
    assert!(stub(MULTIPROCESSORS, "hipDeviceProp_t *, long").is_err());
    std::fs::remove_dir_all(&root).unwrap();
}
