//! What comes in: every pointer is checked for NULL, every text for UTF-8, every struct for its size.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::error::Failure;
use crate::status::branchline_status;

/// Sizes above this are no sizes of structs: far more than any version will need, far less than a stray pointer.
const MAX_STRUCT_SIZE: usize = 4096;

/// A failure of the caller.
pub(crate) fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(branchline_status::INVALID_ARGUMENT, message)
}

fn utf8<'a>(bytes: &'a [u8], name: &str) -> Result<&'a str, Failure> {
    std::str::from_utf8(bytes)
        .map_err(|error| invalid(format!("{name} is not UTF-8: the byte at offset {} is wrong", error.valid_up_to())))
}

/// A NUL-terminated text.
///
/// # Safety
/// `text` is NULL or a NUL-terminated string that stays as it is for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    // SAFETY: as this function's.
    unsafe { optional_text(text, name) }?.ok_or_else(|| invalid(format!("{name} is NULL")))
}

/// A NUL-terminated text or NULL.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional_text<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL, so NUL-terminated by contract.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    utf8(bytes, name).map(Some)
}

/// A text of a given length, which may hold NUL.
///
/// # Safety
/// `text` is NULL or valid for reading `length` bytes that stay as they are for `'a`.
pub(crate) unsafe fn text_n<'a>(text: *const c_char, length: usize, name: &str) -> Result<&'a str, Failure> {
    match (text.is_null(), length) {
        (_, 0) => Ok(""),
        (true, _) => Err(invalid(format!("{name} is NULL"))),
        (false, length) if length > isize::MAX as usize => {
            Err(invalid(format!("{name}: no text is {length} bytes long")))
        }
        // SAFETY: valid for `length` bytes by contract, which is not more than any object has.
        (false, _) => utf8(unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) }, name),
    }
}

/// A path or NULL: bytes as the operating system takes them, not necessarily UTF-8.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional_path(path: *const c_char) -> Option<PathBuf> {
    if path.is_null() {
        return None;
    }
    // SAFETY: not NULL, so NUL-terminated by contract.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    Some(PathBuf::from(OsStr::from_bytes(bytes)))
}

/// A list of texts; `None` when the list is NULL.
///
/// # Safety
/// `list` is NULL or valid for `count` pointers, each as for [`text`].
pub(crate) unsafe fn texts(
    list: *const *const c_char,
    count: usize,
    name: &str,
) -> Result<Option<Vec<String>>, Failure> {
    if list.is_null() {
        return match count {
            0 => Ok(None),
            _ => Err(invalid(format!("{name} is NULL, but its count is {count}"))),
        };
    }
    if count > isize::MAX as usize / size_of::<*const c_char>() {
        return Err(invalid(format!("{name}: {count} is no count")));
    }
    // SAFETY: valid for `count` pointers by contract.
    let list = unsafe { std::slice::from_raw_parts(list, count) };
    // SAFETY: each pointer is NULL or a string by contract.
    list.iter().map(|item| unsafe { text(*item, name) }.map(str::to_owned)).collect::<Result<_, _>>().map(Some)
}

/// JSON text.
pub(crate) fn json(text: &str, name: &str) -> Result<Value, Failure> {
    branchline_core::json::parse_given(text.as_bytes()).map_err(|problem| invalid(format!("{name} {problem}")))
}

/// A list of handles.
///
/// # Safety
/// `list` is NULL or valid for `count` pointers that stay as they are for `'a`.
pub(crate) unsafe fn handles<'a, T>(list: *const *mut T, count: usize, name: &str) -> Result<&'a [*mut T], Failure> {
    match (list.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(invalid(format!("{name} is NULL, but its count is {count}"))),
        (false, _) if count > isize::MAX as usize / size_of::<*mut T>() => {
            Err(invalid(format!("{name}: {count} is no count")))
        }
        // SAFETY: valid for `count` pointers by contract.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(list, count) }),
    }
}

/// A form of the core in JSON: its keys are checked there.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn required_form<T: serde::de::DeserializeOwned>(
    form: *const c_char,
    name: &str,
) -> Result<T, Failure> {
    // SAFETY: as this function's.
    let value = json(unsafe { text(form, name) }?, name)?;
    branchline_core::json::form(value).map_err(|error| invalid(format!("{name}: {error}")))
}

/// The same, where NULL stands for the usual.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn form<T: serde::de::DeserializeOwned + Default>(
    form: *const c_char,
    name: &str,
) -> Result<T, Failure> {
    match form.is_null() {
        true => Ok(T::default()),
        // SAFETY: as this function's.
        false => unsafe { required_form(form, name) },
    }
}

/// A struct that begins with its size, as [`read`] understands it.
///
/// # Safety
/// The type is `repr(C)`, begins with a `usize`, has no padding, and all zeros is a valid value that means defaults.
pub(crate) unsafe trait Versioned: Copy {
    const NAME: &'static str;
}

/// A struct from a host that may know an older version of it (then the missing fields are zero, which means the
/// default) or a newer one (then what we do not know must be zero).
///
/// # Safety
/// `pointer` is NULL or points to a `usize` and, if that is a sound size, to so many bytes in all.
pub(crate) unsafe fn read<T: Versioned>(pointer: *const T) -> Result<Option<T>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    let known = size_of::<T>();
    // SAFETY: points to a `usize` at least, by contract.
    let size = unsafe { pointer.cast::<usize>().read_unaligned() };
    if size < size_of::<usize>() || size > MAX_STRUCT_SIZE || !size.is_multiple_of(align_of::<usize>()) {
        let text = format!("struct_size of {} is {size}; start from its _INIT macro", T::NAME);
        return Err(invalid(text));
    }
    // SAFETY: `size` bytes are readable by contract.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), size) };
    if bytes.get(known..).is_some_and(|unknown| unknown.iter().any(|byte| *byte != 0)) {
        let text = format!("{} uses fields that this version of the library does not know", T::NAME);
        return Err(invalid(text));
    }
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: copies inside both objects; any bytes the host sets are what the header says, and zeros are valid.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.as_mut_ptr().cast::<u8>(), size.min(known));
        Ok(Some(value.assume_init()))
    }
}
