//! The version, to compare with the macros the host was compiled with.

use std::ffi::{CStr, c_char};

const TEXT: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(text) => text,
    Err(_) => c"",
};

const fn number(digits: &str) -> u32 {
    let (bytes, mut at, mut value) = (digits.as_bytes(), 0, 0);
    while at < bytes.len() {
        value = value * 10 + (bytes[at] - b'0') as u32;
        at += 1;
    }
    value
}

const NUMBER: u32 = number(env!("CARGO_PKG_VERSION_MAJOR")) * 1_000_000
    + number(env!("CARGO_PKG_VERSION_MINOR")) * 1_000
    + number(env!("CARGO_PKG_VERSION_PATCH"));

/// The version of the library that is loaded: "0.1.0". Compare with `BRANCHLINE_VERSION`.
///
/// Ownership: the string is static; do not free it.
/// Threads: any, also after fork().
/// Errors: none.
#[unsafe(no_mangle)]
pub extern "C" fn branchline_version() -> *const c_char {
    TEXT.as_ptr()
}

/// The version of the library that is loaded as one number: major * 1000000 + minor * 1000 + patch. Compare with
/// `BRANCHLINE_VERSION_NUMBER`.
///
/// Ownership: takes nothing.
/// Threads: any, also after fork().
/// Errors: none.
#[unsafe(no_mangle)]
pub extern "C" fn branchline_version_number() -> u32 {
    NUMBER
}
