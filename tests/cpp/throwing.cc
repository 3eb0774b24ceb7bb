// tenon.hpp with exceptions: owners, errors, operators, scopes across threads. Prints what does not hold.
#include <tenon/tenon.hpp>

#include "check.hpp"

#include <array>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace
{

using floats = std::vector<float>;

// Owners cannot be copied, and a temporary one does not become a pointer that dangles.
static_assert(!std::is_copy_constructible_v<tenon::tensor>);
static_assert(!std::is_copy_constructible_v<tenon::stream>);
static_assert(std::is_nothrow_move_assignable_v<tenon::tensor>);
static_assert(std::is_nothrow_move_assignable_v<tenon::graph>);
static_assert(std::is_convertible_v<tenon::tensor &, const tn_tensor *>);
static_assert(!std::is_convertible_v<tenon::tensor, const tn_tensor *>);
static_assert(std::is_convertible_v<tenon::stream &, tn_stream *>);
static_assert(!std::is_convertible_v<tenon::stream, tn_stream *>);
static_assert(tenon::dtype_of<const double> == TN_F64);

tn_device *cpu()
{
    return tenon::device("cpu");
}

template <class Function> tn_status status_of(Function &&function)
{
    try {
        function();
    } catch (const tenon::error &error) {
        CHECK(error.what()[0] != '\0' && error.raw().status == error.status());
        return error.status();
    }
    return TN_OK;
}

void a_released_tensor_releases_its_memory()
{
    static int releases;
    float memory[4] = {1, 2, 3, 4};
    const std::int64_t shape[] = {4};
    const auto count = [](void *) { releases++; };
    {
        tenon::tensor wrapped =
            tenon::call(tn_tensor_wrap, cpu(), memory, TN_F32, shape, nullptr, 1, count, nullptr);
        tenon::tensor view = wrapped.view(tn_tensor_view);
        tenon::tensor moved = std::move(wrapped);
        CHECK(!wrapped && moved && releases == 0);
        moved = tenon::tensor();
        CHECK(!moved && releases == 0 && view.values<float>()[3] == 4);
        tenon::tensor &same = view;
        view = std::move(same);
    }
    CHECK(releases == 1);
}

void exceptions_release_what_was_made()
{
    const std::int64_t before = tenon::call(tn_memory_stats_get, cpu()).count;
    CHECK(status_of([] {
              tenon::tensor first(cpu(), TN_F32, {16}), second(cpu(), TN_F32, {-1});
          }) == TN_INVALID_ARGUMENT);
    CHECK(tenon::call(tn_memory_stats_get, cpu()).count == before);
}

void elements_go_there_and_back()
{
    const std::array<float, 6> from = {1, 2, 3, 4, 5, 6};
    tenon::tensor x = tenon::tensor::copy_of(cpu(), from, {2, 3});
    CHECK(x.dtype() == TN_F32 && x.shape().size() == 2 && x.shape()[1] == 3);
    tenon::tensor columns = x.view(tn_tensor_transpose, 0, 1);
    floats back(6);
    columns.read(back);
    CHECK(back == floats({1, 4, 2, 5, 3, 6}));
    CHECK(status_of([&] { columns.values<float>(); }) == TN_UNSUPPORTED);
    x.reshape({3, -1}).view(tn_tensor_select, 0, 1).write(std::array<float, 2>{30, 40});
    CHECK(x.values<float>()[2] == 30 && x.values<const float>()[3] == 40);
    std::vector<double> doubles(6);
    CHECK(status_of([&] { x.read(doubles); }) == TN_INVALID_ARGUMENT);
    CHECK(status_of([&] { x.values<double>(); }) == TN_INVALID_ARGUMENT);
    floats few(5);
    CHECK(status_of([&] { x.read(few); }) == TN_INVALID_ARGUMENT);
    CHECK(status_of([&] { tenon::tensor::wrap(few, {2, 3}); }) == TN_INVALID_ARGUMENT);
}

void constant_memory_is_not_written()
{
    const floats constant(4, 1.0f);
    tenon::tensor x = tenon::tensor::wrap(constant, {4});
    CHECK(status_of([&] { tenon::fill(x, [](tn_fill_args &args) { args.value = 2; }); }) != TN_OK);
    CHECK(constant == floats(4, 1.0f));
}

void operators_take_their_parts_in_any_form()
{
    const floats ones(6, 1.0f), zeros(4);
    tenon::tensor a = tenon::tensor::copy_of(cpu(), ones, {2, 3});
    tenon::tensor b = tenon::tensor::copy_of(cpu(), ones, {2, 3});
    tenon::tensor bias = tenon::tensor::copy_of(cpu(), floats{1, 2}, {2});
    tenon::tensor out = tenon::tensor::copy_of(cpu(), zeros, {2, 2});
    const auto transposed = [](tn_matmul_args &args) { args.transpose_b = 1; };
    tenon::matmul(a, b, out, bias, transposed);
    CHECK(out.values<float>()[0] == 4 && out.values<float>()[1] == 5);

    tenon::context exact = tenon::derive(nullptr, {tn_with_fp32_precision(TN_FP32_IEEE)});
    tenon::matmul(
        exact, a, b, out, nullptr, transposed, [](auto &args) { args.alpha = 2; },
        tn_stream_default(cpu()));
    CHECK(out.values<float>()[0] == 6 && out.values<float>()[1] == 6);

    tn_matmul_args args = tenon::matmul.args(*a, *b, *out, transposed);
    CHECK(args.struct_size == sizeof args && args.a == &*a && args.transpose_b == 1 && !args.bias);
    args.struct_size = 0;
    tenon::matmul(args);
    CHECK(out.values<float>()[0] == 3);
    tenon::packed packed =
        tenon::call(tn_matmul_pack, nullptr, &(args.struct_size = sizeof args, args));
    args.b = nullptr;
    tenon::call(tn_matmul_packed, packed, &args);

    tenon::matmul.prepare(a, b, out, transposed);
    tenon::decision why = tenon::matmul.explain(a, b, out, transposed);
    CHECK(tn_decision_count(why) > 1);
    CHECK(std::string(tn_decision_problem(why)).find("matmul:f32:m=2,n=2,k=3,tb=1") == 0);
    CHECK(status_of([&] { tenon::matmul(a, b, out); }) == TN_INVALID_ARGUMENT);
}

void functions_of_c_return_their_output()
{
    const std::string name = "cpu";
    tn_device *device = tenon::call(tn_device_get, name);
    CHECK(device == cpu());
    CHECK(tenon::call(tn_setting_get, "tuning.limit") == TN_SETTING_TUNING_LIMIT);
    CHECK(tenon::call(tn_setting_origin, nullptr, TN_SETTING_TUNING_LIMIT).level ==
          TN_LEVEL_DEFAULT);
    tenon::generator generator = tenon::call(tn_generator_create, 7);
    CHECK(tenon::call(tn_generator_state_get, generator).seed == 7);
    floats drawn(4);
    tenon::call(tn_random_fill_uniform, generator, TN_F32, drawn.data(), drawn.size());
    CHECK(drawn[0] > 0 && drawn[0] < 1);
    CHECK(status_of([] { tenon::device("no-such-device"); }) == TN_NOT_FOUND);
    tenon::stream stream = tenon::call(tn_stream_create, device, nullptr);
    tenon::event event = tenon::call(tn_event_create, device, nullptr);
    tenon::call(tn_event_record, event, stream);
    tenon::call(tn_event_synchronize, event);
    tn_stream *raw = stream.detach();
    CHECK(raw && !stream);
    stream = tenon::stream(raw);
    CHECK(stream.get() == raw);
}

void a_tn_error_instead_of_an_exception()
{
    tn_error err;
    tenon::tensor bad(cpu(), TN_F32, {-1}, err);
    CHECK(!bad && err.status == TN_INVALID_ARGUMENT);
    tenon::tensor good(cpu(), TN_F32, {1}, err);
    CHECK(good && err.status == TN_OK);
    CHECK(tenon::matmul(good, good, bad, err) != TN_OK && err.message[0] != '\0');
    CHECK(!tenon::call(tn_graph_end, tn_stream_default(cpu()), err) && err.status != TN_OK);
}

void a_device_and_a_stream_are_current_inside_guards()
{
    tenon::stream stream = tenon::call(tn_stream_create, cpu(), nullptr);
    {
        tenon::device_guard device(cpu());
        tenon::stream_guard inside(stream);
        CHECK(tn_stream_current(cpu()) == stream.get());
    }
    CHECK(tn_stream_current(cpu()) == tn_stream_default(cpu()));
}

void scopes_end_with_their_block_and_with_an_exception()
{
    try {
        tenon::scope outer({tn_with_tuning_limit(3), tn_with_matmul_library(TN_PREFER, "mkl")});
        tenon::scope inner({tn_with_tuning_limit(4)});
        CHECK(tn_get_tuning_limit(nullptr) == 4);
        throw 1;
    } catch (int) {
    }
    CHECK(tn_get_tuning_limit(nullptr) == 10);
    CHECK(status_of([] {
              tenon::scope({tn_with_inference(1), tn_with_tuning_limit(-1)});
          }) == TN_INVALID_ARGUMENT);
    CHECK(tn_get_inference(nullptr) == 0);
}

// A context carries the settings of one thread to others; scopes of each stay its own.
void scopes_belong_to_their_threads()
{
    std::optional<tenon::context> captured;
    {
        tenon::scope outer({tn_with_tuning_limit(3)});
        captured = tenon::call(tn_context_capture);
    }
    std::vector<std::thread> threads;
    std::array<bool, 4> held{};
    for (std::size_t i = 0; i < held.size(); i++)
        threads.emplace_back([&, i] {
            const bool before = tn_get_tuning_limit(nullptr) == 10;
            tenon::scope all(*captured);
            const bool passed_on = tn_get_tuning_limit(nullptr) == 3;
            tenon::scope own({tn_with_tuning_limit(static_cast<std::int64_t>(20 + i))});
            held[i] = before && passed_on &&
                      tn_get_tuning_limit(nullptr) == static_cast<std::int64_t>(20 + i);
        });
    for (std::thread &thread : threads)
        thread.join();
    CHECK(held == (std::array<bool, 4>{true, true, true, true}));
    CHECK(tn_get_tuning_limit(nullptr) == 10);
}

} // namespace

int main()
{
    a_released_tensor_releases_its_memory();
    exceptions_release_what_was_made();
    elements_go_there_and_back();
    constant_memory_is_not_written();
    operators_take_their_parts_in_any_form();
    functions_of_c_return_their_output();
    a_tn_error_instead_of_an_exception();
    a_device_and_a_stream_are_current_inside_guards();
    scopes_end_with_their_block_and_with_an_exception();
    scopes_belong_to_their_threads();
    check_without_exceptions();
    return wrong == 0 ? 0 : 1;
}
