/* Tenon for C++17 and later: owners, exceptions, and one way to call every function of the C interface.
 *
 *     tn_device *device = tenon::device("best");
 *     tenon::tensor a(device, TN_F32, {256, 64}), b(device, TN_F32, {128, 64});
 *     tenon::tensor out(device, TN_F32, {256, 128});
 *     tenon::matmul(a, b, out, [](tn_matmul_args &args) { args.transpose_b = 1; });
 *
 * This header adds to tenon.h and replaces nothing: types, constants, settings and the contracts of
 * functions are those of C. docs/cpp.md is the guide.
 *
 * Failures. A call that fails throws tenon::error. A call with a tn_error as its last argument never
 * throws: it writes the failure there, and returns a tn_status or an empty object. If it succeeds, it
 * sets the status of that tn_error to TN_OK. Without exceptions (-fno-exceptions), a call that would
 * throw does not compile.
 *
 * Ownership. tensor, context, stream, event, ... release what they own. They can be moved, not copied,
 * and they convert to the pointer that functions of C take, unless they are temporary objects.
 *
 * Thread-safety: that of the functions of C which are called; owners are as any local variable. Files
 * compiled with and without exceptions may be linked together. */
#ifndef TENON_TENON_HPP
#define TENON_TENON_HPP

#include "tenon.h"

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <tuple>
#include <type_traits>
#include <utility>

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define TN_CPP_THROWS_ 1
#define TN_CPP_MODE_   throwing
#define TN_CPP_THROW_  = {}
#else
#define TN_CPP_THROWS_ 0
#define TN_CPP_MODE_   nonthrowing
#define TN_CPP_THROW_
#endif

