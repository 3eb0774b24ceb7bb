//! Tensors.
use crate::error::check;
use crate::{raw, Device, Error, Result};
use std::marker::PhantomData;
use std::mem::{size_of, size_of_val};
use std::ptr::{null, null_mut};

/// A type of elements.
///
/// # Safety
/// Elements of `DTYPE` have the size of the type, and every value of their bits is valid for it.
pub unsafe trait Element: Copy {
    const DTYPE: raw::tn_dtype;
}

macro_rules! elements {
    ($($kind:ty = $dtype:ident),*) => { $(unsafe impl Element for $kind { const DTYPE: raw::tn_dtype = raw::$dtype; })* };
}
elements!(f32 = TN_F32, f64 = TN_F64, i8 = TN_I8, i16 = TN_I16, i32 = TN_I32, i64 = TN_I64, u8 = TN_U8);
elements!(u16 = TN_U16, u32 = TN_U32, u64 = TN_U64);

/// A tensor that owns its memory (`Tensor<'static>`), or borrows that of a slice or of another tensor.
///
/// Operators take `&Tensor` for what they read and `&mut Tensor` for what they write, so nothing else uses a tensor
/// that is written. Where a tensor is not in host memory, dropping it waits for its device.
pub struct Tensor<'a> {
    raw: raw::tn_tensor,
    memory: PhantomData<&'a mut [u8]>,
}

unsafe impl Send for Tensor<'_> {}
unsafe impl Sync for Tensor<'_> {}

impl Tensor<'static> {
    /// A contiguous tensor of zeros.
    pub fn zeros(device: Device, dtype: raw::tn_dtype, shape: &[i64]) -> Result<Tensor<'static>> {
        let made = Tensor::from_call(|out, err| unsafe {
            raw::tn_tensor_create(device.as_raw(), dtype, shape.as_ptr(), rank(shape), out, err)
        })?;
        let fill = raw::tn_memory_fill_args {
            struct_size: size_of::<raw::tn_memory_fill_args>(),
            device: device.as_raw(),
            to: made.raw.data,
            bytes: made.bytes()?,
            pattern: 0,
            pattern_bytes: 1,
            reserved: 0,
            stream: null_mut(),
        };
        check(|err| unsafe { raw::tn_memory_fill(&fill, err) })?;
        Ok(made)
    }

    /// A copy of these elements, row by row.
    pub fn copy_of<T: Element>(device: Device, elements: &[T], shape: &[i64]) -> Result<Tensor<'static>> {
        let mut made = Tensor::zeros(device, T::DTYPE, shape)?;
        made.write(elements)?;
        Ok(made)
    }
}

impl<'a> Tensor<'a> {
    /// A tensor on the memory of a slice, without a copy; it cannot be written.
    pub fn borrow<T: Element>(elements: &'a [T], shape: &[i64]) -> Result<Tensor<'a>> {
        let mut made = Tensor::on_host(elements.as_ptr(), elements.len(), shape)?;
        made.raw.flags |= raw::TN_TENSOR_READ_ONLY;
        Ok(made)
    }

    pub fn borrow_mut<T: Element>(elements: &'a mut [T], shape: &[i64]) -> Result<Tensor<'a>> {
        Tensor::on_host(elements.as_ptr(), elements.len(), shape)
    }

    pub fn dtype(&self) -> raw::tn_dtype {
        self.raw.dtype
    }

    pub fn shape(&self) -> &[i64] {
        match self.raw.ndim {
            0 => &[],
            rank => unsafe { std::slice::from_raw_parts(self.raw.shape, rank as usize) },
        }
    }

    /// Copies elements to the tensor, row by row, and waits for the copy.
    pub fn write<T: Element>(&mut self, from: &[T]) -> Result<()> {
        self.check_dtype::<T>()?;
        check(|err| unsafe { raw::tn_tensor_write(self.as_raw(), from.as_ptr().cast(), size_of_val(from) as u64, err) })
    }

    /// Copies all elements to `to`, row by row, after the work that computes them.
    pub fn read<T: Element>(&self, to: &mut [T]) -> Result<()> {
        self.check_dtype::<T>()?;
        check(|err| unsafe { raw::tn_tensor_read(self.as_raw(), to.as_mut_ptr().cast(), size_of_val(to) as u64, err) })
    }

    /// All elements, row by row.
    pub fn to_vec<T: Element + Default>(&self) -> Result<Vec<T>> {
        let mut count = 0;
        check(|err| unsafe { raw::tn_tensor_elements(self.as_raw(), &mut count, err) })?;
        let mut made = vec![T::default(); count as usize];
        self.read(&mut made)?;
        Ok(made)
    }

    /// Fills it with normally distributed numbers of the device's generator.
    pub fn random_normal(&mut self) -> Result<()> {
        check(|err| unsafe { raw::tn_random_normal(null_mut(), self.as_raw(), err) })
    }

    /// The same elements with another shape, to be read; one size may be -1.
    pub fn reshape(&self, shape: &[i64]) -> Result<Tensor<'_>> {
        self.view(|from, out, err| unsafe { raw::tn_tensor_reshape(from, shape.as_ptr(), rank(shape), out, err) })
    }

    /// Two dimensions exchanged, to be read.
    pub fn transpose(&self, axis: i32, other: i32) -> Result<Tensor<'_>> {
        self.view(|from, out, err| unsafe { raw::tn_tensor_transpose(from, axis, other, out, err) })
    }

