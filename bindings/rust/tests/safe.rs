//! The safe layer: what it computes, what it refuses, what ends with its owner, and threads.
use std::thread;
use tenon::{raw, Attention, Binary, Context, Device, Element, Fill, Matmul, Permute, Reduce, Scope, Softmax, Stream, Tensor};

fn cpu() -> Device {
    Device::get("cpu").unwrap()
}

fn tensor<T: Element>(elements: &[T], shape: &[i64]) -> Tensor<'static> {
    Tensor::copy_of(cpu(), elements, shape).unwrap()
}

fn zeros(shape: &[i64]) -> Tensor<'static> {
    Tensor::zeros(cpu(), raw::TN_F32, shape).unwrap()
}

#[test]
fn products_with_options() {
    let (a, b) = (tensor(&[1f32, 2.0, 3.0, 4.0], &[2, 2]), tensor(&[1f32, 0.0, 1.0, 0.0], &[2, 2]));
    let bias = tensor(&[10f32, 20.0], &[2]);
    let mut out = zeros(&[2, 2]);
    tenon::matmul(&a, &b, &mut out, Matmul { transpose_b: 1, bias: Some(&bias), ..Default::default() }).unwrap();
    assert_eq!(out.to_vec::<f32>().unwrap(), [11.0, 21.0, 13.0, 23.0]);
    let decision = tenon::matmul_explain(&a, &b, &mut out, Matmul::default()).unwrap();
    assert!(decision.problem().starts_with("matmul:f32:m=2,n=2,k=2"));
    assert!(decision.kernel().is_some() && decision.candidates().len() > 1);
}

#[test]
fn attention_writes_an_optional_output() {
    let ones = vec![1f32; 2 * 4 * 8];
    let q = tensor(&ones, &[1, 2, 4, 8]);
    let (mut out, mut lse) = (zeros(&[1, 2, 4, 8]), zeros(&[1, 2, 4]));
    let options = Attention { mask: raw::TN_MASK_CAUSAL, lse: Some(&mut lse), ..Default::default() };
    tenon::attention(&q, &q, &q, &mut out, options).unwrap();
    assert!(out.to_vec::<f32>().unwrap().iter().all(|x| (x - 1.0).abs() < 1e-5));
    assert!((lse.to_vec::<f32>().unwrap()[0] - 8f32.sqrt()).abs() < 1e-4);
}