namespace tenon
{
inline namespace TN_CPP_MODE_
{

/* ---- Failures ---- */

#if TN_CPP_THROWS_
/* What a failed call throws. */
class TN_API error : public std::exception
{
  public:
    explicit error(const tn_error &raw) noexcept : raw_(raw) {}
    const char *what() const noexcept override
    {
        return raw_.message;
    }
    const char *where() const noexcept
    {
        return raw_.where;
    }
    tn_status status() const noexcept
    {
        return raw_.status;
    }
    const tn_error &raw() const noexcept
    {
        return raw_;
    }

  private:
    tn_error raw_;
};
#endif

/* Where a call reports its failure: in the tn_error that the caller passed, else by throwing. */
class on_failure
{
  public:
#if TN_CPP_THROWS_
    constexpr on_failure() noexcept = default;
#endif
    constexpr on_failure(tn_error &err) noexcept : err_(&err) {}

    /* Runs function(tn_error *), which returns a tn_status, and reports its failure. */
    template <class Function> tn_status check(Function &&function) const
    {
#if TN_CPP_THROWS_
        if (!err_) {
            tn_error err;
            if (function(&err) != TN_OK)
                throw error(err);
            return TN_OK;
        }
#endif
        const tn_status status = function(err_);
        if (status == TN_OK)
            err_->status = TN_OK;
        return status;
    }

  private:
    tn_error *err_ = nullptr;
};

/* ---- Views of memory ---- */

/* A pointer and a number of elements: of a list in braces, an array, a vector, a std::span. It does not
 * keep them alive. */
template <class T> class span
{
    using value = std::remove_const_t<T>;
    template <class Container>
    using is_container = std::enable_if_t<
        !std::is_same_v<std::decay_t<Container>, span> &&
        std::is_convertible_v<decltype(std::data(std::declval<Container &>())), T *>>;

  public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class Container, class = is_container<Container>>
    constexpr span(Container &&from) noexcept : span(std::data(from), std::size(from))
    {
    }
    template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
    constexpr span(std::initializer_list<value> list) noexcept : span(list.begin(), list.size())
    {
    }

    constexpr T *data() const noexcept
    {
        return data_;
    }
    constexpr std::size_t size() const noexcept
    {
        return size_;
    }
    constexpr std::size_t bytes() const noexcept
    {
        return size_ * sizeof(T);
    }
    constexpr bool empty() const noexcept
    {
        return size_ == 0;
    }
    constexpr T *begin() const noexcept
    {
        return data_;
    }
    constexpr T *end() const noexcept
    {
        return data_ + size_;
    }
    constexpr T &operator[](std::size_t index) const noexcept
    {
        return data_[index];
    }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};
template <class Container>
span(Container &&) -> span<std::remove_pointer_t<decltype(std::data(std::declval<Container &>()))>>;

/* The dtype of a C++ type; TN_DTYPE_NONE if it has none. Specialize it for 16- and 8-bit floats. */
template <class T> inline constexpr tn_dtype dtype_of = TN_DTYPE_NONE;
template <class T> inline constexpr tn_dtype dtype_of<const T> = dtype_of<T>;
template <> inline constexpr tn_dtype dtype_of<bool> = TN_BOOL;
template <> inline constexpr tn_dtype dtype_of<std::int8_t> = TN_I8;
template <> inline constexpr tn_dtype dtype_of<std::int16_t> = TN_I16;
template <> inline constexpr tn_dtype dtype_of<std::int32_t> = TN_I32;
template <> inline constexpr tn_dtype dtype_of<std::int64_t> = TN_I64;
template <> inline constexpr tn_dtype dtype_of<std::uint8_t> = TN_U8;
template <> inline constexpr tn_dtype dtype_of<std::uint16_t> = TN_U16;
template <> inline constexpr tn_dtype dtype_of<std::uint32_t> = TN_U32;
template <> inline constexpr tn_dtype dtype_of<std::uint64_t> = TN_U64;
template <> inline constexpr tn_dtype dtype_of<float> = TN_F32;
template <> inline constexpr tn_dtype dtype_of<double> = TN_F64;
template <> inline constexpr tn_dtype dtype_of<std::complex<float>> = TN_C64;
template <> inline constexpr tn_dtype dtype_of<std::complex<double>> = TN_C128;

/* ---- Owners ---- */

/* Owns one object of the C interface, which Release takes back. Empty if it owns none. */
template <class T, void (*Release)(T *)> class handle
{
  public:
    constexpr handle() noexcept = default;
    constexpr explicit handle(T *owned) noexcept : raw_(owned) {}
    handle(handle &&other) noexcept : raw_(other.detach()) {}
    handle &operator=(handle &&other) noexcept
    {
        handle(std::move(other)).swap(*this);
        return *this;
    }
    ~handle()
    {
        Release(raw_);
    }

    explicit operator bool() const noexcept
    {
        return raw_ != nullptr;
    }
    operator T *() const &noexcept
    {
        return raw_;
    }
    operator T *() const && =
        delete; /* a temporary object is released before the pointer is used */
    T *get() const noexcept
    {
        return raw_;
    }

    /* Gives the object to the caller, who must release it. */
    T *detach() noexcept
    {
        return std::exchange(raw_, nullptr);
    }
    void swap(handle &other) noexcept
    {
        std::swap(raw_, other.raw_);
    }

  private:
    T *raw_ = nullptr;
};

#define TN_CPP_HANDLES_(X)  \
    X(attention_video_plan) \
    X(cache_list)           \
    X(context)              \
    X(decision)             \
    X(einsum_path)          \
    X(event)                \
    X(generator)            \
    X(graph)                \
    X(lock_report)          \
    X(machine)              \
    X(module_list)          \
    X(packed)               \
    X(platform_list)        \
    X(registration)         \
    X(stream)               \
    X(topology)

#define TN_CPP_HANDLE_(name) using name = handle<::tn_##name, ::tn_##name##_release>;
TN_CPP_HANDLES_(TN_CPP_HANDLE_)
#undef TN_CPP_HANDLE_

class tensor;

/* ---- Any function of the C interface ---- */

namespace detail
{

/* The type that owns what a function of C writes to an `O *out`: O itself if there is nothing to
 * release. */
template <class O> struct owner_of {
    using type = O;
};
template <> struct owner_of<tn_tensor> {
    using type = tensor;
};
#define TN_CPP_OWNER_(name)                      \
    template <> struct owner_of<::tn_##name *> { \
        using type = name;                       \
    };
TN_CPP_HANDLES_(TN_CPP_OWNER_)
#undef TN_CPP_OWNER_
#undef TN_CPP_HANDLES_

template <class T, class = void> inline constexpr bool has_struct_size = false;
template <class T>
inline constexpr bool has_struct_size<T, std::void_t<decltype(std::declval<T &>().struct_size)>> =
    true;

template <class T> T make_out() noexcept
{
    T out{};
    if constexpr (has_struct_size<T>)
        out.struct_size = sizeof out;
    return out;
}

template <class T> inline constexpr bool is_number = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T, class = void> inline constexpr bool is_string = false;
template <class T>
inline constexpr bool is_string<T, std::void_t<decltype(std::declval<T &>().c_str())>> = true;

/* An argument of call() as a parameter of type P. */
template <class P, class A> decltype(auto) pass(A &&argument) noexcept
{
    using plain = std::decay_t<A>;
    if constexpr (is_number<P> && is_number<plain>) {
        static_assert(std::is_floating_point_v<P> || !std::is_floating_point_v<plain>,
                      "expected an integer, got a floating-point number");
        return static_cast<P>(argument);
    } else if constexpr (is_string<plain>) {
        return argument.c_str();
    } else {
        return std::forward<A>(argument);
    }
}

/* Whether the last of the arguments is a tn_error. */
template <class... A> constexpr bool ends_with_error() noexcept
{
    if constexpr (sizeof...(A) == 0)
        return false;
    else
        return std::is_same_v<std::tuple_element_t<sizeof...(A) - 1, std::tuple<A &...>>,
                              tn_error &>;
}

/* Where a call with these arguments reports its failure. */
template <class... A> on_failure failure_of(A &...arguments) noexcept
{
    static_assert(TN_CPP_THROWS_ || ends_with_error<A...>(),
                  "exceptions are disabled: pass a tn_error as the last argument");
    if constexpr (ends_with_error<A...>())
        return on_failure(std::get<sizeof...(A) - 1>(std::tie(arguments...)));
#if TN_CPP_THROWS_
    else
        return on_failure();
#endif
}

/* Calls f with the first arguments, one for each I, then with `out`. */
template <class... P, class Arguments, std::size_t... I, class... Out>
tn_status run(tn_status (*f)(P...), on_failure failure, Arguments &arguments,
              std::index_sequence<I...>, Out... out)
{
    using parameters = std::tuple<P...>;
    return failure.check([&](tn_error *err) {
        return f(pass<std::tuple_element_t<I, parameters>>(std::get<I>(std::move(arguments)))...,
                 out..., err);
    });
}

} /* namespace detail */

/* Calls a function of C that can fail. If its last parameter before the tn_error is an output, that
 * may be omitted: then it is the result, as an owner if it must be released. Outputs that are structs
 * get their struct_size.
 *
 *     tenon::call(tn_device_synchronize, device);
 *     tenon::graph graph = tenon::call(tn_graph_end, stream);
 *     tn_memory_stats stats = tenon::call(tn_memory_stats_get, device); */
template <class... P, class... A> auto call(tn_status (*f)(P...), A &&...arguments)
{
    constexpr std::size_t most = sizeof...(P) - 1;
    constexpr std::size_t given = sizeof...(A) - (detail::ends_with_error<A...>() ? 1 : 0);
    using parameters = std::tuple<P..., void>;
    static_assert(std::is_same_v<std::tuple_element_t<most, parameters>, tn_error *>,
                  "expected a function that can fail: its last parameter is a tn_error *");
    static_assert(given == most || given + 1 == most,
                  "expected an argument for each parameter, or one output less");
    const on_failure failure = detail::failure_of(arguments...);
    auto all = std::forward_as_tuple(std::forward<A>(arguments)...);
    if constexpr (given == most) {
        return detail::run(f, failure, all, std::make_index_sequence<given>());
    } else {
        using pointer = std::tuple_element_t<given, parameters>;
        using output = std::remove_pointer_t<pointer>;
        static_assert(std::is_pointer_v<pointer> && !std::is_const_v<output> &&
                          !std::is_void_v<output>,
                      "the last parameter is no output: expected an argument for it");
        output out = detail::make_out<output>();
        detail::run(f, failure, all, std::make_index_sequence<given>(), &out);
        return typename detail::owner_of<output>::type(out);
    }
}

/* The device with this name: see tn_device_get. */
inline tn_device *device(const char *name, on_failure failure TN_CPP_THROW_)
{
    tn_device *found = nullptr;
    failure.check([&](tn_error *err) { return tn_device_get(name, &found, err); });
    return found;
}

/* ---- Tensors ---- */

/* A tensor or a view of one: see tensor.h. Empty if it was moved from or could not be made. */
class tensor
{
  public:
    constexpr tensor() noexcept = default;
    constexpr explicit tensor(const tn_tensor &owned) noexcept : raw_(owned) {}

