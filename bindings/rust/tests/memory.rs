//! Owners give their memory back. In a program of its own, because the library's counts are those of the process.
use tenon::{raw, Context, Device, Stream, Tensor};

fn allocations(device: Device) -> i64 {
    let mut stats = unsafe { std::mem::zeroed::<raw::tn_memory_stats>() };
    stats.struct_size = std::mem::size_of::<raw::tn_memory_stats>();
    let status = unsafe { raw::tn_memory_stats_get(device.as_raw(), &mut stats, std::ptr::null_mut()) };
    assert_eq!(status, raw::TN_OK);
    stats.count
}

#[test]
fn owners_release_what_they_own() {
    let cpu = Device::get("cpu").unwrap();
    let use_all = || {
        let (x, _stream) = (Tensor::zeros(cpu, raw::TN_F32, &[16]).unwrap(), Stream::new(cpu).unwrap());
        let view = x.reshape(&[4, 4]).unwrap();
        assert_eq!(allocations(cpu), 1);
        assert_eq!(view.to_vec::<f32>().unwrap(), [0.0; 16]);
        let context = Context::with(&["inference=true"]).unwrap();
        drop(context.clone());
        drop(tenon::explain("softmax:f32:shape=4x4@cpu:0", Some(&context)).unwrap());
    };
    use_all();
    let blocks = unsafe { raw::tn_allocator_blocks() };
    use_all();
    assert_eq!((allocations(cpu), unsafe { raw::tn_allocator_blocks() }), (0, blocks));
}
