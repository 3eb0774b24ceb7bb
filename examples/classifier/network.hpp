// A small network for images::image, computed and trained by Tenon on any device.
//
//     pixels     [batch, 36, 36]
//     patches    [batch * 64, 64]     each patch of 8 x 8 pixels, 4 pixels apart
//     features   [batch * 64, 32]     tanh(patches W + b)
//     blocks     [batch * 16, 128]    2 x 2 neighbours side by side
//     shapes     [batch * 16, 64]     tanh(blocks W + b)
//     pooled     [batch, 64]          the mean over the image
//     chances    [batch, kinds]       softmax(pooled W + b)
//
// Tenon does not differentiate: the gradients are written out.
#ifndef NETWORK_HPP
#define NETWORK_HPP

#include "images.hpp"

#include <tenon/tenon.hpp>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

using tenon::tensor;

// out = in kind other, with broadcasting; `out` may be `in`.
inline void combine(const tensor &in, std::int32_t kind, const tensor &other, const tensor &out)
{
    tenon::binary(in, other, out, [kind](tn_binary_args &args) { args.kind = kind; });
}

// The same elements, grouped by the axes of `shape`, in the order of `axes`: from one matrix to another.
inline void rearrange(const tensor &in, tenon::span<const std::int64_t> shape,
                      tenon::span<const std::int32_t> axes, const tensor &out)
{
    const tensor ordered = in.reshape(shape).view(tn_tensor_permute, axes.data(), axes.size());
    tenon::permute(ordered, out.reshape(ordered.shape()));
}

inline tensor number(tn_device *device, float value)
{
    return tensor::copy_of(device, std::vector<float>{value}, {1});
}

inline tensor random_weights(tn_device *device, std::int64_t in, std::int64_t out,
                             std::mt19937 &random)
{
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(in)));
    std::vector<float> values(static_cast<std::size_t>(in * out));
    for (float &value : values)
        value = normal(random);
    return tensor::copy_of(device, values, {in, out});
}

// out = in W + b, or the tanh of it, for a fixed number of rows.
class dense
{
  public:
    dense(tn_device *device, std::int64_t rows, std::int64_t in, std::int64_t out, bool with_tanh,
          std::mt19937 &random)
        : with_tanh_(with_tanh), one_(number(device, 1)),
          weight_(random_weights(device, in, out, random)), weight_step_(device, TN_F32, {in, out}),
          bias_(device, TN_F32, {out}), bias_step_(device, TN_F32, {out}),
          scaled_(device, TN_F32, {in, out}), out_(device, TN_F32, {rows, out}),
          square_(device, TN_F32, {rows, out}), slope_(device, TN_F32, {rows, out})
    {
        for (const tensor *zero : {&bias_, &weight_step_})
            tenon::fill(*zero);
    }

    const tensor &out() const
    {
        return out_;
    }

    void forward(const tensor &in)
    {
        tenon::matmul(in, weight_, out_, bias_);
        if (with_tanh_)
            tenon::unary(out_, out_, [](tn_unary_args &args) { args.kind = TN_UNARY_TANH; });
    }

    // From the gradient of `out`: that of `in`, unless it is NULL, and a step of the weights against theirs.
    void backward(const tensor &in, const tensor &gradient_out, const tensor *gradient_in,
                  const tensor &rate)
    {
        const tensor &gradient = with_tanh_ ? through_tanh(gradient_out) : gradient_out;
        if (gradient_in)
            tenon::matmul(gradient, weight_, *gradient_in,
                          [](tn_matmul_args &args) { args.transpose_b = 1; });
        tenon::matmul(in, gradient, weight_step_, [](tn_matmul_args &args) {
            args.transpose_a = 1;
            args.beta = 0.9; // momentum
        });
        combine(weight_step_, TN_BINARY_MUL, rate, scaled_);
        combine(weight_, TN_BINARY_SUB, scaled_, weight_);
        tenon::reduce(gradient, bias_step_, [](tn_reduce_args &args) { args.axes = 1; });
        combine(bias_step_, TN_BINARY_MUL, rate, bias_step_);
        combine(bias_, TN_BINARY_SUB, bias_step_, bias_);
    }

  private:
    // The derivative of y = tanh(x) is 1 - y * y.
    const tensor &through_tanh(const tensor &gradient_out)
    {
        combine(out_, TN_BINARY_MUL, out_, square_);
        combine(one_, TN_BINARY_SUB, square_, slope_);
        combine(slope_, TN_BINARY_MUL, gradient_out, slope_);
        return slope_;
    }