    /* A contiguous tensor with memory of its own, not initialized. NULL device: the current one. */
    tensor(tn_device *device, tn_dtype dtype, span<const std::int64_t> shape,
           on_failure failure TN_CPP_THROW_)
    {
        failure.check([&](tn_error *err) {
            return tn_tensor_create(device, dtype, shape.data(), rank_of(shape), &raw_, err);
        });
    }

    tensor(tensor &&other) noexcept : raw_(std::exchange(other.raw_, tn_tensor())) {}
    tensor &operator=(tensor &&other) noexcept
    {
        tensor taken(std::move(other));
        std::swap(raw_, taken.raw_);
        return *this;
    }
    ~tensor()
    {
        tn_tensor_release(&raw_);
    }

    /* A contiguous tensor on host memory of the program, such as an array or a vector, which must
     * outlive all views of it. Constant memory is read-only. */
    template <class Container>
    static tensor wrap(Container &memory, span<const std::int64_t> shape,
                       on_failure failure TN_CPP_THROW_)
    {
        const span host(memory);
        tensor made;
        failure.check([&](tn_error *err) {
            tensor wrapped;
            tn_status status = wrapped.set_host(host, shape, err);
            if (!status)
                made = std::move(wrapped);
            return status;
        });
        return made;
    }

    /* A new tensor on a device with these elements, row by row. */
    template <class Container>
    static tensor copy_of(tn_device *device, const Container &elements,
                          span<const std::int64_t> shape, on_failure failure TN_CPP_THROW_)
    {
        const span from(elements);
        tensor made(device, dtype_in(from), shape, failure);
        if (made && made.write(elements, failure) != TN_OK)
            made = tensor();
        return made;
    }

