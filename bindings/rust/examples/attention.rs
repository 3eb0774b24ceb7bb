//! Causal attention on the best device, and the kernel that would compute it exactly.
//!
//!     cargo run --example attention
use tenon::{raw, Attention, Device, Scope, Tensor};

fn main() -> tenon::Result<()> {
    let device = Device::get("best")?;
    let shape = [1, 8, 256, 64]; // batch, heads, length, size
    let mut q = Tensor::zeros(device, raw::TN_F32, &shape)?;
    q.random_normal()?;
    let mut out = Tensor::zeros(device, raw::TN_F32, &shape)?;
    let causal = || Attention { mask: raw::TN_MASK_CAUSAL, ..Default::default() };

    tenon::attention(&q, &q, &q, &mut out, causal())?;
    let (value, result) = (q.slice(2, 0, 1)?.to_vec::<f32>()?, out.slice(2, 0, 1)?.to_vec::<f32>()?);
    assert!(value.iter().zip(&result).all(|(a, b)| (a - b).abs() < 1e-3)); // the first query sees its own key alone
    println!("attention on {} ({})", device.id(), device.name());

    let _exact = Scope::enter(&["fp32_precision=ieee"])?; // of this thread, until the end of main
    let decision = tenon::attention_explain(&q, &q, &q, &mut out, causal())?;
    println!("{}: {}", decision.problem(), decision.kernel().unwrap_or("no kernel"));
    Ok(())
}