#[test]
fn other_operators() {
    let x = tensor(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    let (mut turned, mut sums, mut same) = (zeros(&[3, 2]), zeros(&[2]), zeros(&[2, 3]));
    tenon::permute(&x, &mut turned, Permute { order: &[1, 0], ..Default::default() }).unwrap();
    assert_eq!(turned.to_vec::<f32>().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    tenon::reduce(&x, &mut sums, Reduce { axes: 2, ..Default::default() }).unwrap();
    assert_eq!(sums.to_vec::<f32>().unwrap(), [6.0, 15.0]);
    tenon::binary(&x, &x, &mut same, Binary { kind: raw::TN_BINARY_SUB, ..Default::default() }).unwrap();
    assert_eq!(same.to_vec::<f32>().unwrap(), [0.0; 6]);
    tenon::fill(&mut same, Fill { value: 2.5, ..Default::default() }).unwrap();
    assert_eq!(same.to_vec::<f32>().unwrap(), [2.5; 6]);
}

#[test]
fn slices_are_borrowed() {
    let from = [1f32, 1.0, 1.0, 1.0];
    let mut to = [0f32; 4];
    {
        let x = Tensor::borrow(&from, &[1, 4]).unwrap();
        let mut out = Tensor::borrow_mut(&mut to, &[1, 4]).unwrap();
        tenon::softmax(&x, &mut out, Softmax::default()).unwrap();
    }
    assert_eq!(to, [0.25; 4]);
    let mut constant = Tensor::borrow(&from, &[4]).unwrap();
    assert!(constant.write(&[2f32; 4]).is_err());
    assert!(tenon::fill(&mut constant, Fill::default()).is_err());
    assert_eq!(from, [1.0; 4]);
}

#[test]
fn views_are_borrowed() {
    let mut x = tensor(&[1i32, 2, 3, 4, 5, 6], &[2, 3]);
    assert_eq!(x.transpose(0, 1).unwrap().to_vec::<i32>().unwrap(), [1, 4, 2, 5, 3, 6]);
    assert_eq!(x.reshape(&[-1]).unwrap().shape(), [6]);
    assert!(x.slice(0, 0, 1).unwrap().write(&[0i32; 3]).is_err());
    x.slice_mut(0, 1, 2).unwrap().write(&[7i32, 8, 9]).unwrap();
    assert_eq!(x.to_vec::<i32>().unwrap(), [1, 2, 3, 7, 8, 9]);
}

#[test]
fn mistakes_are_errors() {
    let error = Device::get("cpu:77").unwrap_err();
    assert_eq!(error.status(), raw::TN_NOT_FOUND);
    assert!(error.message().contains("cpu:0") && format!("{error:?}").starts_with("not-found: "));
    assert_eq!(Device::get("a\0b").unwrap_err().status(), raw::TN_INVALID_ARGUMENT);
    assert!(Tensor::zeros(cpu(), raw::TN_F32, &[-1]).is_err());
    assert!(Tensor::borrow(&[1f32], &[2]).is_err() && Tensor::borrow(&[1f32; 4], &[-2, -2]).is_err());
    let mut x = zeros(&[2]);
    assert!(x.write(&[1f64, 2.0]).unwrap_err().message().contains("expected elements of dtype f32, got f64"));
    assert!(x.write(&[1f32]).is_err() && x.read(&mut [0f32; 3]).is_err());
    let mut wrong = zeros(&[3]);
    assert!(tenon::softmax(&x, &mut wrong, Softmax::default()).is_err());
}

#[test]
fn scopes_and_contexts() {
    let key = "tuning.limit";
    let before = Context::capture().unwrap();
    let inside = {
        let _scope = Scope::enter(&["tuning.limit=3", "matmul.library=prefer:openblas"]).unwrap();
        Context::capture().unwrap()
    };
    assert_eq!(inside.value(key).unwrap(), "3");
    assert_eq!(Context::capture().unwrap().value(key).unwrap(), before.value(key).unwrap());
    assert!(Scope::enter(&["tuning.limit=3", "tuning.limit=-1"]).is_err());
    assert!(Scope::enter(&["tuning.limt=3"]).err().unwrap().message().contains("tuning.limit"));
    let derived = inside.and(&["tuning.limit=4"]).unwrap().clone();
    assert_eq!(derived.value(key).unwrap(), "4");
    thread::spawn(move || {
        assert_eq!(Context::capture().unwrap().value(key).unwrap(), before.value(key).unwrap());
        let _scope = Scope::enter_context(&inside).unwrap();
        assert_eq!(Context::capture().unwrap().value(key).unwrap(), "3");
    })
    .join()
    .unwrap();
}

#[test]
fn tensors_cross_threads() {
    let x = tensor(&[1f32; 64], &[8, 8]);
    let stream = Stream::new(cpu()).unwrap();
    let context = Context::with(&["fp32_precision=ieee"]).unwrap();
    thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let mut out = zeros(&[8, 8]);
                let options = Matmul { stream: Some(&stream), context: Some(&context), ..Default::default() };
                tenon::matmul(&x, &x, &mut out, options).unwrap();
                stream.synchronize().unwrap();
                assert_eq!(out.to_vec::<f32>().unwrap(), [8.0; 64]);
            });
        }
    });
}

#[test]
fn problems_are_explained() {
    let decision = tenon::explain("softmax:f32:shape=64x64@cpu:0", None).unwrap();
    assert!(decision.kernel().unwrap().starts_with("cpu.softmax."));
    let forbidden = Context::with(&["rules=forbid:platform:cpu"]).unwrap();
    let refused = tenon::explain("softmax:f32:shape=64x64@cpu:0", Some(&forbidden)).unwrap();
    assert!(refused.kernel().is_none() && refused.candidates()[0].2.is_some());
    assert_eq!(tenon::explain("softmax:f99", None).err().unwrap().status(), raw::TN_INVALID_ARGUMENT);
}