    explicit operator bool() const noexcept
    {
        return raw_.dtype != TN_DTYPE_NONE;
    }
    operator const tn_tensor *() const &noexcept
    {
        return &raw_;
    }
    operator const tn_tensor *() const && = delete; /* released before the pointer is used */
    const tn_tensor &operator*() const noexcept
    {
        return raw_;
    }

    tn_dtype dtype() const noexcept
    {
        return raw_.dtype;
    }
    span<const std::int64_t> shape() const noexcept
    {
        return {raw_.shape, static_cast<std::size_t>(raw_.ndim)};
    }

    /* The elements of a contiguous tensor in host memory, whose dtype must be that of T. Queued work
     * that writes to the tensor must be complete. */
    template <class T> span<T> values(on_failure failure TN_CPP_THROW_) const
    {
        span<T> found;
        failure.check([&](tn_error *err) {
            std::int64_t count = 0;
            tn_status status = check_host(dtype_in(found), err);
            if (!status)
                status = tn_tensor_elements(&raw_, &count, err);
            if (!status)
                found = {reinterpret_cast<T *>(static_cast<char *>(raw_.data) + raw_.byte_offset),
                         static_cast<std::size_t>(count)};
            return status;
        });
        return found;
    }

    /* Copies all elements from or to host memory, row by row, and waits for the copy. */
    template <class Container>
    tn_status write(const Container &from, on_failure failure TN_CPP_THROW_) const
    {
        const span host(from);
        return failure.check([&](tn_error *err) {
            const tn_status status = check_dtype(dtype_in(host), err);
            return status ? status : tn_tensor_write(&raw_, host.data(), host.bytes(), err);
        });
    }
    template <class Container>
    tn_status read(Container &&to, on_failure failure TN_CPP_THROW_) const
    {
        const span host(to);
        return failure.check([&](tn_error *err) {
            const tn_status status = check_dtype(dtype_in(host), err);
            return status ? status : tn_tensor_read(&raw_, host.data(), host.bytes(), err);
        });
    }

