//! Tenon from Rust.
//!
//! [`raw`] is the C interface as it is. The rest is a thin safe layer over it: devices, tensors, streams, settings,
//! operators and decisions, with failures as [`Error`]. `docs/rust.md` is the guide.

mod device;
mod error;
mod settings;
mod tensor;

/// The C interface as it is, written by generate.py: see the C headers for what each item means.
#[allow(non_camel_case_types, non_upper_case_globals)]
pub mod raw {
    include!(concat!(env!("OUT_DIR"), "/raw.rs"));
}

/// A function for each operator, written by generate.py: inputs, then outputs, then options.
mod operators {
    include!(concat!(env!("OUT_DIR"), "/operators.rs"));
}

pub use device::{Device, Stream};
pub use error::{Error, Result};
pub use operators::*;
pub use settings::{explain, Context, Decision, Scope};
pub use tensor::{Element, Tensor};

use error::check;

/// The version of the library, "0.1.0".
pub fn version() -> &'static str {
    error::text(unsafe { raw::tn_version() })
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Page;
