//! Devices and streams.
use crate::error::{c_string, check, text};
use crate::{raw, Result};
use std::fmt;
use std::ptr::{null, null_mut, NonNull};

/// A device. It lives as long as the process and may be used from any thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Device {
    raw: NonNull<raw::tn_device>,
}

unsafe impl Send for Device {}
unsafe impl Sync for Device {}

impl Device {
    /// By name, "cuda:1", or "best", or by conditions: see `tn_device_get`.
    pub fn get(name: &str) -> Result<Device> {
        let name = c_string(name)?;
        let mut found = null_mut();
        check(|err| unsafe { raw::tn_device_get(name.as_ptr(), &mut found, err) })?;
        Ok(Device { raw: NonNull::new(found).expect("a device that was found") })
    }

    pub fn all() -> Result<Vec<Device>> {
        let mut count = 0;
        check(|err| unsafe { raw::tn_device_count(&mut count, err) })?;
        Ok((0..count).filter_map(|at| NonNull::new(unsafe { raw::tn_device_at(at) })).map(|raw| Device { raw }).collect())
    }

    pub fn id(&self) -> &'static str {
        text(unsafe { raw::tn_device_id(self.as_raw()) })
    }

    pub fn name(&self) -> &'static str {
        text(unsafe { raw::tn_device_name(self.as_raw()) })
    }

    /// Waits for all work of all threads on the device.
    pub fn synchronize(&self) -> Result<()> {
        check(|err| unsafe { raw::tn_device_synchronize(self.as_raw(), err) })
    }

    pub fn as_raw(&self) -> *mut raw::tn_device {
        self.raw.as_ptr()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.id())
    }
}

/// A queue of work on one device. It may be used from any thread.
pub struct Stream {
    raw: NonNull<raw::tn_stream>,
}

unsafe impl Send for Stream {}
unsafe impl Sync for Stream {}

impl Stream {
    pub fn new(device: Device) -> Result<Stream> {
        let mut made = null_mut();
        check(|err| unsafe { raw::tn_stream_create(device.as_raw(), null(), &mut made, err) })?;
        Ok(Stream { raw: NonNull::new(made).expect("a stream that was made") })
    }

    /// Waits for its work.
    pub fn synchronize(&self) -> Result<()> {
        check(|err| unsafe { raw::tn_stream_synchronize(self.as_raw(), err) })
    }

    /// Later work on this stream waits for the work that `other` has now.
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        check(|err| unsafe { raw::tn_stream_wait_stream(self.as_raw(), other.as_raw(), err) })
    }

    pub fn as_raw(&self) -> *mut raw::tn_stream {
        self.raw.as_ptr()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        unsafe { raw::tn_stream_release(self.as_raw()) }
    }
}
