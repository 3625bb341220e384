//! Readable names, and what a mangled name tells without its full meaning.

/// The readable form of a C++ or Rust symbol; `None` for a name that is not mangled.
#[must_use]
pub fn demangle(name: &str) -> Option<String> {
    // The mangled name of a type, as in `_ZTS`, is no symbol; only these prefixes are.
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return Some(format!("{rust:#}"));
    }
    if !name.starts_with("_Z") {
        return None;
    }
    let symbol = cpp_demangle::Symbol::new(name).ok()?;
    symbol.demangle().ok()
}

/// Where a symbol comes from, as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Put there by the linker.
    Linker,
    /// `operator new`, `malloc` and their like.
    Allocator,
    /// Exception handling and stack unwinding.
    Unwinder,
    /// The C++ standard library and its extensions.
    Std,
    /// A known third party, by its usual name.
    ThirdParty(&'static str),
    /// Anything else.
    Other,
}

const LINKER: [&str; 9] = [
    "_init",
    "_fini",
    "_end",
    "end",
    "_edata",
    "edata",
    "__bss_start",
    "_DYNAMIC",
    "_GLOBAL_OFFSET_TABLE_",
];

const ALLOCATORS: [&str; 13] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "cfree",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "malloc_trim",
];

/// `operator new`, `new[]`, `delete`, `delete[]`.
const OPERATORS: [&str; 4] = ["_Znw", "_Zna", "_Zdl", "_Zda"];

const UNWINDERS: [&str; 7] = [
    "_Unwind_",
    "__cxa_",
    "__gxx_personality_",
    "__gcc_personality_",
    "__register_frame",
    "__deregister_frame",
    "__dynamic_cast",
];

/// Namespaces of libraries that plugins often carry a copy of, with the library's name.
const NAMESPACES: [(&str, &str); 26] = [
    ("fmt", "fmt"),
    ("spdlog", "spdlog"),
    ("nlohmann", "nlohmann-json"),
    ("flatbuffers", "flatbuffers"),
    ("hipdnn_flatbuffers_sdk", "hipDNN SDK"),
    ("hipdnn_data_sdk", "hipDNN SDK"),
    ("hipdnn_plugin_sdk", "hipDNN SDK"),
    ("hipdnn_sdk", "hipDNN SDK"),
    ("boost", "Boost"),
    ("absl", "Abseil"),
    ("google", "protobuf or glog"),
    ("llvm", "LLVM"),
    ("mlir", "LLVM"),
    ("clang", "LLVM"),
    ("Eigen", "Eigen"),
    ("rapidjson", "RapidJSON"),
    ("YAML", "yaml-cpp"),
    ("msgpack", "msgpack"),
    ("tbb", "TBB"),
    ("ck", "Composable Kernel"),
    ("ck_tile", "Composable Kernel"),
    ("miopen", "MIOpen"),
    ("Tensile", "Tensile"),
    ("TensileLite", "Tensile"),
    ("rocblas", "rocBLAS"),
    ("cutlass", "CUTLASS"),
];

/// Prefixes of C names of such libraries.
const C_PREFIXES: [(&str, &str); 21] = [
    ("rocblas_", "rocBLAS"),
    ("hipblas", "hipBLAS"),
    ("miopen", "MIOpen"),
    ("hipdnn", "hipDNN"),
    ("hiprtc", "HIP"),
    ("hsa_", "ROCr"),
    ("rocfft_", "rocFFT"),
    ("rocrand_", "rocRAND"),
    ("cudnn", "cuDNN"),
    ("cublas", "cuBLAS"),
    ("ZSTD_", "zstd"),
    ("LZ4_", "LZ4"),
    ("XXH", "xxHash"),
    ("BZ2_", "bzip2"),
    ("lzma_", "xz"),
    ("sqlite3_", "SQLite"),
    ("SSL_", "OpenSSL"),
    ("EVP_", "OpenSSL"),
    ("LLVM", "LLVM"),
    ("_binary_", "an embedded file"),
    ("omp_", "OpenMP"),
];

/// Where a symbol comes from, as its name tells.
pub(crate) fn origin(name: &str) -> Origin {
    if LINKER.contains(&name) {
        return Origin::Linker;
    }
    if ALLOCATORS.contains(&name) || OPERATORS.iter().any(|p| name.starts_with(p)) {
        return Origin::Allocator;
    }
    if UNWINDERS.iter().any(|p| name.starts_with(p)) {
        return Origin::Unwinder;
    }
    match outer_name(name) {
        Some(Outer::Std) => Origin::Std,
        Some(Outer::Namespace(outer)) => {
            let known = NAMESPACES.iter().find(|(namespace, _)| *namespace == outer);
            known.map_or(Origin::Other, |(_, library)| Origin::ThirdParty(library))
        }
        None => {
            let known = C_PREFIXES
                .iter()
                .find(|(prefix, _)| name.starts_with(prefix));
            known.map_or(Origin::Other, |(_, library)| Origin::ThirdParty(library))
        }
    }
}