    /// The elements from `begin` to before `end` along an axis, to be read.
    pub fn slice(&self, axis: i32, begin: i64, end: i64) -> Result<Tensor<'_>> {
        self.view(|from, out, err| unsafe { raw::tn_tensor_slice(from, axis, begin, end, 1, out, err) })
    }

    /// The same, to be written.
    pub fn slice_mut(&mut self, axis: i32, begin: i64, end: i64) -> Result<Tensor<'_>> {
        let from = &self.raw;
        Tensor::from_call(|out, err| unsafe { raw::tn_tensor_slice(from, axis, begin, end, 1, out, err) })
    }

    pub fn as_raw(&self) -> *const raw::tn_tensor {
        &self.raw
    }

    /// Takes over a tensor of the C interface.
    ///
    /// # Safety
    /// It must be valid for `'a`, initialized, and nothing else may write to its memory.
    pub unsafe fn from_raw(raw: raw::tn_tensor) -> Tensor<'a> {
        Tensor { raw, memory: PhantomData }
    }

    fn view(
        &self,
        call: impl FnOnce(*const raw::tn_tensor, *mut raw::tn_tensor, *mut raw::tn_error) -> raw::tn_status,
    ) -> Result<Tensor<'_>> {
        let mut made = Tensor::from_call(|out, err| call(self.as_raw(), out, err))?;
        made.raw.flags |= raw::TN_TENSOR_READ_ONLY;
        Ok(made)
    }

    fn from_call<'b>(
        call: impl FnOnce(*mut raw::tn_tensor, *mut raw::tn_error) -> raw::tn_status,
    ) -> Result<Tensor<'b>> {
        let mut raw = unsafe { std::mem::zeroed::<raw::tn_tensor>() };
        check(|err| call(&mut raw, err))?;
        Ok(Tensor { raw, memory: PhantomData })
    }

    fn on_host<T: Element>(elements: *const T, count: usize, shape: &[i64]) -> Result<Tensor<'a>> {
        let wanted = shape.iter().try_fold(1i64, |product, &size| product.checked_mul(size));
        if shape.iter().any(|&size| size < 0) || wanted != Some(count as i64) {
            return Err(Error::invalid(&format!("expected elements for the shape {shape:?}, got {count}")));
        }
        let cpu = Device::get("cpu")?;
        Tensor::from_call(|out, err| unsafe {
            let (data, dtype) = (elements as *mut T, T::DTYPE);
            raw::tn_tensor_wrap(
                cpu.as_raw(), data.cast(), dtype, shape.as_ptr(), null(), rank(shape), None, null_mut(), out, err,
            )
        })
    }

    fn bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        check(|err| unsafe { raw::tn_tensor_bytes(self.as_raw(), &mut bytes, err) })?;
        Ok(bytes)
    }

    fn check_dtype<T: Element>(&self) -> Result<()> {
        if self.raw.dtype == T::DTYPE {
            return Ok(());
        }
        let names = [self.raw.dtype, T::DTYPE].map(|one| crate::error::text(unsafe { raw::tn_dtype_name(one) }));
        Err(Error::invalid(&format!("expected elements of dtype {}, got {}", names[0], names[1])))
    }
}

impl Drop for Tensor<'_> {
    fn drop(&mut self) {
        if self.raw.device_type != raw::TN_DLPACK_CPU {
            let mut device = null_mut();
            unsafe {
                if raw::tn_tensor_device(&self.raw, &mut device, null_mut()) == raw::TN_OK {
                    raw::tn_device_synchronize(device, null_mut());
                }
            }
        }
        unsafe { raw::tn_tensor_release(&mut self.raw) }
    }
}

fn rank(shape: &[i64]) -> i32 {
    i32::try_from(shape.len()).unwrap_or(i32::MAX)
}
