//! Failures.
use crate::raw;
use std::ffi::{CStr, CString};
use std::fmt;
use std::mem::MaybeUninit;
use std::os::raw::c_char;

pub type Result<T> = std::result::Result<T, Error>;

/// What a failed call reports.
#[derive(Clone)]
pub struct Error {
    raw: Box<raw::tn_error>,
}

impl Error {
    /// `raw::TN_INVALID_ARGUMENT`, ...
    pub fn status(&self) -> raw::tn_status {
        self.raw.status
    }

    /// What was expected, what was found, and what to do.
    pub fn message(&self) -> &str {
        field(&self.raw.message)
    }

    /// The call that failed.
    pub fn location(&self) -> &str {
        field(&self.raw.r#where)
    }

    pub(crate) fn invalid(message: &str) -> Error {
        let mut raw = Box::new(raw::tn_error {
            status: raw::TN_INVALID_ARGUMENT,
            native_code: 0,
            r#where: [0; 88],
            message: [0; 416],
        });
        for (to, from) in raw.message[..415].iter_mut().zip(message.bytes()) {
            *to = from as c_char;
        }
        Error { raw }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = text(unsafe { raw::tn_status_name(self.status()) });
        write!(to, "{}: {}: {}", status, self.location(), self.message())
    }
}

impl std::error::Error for Error {}

/// Text in an array of a struct, which Tenon terminates and keeps valid UTF-8.
pub(crate) fn field(array: &[c_char]) -> &str {
    let bytes = unsafe { std::slice::from_raw_parts(array.as_ptr().cast::<u8>(), array.len()) };
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..length]).unwrap_or("")
}

/// Text of the library that lives as long as the process.
pub(crate) fn text(from: *const c_char) -> &'static str {
    if from.is_null() {
        return "";
    }
    unsafe { CStr::from_ptr(from) }.to_str().unwrap_or("")
}

/// Calls a function that takes a `tn_error` and returns a status.
pub(crate) fn check(call: impl FnOnce(*mut raw::tn_error) -> raw::tn_status) -> Result<()> {
    let mut err = MaybeUninit::<raw::tn_error>::zeroed();
    match call(err.as_mut_ptr()) {
        raw::TN_OK => Ok(()),
        _ => Err(Error { raw: Box::new(unsafe { err.assume_init() }) }),
    }
}

pub(crate) fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::invalid("expected text without a zero byte"))
}