    bool with_tanh_;
    tensor one_, weight_, weight_step_, bias_, bias_step_, scaled_, out_, square_, slope_;
};

class network
{
  public:
    static constexpr std::int64_t kinds = images::kinds.size();

    network(tn_device *device, std::int64_t batch, std::mt19937 &random)
        : batch_(batch), rate_(number(device, 0.1f)),
          per_image_(number(device, 1 / static_cast<float>(batch))),
          per_block_(number(device, 1.0f / 16)),
          pixels_(device, TN_F32, {batch, images::side, images::side}),
          windows_(make_windows(device)), patches_(device, TN_F32, {batch * 64, 64}),
          blocks_(device, TN_F32, {batch * 16, 128}), pooled_(device, TN_F32, {batch, 64}),
          chances_(device, TN_F32, {batch, kinds}), wanted_(device, TN_F32, {batch, kinds}),
          pooled_gradient_(device, TN_F32, {batch, 64}),
          shapes_gradient_(device, TN_F32, {batch * 16, 64}),
          blocks_gradient_(device, TN_F32, {batch * 16, 128}),
          features_gradient_(device, TN_F32, {batch * 64, 32}),
          features_(device, batch * 64, 64, 32, true, random),
          shapes_(device, batch * 16, 128, 64, true, random),
          scores_(device, batch, 64, kinds, false, random)
    {
    }

    // The chances of each kind, image by image.
    std::vector<float> classify(const std::vector<images::image> &batch)
    {
        forward(batch);
        std::vector<float> found(static_cast<std::size_t>(batch_ * kinds));
        chances_.read(found);
        return found;
    }

    // One step of gradient descent towards these kinds.
    void train(const std::vector<images::image> &batch, const std::vector<std::size_t> &truth)
    {
        forward(batch);
        std::vector<float> wanted(static_cast<std::size_t>(batch_ * kinds));
        for (std::size_t i = 0; i < truth.size(); i++)
            wanted[i * images::kinds.size() + truth[i]] = 1;
        wanted_.write(wanted);
        backward();
    }

  private:
    void forward(const std::vector<images::image> &batch)
    {
        pixels_.write(tenon::span(batch.data()->data(), batch.size() * images::pixels));
        const tensor rows = pixels_.reshape({batch_, images::pixels});
        tenon::norm(rows, rows); // mean 0 and variance 1 in each image
        tenon::permute(windows_, patches_.reshape({batch_, 8, 8, 8, 8}));
        features_.forward(patches_);
        rearrange(features_.out(), {batch_, 4, 2, 4, 2, 32}, {0, 1, 3, 2, 4, 5}, blocks_);
        shapes_.forward(blocks_);
        tenon::reduce(shapes_.out().reshape({batch_, 16, 64}), pooled_, [](tn_reduce_args &args) {
            args.kind = TN_REDUCE_MEAN;
            args.axes = 2;
        });
        scores_.forward(pooled_);
        tenon::softmax(scores_.out(), chances_);
    }

    // The gradient of the cross entropy with respect to the scores is chances - wanted.
    void backward()
    {
        combine(chances_, TN_BINARY_SUB, wanted_, chances_);
        combine(chances_, TN_BINARY_MUL, per_image_, chances_);
        scores_.backward(pooled_, chances_, &pooled_gradient_, rate_);
        combine(pooled_gradient_.reshape({batch_, 1, 64}), TN_BINARY_MUL, per_block_,
                shapes_gradient_.reshape({batch_, 16, 64}));
        shapes_.backward(blocks_, shapes_gradient_, &blocks_gradient_, rate_);
        rearrange(blocks_gradient_, {batch_, 4, 4, 2, 2, 32}, {0, 1, 3, 2, 4, 5},
                  features_gradient_);
        features_.backward(patches_, features_gradient_, nullptr, rate_);
    }

    // A view of the pixels with overlapping windows: [batch, 8, 8, 8, 8].
    tensor make_windows(tn_device *device) const
    {
        const std::int64_t side = images::side;
        const std::int64_t shape[] = {batch_, 8, 8, 8, 8},
                           strides[] = {side * side, 4 * side, 4, side, 1};
        return tenon::call(tn_tensor_wrap, device, (*pixels_).data, TN_F32, shape, strides, 5,
                           nullptr, nullptr);
    }

    std::int64_t batch_;
    tensor rate_, per_image_, per_block_, pixels_, windows_, patches_, blocks_, pooled_, chances_,
        wanted_;
    tensor pooled_gradient_, shapes_gradient_, blocks_gradient_, features_gradient_;
    dense features_, shapes_, scores_;
};

#endif