    /* A view of the same data, by a function of tensor.h: x.view(tn_tensor_transpose, 0, 1). */
    template <class... P, class... A>
    tensor view(tn_status (*f)(const tn_tensor *, P...), A &&...arguments) const
    {
        return call(f, &raw_, std::forward<A>(arguments)...);
    }
    tensor reshape(span<const std::int64_t> shape, on_failure failure TN_CPP_THROW_) const
    {
        tn_tensor made{};
        failure.check([&](tn_error *err) {
            return tn_tensor_reshape(&raw_, shape.data(), rank_of(shape), &made, err);
        });
        return tensor(made);
    }

  private:
    static std::int32_t rank_of(span<const std::int64_t> shape) noexcept
    {
        return static_cast<std::int32_t>(shape.size());
    }
    template <class T> static constexpr tn_dtype dtype_in(span<T>) noexcept
    {
        static_assert(dtype_of<T> != TN_DTYPE_NONE,
                      "expected a type that has a dtype: see tenon::dtype_of");
        return dtype_of<T>;
    }
    template <class T>
    tn_status set_host(span<T> host, span<const std::int64_t> shape, tn_error *err)
    {
        tn_device *cpu = nullptr;
        std::uint64_t bytes = 0;
        tn_status status = tn_device_get("cpu", &cpu, err);
        if (!status)
            status = tn_tensor_wrap(cpu, const_cast<std::remove_const_t<T> *>(host.data()),
                                    dtype_in(host), shape.data(), nullptr, rank_of(shape), nullptr,
                                    nullptr, &raw_, err);
        if (!status)
            status = tn_tensor_bytes(&raw_, &bytes, err);
        if (!status && bytes != host.bytes())
            status = tn_fail(err, TN_INVALID_ARGUMENT, 0, "tenon::tensor::wrap",
                             "expected memory of %llu bytes for the shape, got %llu",
                             static_cast<unsigned long long>(bytes),
                             static_cast<unsigned long long>(host.bytes()));
        if (!status && std::is_const_v<T>)
            raw_.flags |= TN_TENSOR_READ_ONLY;
        return status;
    }
    tn_status check_dtype(tn_dtype dtype, tn_error *err) const noexcept
    {
        if (dtype == raw_.dtype)
            return TN_OK;
        const char *own = tn_dtype_name(raw_.dtype), *other = tn_dtype_name(dtype);
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tenon::tensor",
                       "expected elements of dtype %s, got %s", own ? own : "none", other);
    }
    tn_status check_host(tn_dtype dtype, tn_error *err) const noexcept
    {
        const tn_status status = check_dtype(dtype, err);
        if (status)
            return status;
        if (raw_.device_type != TN_DLPACK_CPU)
            return tn_fail(err, TN_UNSUPPORTED, 0, "tenon::tensor::values",
                           "expected a tensor in host memory; use read()");
        if (!tn_tensor_is_dense(&raw_))
            return tn_fail(err, TN_UNSUPPORTED, 0, "tenon::tensor::values",
                           "expected a contiguous tensor; use read()");
        return TN_OK;
    }

    tn_tensor raw_{};
};

/* ---- Settings ---- */