/// The outermost scope of a mangled C++ name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outer<'a> {
    Std,
    Namespace(&'a str),
}

/// Special names before the encoding of what they belong to (Itanium C++ ABI, 5.1.4).
const SPECIAL: [&str; 9] = ["TV", "TT", "TI", "TS", "TH", "TW", "GV", "GR", "GTt"];

fn outer_name(name: &str) -> Option<Outer<'_>> {
    let mut rest = name.strip_prefix("_Z")?;
    for special in SPECIAL {
        if let Some(after) = rest.strip_prefix(special) {
            rest = after;
            break;
        }
    }
    rest = strip_thunk(rest);
    rest = rest.strip_prefix('Z').unwrap_or(rest);
    let Some(nested) = rest.strip_prefix('N') else {
        return rest.starts_with("St").then_some(Outer::Std);
    };
    let scope = nested.trim_start_matches(['r', 'V', 'K', 'R', 'O']);
    if let Some(substitution) = scope.strip_prefix('S') {
        let known = substitution.starts_with(['t', 'a', 'b', 's', 'i', 'o', 'd']);
        return known.then_some(Outer::Std);
    }
    let digits = scope.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = scope[..digits].parse().ok()?;
    match scope.get(digits..digits.checked_add(length)?)? {
        "__gnu_cxx" | "__cxxabiv1" | "__gnu_pbds" => Some(Outer::Std),
        outer => Some(Outer::Namespace(outer)),
    }
}

/// Removes `h <offset> _` and `v <offset> _ <offset> _` of a thunk, after its `T`.
fn strip_thunk(rest: &str) -> &str {
    let after = |text: &'static str| rest.strip_prefix(text);
    let offsets =
        |text: &'_ str, count: usize| text.splitn(count + 1, '_').nth(count).map(str::len);
    let length = if let Some(virtual_thunk) = after("Tv") {
        offsets(virtual_thunk, 2)
    } else if let Some(thunk) = after("Th") {
        offsets(thunk, 1)
    } else {
        None
    };
    length.map_or(rest, |length| &rest[rest.len() - length..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("_init", Origin::Linker)]
    #[case("malloc", Origin::Allocator)]
    #[case("_ZdlPvm", Origin::Allocator)]
    #[case("__cxa_throw", Origin::Unwinder)]
    #[case("_ZNSt6vectorIiSaIiEE9push_backERKi", Origin::Std)]
    #[case(
        "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4sizeEv",
        Origin::Std
    )]
    #[case("_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_", Origin::Std)]
    #[case("_ZNSsC1ERKSs", Origin::Std)]
    #[case("_ZTVSt9exception", Origin::Std)]
    #[case("_ZTINSt6thread6_StateE", Origin::Std)]
    #[case("_ZThn16_NSdD0Ev", Origin::Std)]
    #[case("_ZTv0_n24_NSoD1Ev", Origin::Std)]
    #[case("_ZGVNSt8ios_base4InitE", Origin::Std)]
    #[case("_ZZNSt19_Sp_make_shared_tag5_S_tiEvE5__tag", Origin::Std)]
    #[case("_ZN9__gnu_cxx13new_allocatorIcEC2Ev", Origin::Std)]
    #[case("_ZN3fmt2v96formatEv", Origin::ThirdParty("fmt"))]
    #[case("_ZTIN6spdlog6loggerE", Origin::ThirdParty("spdlog"))]
    #[case("rocblas_sgemm", Origin::ThirdParty("rocBLAS"))]
    #[case("_binary_kernel_co_start", Origin::ThirdParty("an embedded file"))]
    #[case("_ZN2my3fooEv", Origin::Other)]
    #[case("_Z3foov", Origin::Other)]
    #[case("_ZTI3Foo", Origin::Other)]
    #[case("_ZN99fmtEv", Origin::Other)]
    #[case("_ZN", Origin::Other)]
    #[case("_Z", Origin::Other)]
    #[case("my_helper", Origin::Other)]
    fn names_tell_their_origin(#[case] name: &str, #[case] expected: Origin) {
        assert_eq!(origin(name), expected);
    }

    #[test]
    fn both_languages_are_readable_and_plain_names_stay() {
        assert_eq!(demangle("_ZN2my3fooEi").as_deref(), Some("my::foo(int)"));
        assert_eq!(
            demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE").as_deref(),
            Some("core::fmt::Write::write_fmt")
        );
        assert_eq!(demangle("hipdnnPluginGetName"), None);
        assert_eq!(demangle("_Z"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_name_panics(name in "_Z[NSTVKZGhvtI0-9a-z_]{0,24}|.{0,24}") {
            let _ = origin(&name);
            let _ = demangle(&name);
        }
    }
}