/* Applies changes to the calling thread until it is destroyed, on that thread:
 *     tenon::scope exact({tn_with_fp32_precision(TN_FP32_IEEE), tn_with_inference(1)}); */
class scope
{
  public:
    explicit scope(span<const tn_change> changes, on_failure failure TN_CPP_THROW_)
    {
        failure.check([&](tn_error *err) {
            return tn_scope_enter(&raw_, changes.data(), changes.size(), err);
        });
    }
    /* All settings of a context. */
    explicit scope(tn_context *settings, on_failure failure TN_CPP_THROW_)
    {
        failure.check([&](tn_error *err) { return tn_scope_enter_context(&raw_, settings, err); });
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
    ~scope()
    {
        tn_scope_leave(&raw_);
    }

  private:
    tn_scope raw_{};
};

/* A copy of a context with changes; NULL: of the calling thread's settings. */
inline context derive(const tn_context *from, span<const tn_change> changes,
                      on_failure failure TN_CPP_THROW_)
{
    tn_context *made = nullptr;
    failure.check([&](tn_error *err) {
        return tn_context_derive(from, changes.data(), changes.size(), &made, err);
    });
    return context(made);
}

/* ---- Current device and stream ---- */

/* Makes a device or a stream current on the calling thread until it is destroyed, on that thread. */
template <class Guard, class Object, tn_status (*Enter)(Guard *, Object *, tn_error *),
          void (*Leave)(Guard *)>
class guard
{
  public:
    explicit guard(Object *object, on_failure failure TN_CPP_THROW_)
    {
        failure.check([&](tn_error *err) { return Enter(&raw_, object, err); });
    }
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;
    ~guard()
    {
        Leave(&raw_);
    }

  private:
    Guard raw_{};
};
using device_guard =
    guard<tn_device_guard, tn_device, tn_device_guard_enter, tn_device_guard_leave>;
using stream_guard =
    guard<tn_stream_guard, tn_stream, tn_stream_guard_enter, tn_stream_guard_leave>;

/* ---- Operators ---- */

namespace detail
{

/* What the parts of an operator's call are. */
template <class Part, class T>
inline constexpr bool is_of = std::is_same_v<std::remove_cv_t<std::remove_reference_t<Part>>, T>;
template <class Part>
inline constexpr bool is_operand =
    is_of<Part, tensor> || is_of<Part, tn_tensor> || std::is_convertible_v<Part, const tn_tensor *>;
template <class Part>
inline constexpr bool is_context =
    !is_operand<Part> && std::is_convertible_v<Part, const tn_context *>;
template <class Part>
inline constexpr bool is_stream = !is_operand<Part> && std::is_convertible_v<Part, tn_stream *>;
template <class Part, class Args> inline constexpr bool is_whole = is_of<Part, Args>;
template <class Part, class Args>
inline constexpr bool is_setter = std::is_invocable_v<Part, Args &>;
template <class Part, class Args>
inline constexpr bool is_part =
    is_operand<Part> || is_context<Part> || is_stream<Part> || is_whole<Part, Args> ||
    is_setter<Part, Args> || std::is_same_v<Part, tn_error &>;

template <class Args> struct request {
    Args args{};
    const tn_context *context = nullptr;

    template <class Part> void add(Part &part)
    {
        if constexpr (is_whole<Part &, Args>)
            args = part;
        else if constexpr (is_context<Part &>)
            context = part;
        else if constexpr (is_stream<Part &>)
            args.stream = part;
        else if constexpr (is_setter<Part &, Args>)
            part(args);
    }
};

inline const tn_tensor *operand(const tn_tensor &part) noexcept
{
    return &part;
}
inline const tn_tensor *operand(const tn_tensor *part) noexcept
{
    return part;
}

/* Appends the pointer to a list, if the part is an operand. */
template <class Part> void append_operand(Part &part, const tn_tensor **list, std::size_t &count)
{
    if constexpr (is_operand<Part &>)
        list[count++] = operand(part);
}

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#endif
/* A struct of arguments begins with its size, then come the operands. */
template <class Args, std::size_t... I>
Args from_operands(const tn_tensor *const *list, std::index_sequence<I...>) noexcept
{
    return Args{sizeof(Args), list[I]...};
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

template <class Args, class... Parts> request<Args> make_request(Parts &...parts)
{
    constexpr std::size_t operands = (std::size_t{0} + ... + (is_operand<Parts &> ? 1 : 0));
    constexpr bool whole = (false || ... || is_whole<Parts &, Args>);
    static_assert(!whole || operands == 0, "expected operands or a struct of arguments, got both");
    request<Args> made;
    const tn_tensor *list[operands + 1] = {};
    std::size_t count = 0;
    (append_operand(parts, list, count), ...);
    made.args = from_operands<Args>(list, std::make_index_sequence<operands>());
    (made.add(parts), ...);
    made.args.struct_size = sizeof(Args);
    return made;
}

} /* namespace detail */

/* An operator, whose arguments in C are a struct Args. A call has these parts:
 *
 *     operands      tensors, in the order of the struct's fields; nullptr for one that is absent.
 *                   They may be temporary views; their memory must outlive the queued work, as in C
 *     a function    of Args &, that sets other fields: [](tn_matmul_args &args) { args.beta = 1; }
 *     or a struct   instead of these two, in C++20: tn_matmul_args{.a = a, .b = b, .out = out, .beta = 1}
 *     a context     the settings; the calling thread's if there is none
 *     a stream      the current stream of the tensors' device if there is none
 *     a tn_error    last: where a failure goes
 *
 * matmul(a, b, out) computes, matmul.explain(a, b, out) says by which kernel and why,
 * matmul.prepare(a, b, out) makes the plan, and matmul.args(a, b, out) is the struct. */
template <class Args> class operation
{
    using run_function = tn_status(const tn_context *, const Args *, tn_error *);
    using explain_function = tn_status(const tn_context *, const Args *, tn_decision **,
                                       tn_error *);

  public:
    constexpr operation(run_function *call, explain_function *call_explain,
                        run_function *call_prepare) noexcept
        : run_(call), explain_(call_explain), prepare_(call_prepare)
    {
    }

    template <class... Parts> tn_status operator()(Parts &&...parts) const
    {
        check<Parts...>();
        return apply(run_, parts...);
    }
    template <class... Parts> tn_status prepare(Parts &&...parts) const
    {
        check<Parts...>();
        return apply(prepare_, parts...);
    }
    template <class... Parts> decision explain(Parts &&...parts) const
    {
        check<Parts...>();
        const auto request = detail::make_request<Args>(parts...);
        tn_decision *made = nullptr;
        detail::failure_of(parts...).check(
            [&](tn_error *err) { return explain_(request.context, &request.args, &made, err); });
        return decision(made);
    }
    template <class... Parts> Args args(Parts &&...parts) const
    {
        check<Parts...>();
        return detail::make_request<Args>(parts...).args;
    }

  private:
    template <class... Parts> static constexpr void check() noexcept
    {
        static_assert(
            (true && ... && detail::is_part<Parts &&, Args>),
            "expected operands, a function of the struct of arguments, a context, a stream, "
            "or a tn_error; owners must outlive the call, so they cannot be temporary");
    }
    template <class... Parts> static tn_status apply(run_function *function, Parts &...parts)
    {
        const auto request = detail::make_request<Args>(parts...);
        return detail::failure_of(parts...).check(
            [&](tn_error *err) { return function(request.context, &request.args, err); });
    }

    run_function *run_;
    explain_function *explain_;
    run_function *prepare_;
};

#define TN_CPP_OPERATOR_(name) \
    inline constexpr operation name{tn_##name, tn_##name##_explain, tn_##name##_prepare};
TN_OPERATOR_LIST(TN_CPP_OPERATOR_)
#undef TN_CPP_OPERATOR_

} // namespace TN_CPP_MODE_
} /* namespace tenon */

#undef TN_CPP_THROWS_
#undef TN_CPP_MODE_
#undef TN_CPP_THROW_

#endif
