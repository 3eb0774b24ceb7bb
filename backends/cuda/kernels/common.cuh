/* Shared by all kernels: element types and conversions between them.
 *
 * A unit is compiled for one variant, which the command line defines: IN and OUT (and OTHER, FOURTH) are
 * element types, INDEX is `unsigned` if all element numbers fit, else `unsigned long long`. The compiler
 * does not contract operations: a fused operation is written explicitly. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;

struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};
struct boolean {
    u8 bits;
};

#define DEVICE  static __device__ __forceinline__
#define SPECIAL __device__ __forceinline__ /* for template specialisations: the template has the storage class */
#ifndef COMPUTED
#define COMPUTED 0
#endif

/* The type in which an element is computed: f32 for floats of up to 32 bits. */
template <typename T> struct work {
    typedef i64 type;
};
template <> struct work<u64> {
    typedef u64 type;
};
template <> struct work<f64> {
    typedef f64 type;
};
template <> struct work<f32> {
    typedef f32 type;
};
template <> struct work<f16> {
    typedef f32 type;
};
template <> struct work<bf16> {
    typedef f32 type;
};

template <typename T> struct is_float {
    static const bool value = false;
};
template <> struct is_float<f16> {
    static const bool value = true;
};
template <> struct is_float<bf16> {
    static const bool value = true;
};
template <> struct is_float<f32> {
    static const bool value = true;
};
template <> struct is_float<f64> {
    static const bool value = true;
};

template <typename T, typename U> struct same {
    static const bool value = false;
};
template <typename T> struct same<T, T> {
    static const bool value = true;
};

DEVICE f32 f32_of(f16 x)
{
    f32 y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}

DEVICE f32 f32_of(bf16 x)
{
    return __uint_as_float((u32)x.bits << 16);
}

/* Rounds to nearest even. A NaN stays NaN and keeps its upper bits, unless COMPUTED. */
DEVICE bf16 bf16_of(f32 x)
{
    u32 bits = __float_as_uint(x);
    bf16 y;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    if (COMPUTED)
        return y;
#else
    y.bits = (u16)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
#endif
    if (x != x)
        y.bits = (u16)((bits >> 16) | 0x40);
    return y;
}

DEVICE f16 f16_of(f32 x)
{
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}

/* Rounds to odd: the last bit is 1 unless the result is exact. Rounding the result to a narrower float then
 * gives the same as rounding the f64 directly. */
DEVICE f32 odd_f32(f64 x)
{
    f32 cut = __double2float_rz(x);
    bool exact = (f64)cut == x || x != x;
    return exact ? cut : __uint_as_float(__float_as_uint(cut) | 1);
}

DEVICE f64 odd_f64(i64 x)
{
    f64 cut = __ll2double_rz(x);
    return (i64)cut == x ? cut : __longlong_as_double(__double_as_longlong(cut) | 1);
}

DEVICE f64 odd_f64(u64 x)
{
    f64 cut = __ull2double_rz(x);
    return (u64)cut == x ? cut : __longlong_as_double(__double_as_longlong(cut) | 1);
}

/* Converts an element that was read to the type in which it is computed. */
template <typename T> DEVICE typename work<T>::type widened(T x)
{
    return (typename work<T>::type)x;
}
template <> SPECIAL f32 widened<f16>(f16 x)
{
    return f32_of(x);
}
template <> SPECIAL f32 widened<bf16>(bf16 x)
{
    return f32_of(x);
}
template <> SPECIAL i64 widened<boolean>(boolean x)
{
    return x.bits != 0;
}

/* Converts floats to integers: truncates towards zero, saturates, and converts NaN to 0. */
template <typename T> DEVICE T whole_of(f64 x, f64 least, f64 beyond, T lowest, T highest)
{
    return x != x ? (T)0 : x <= least ? lowest : x >= beyond ? highest : (T)x;
}

/* Converts integers to integers, with saturation. */
template <typename T, typename W> DEVICE T held(W x, i64 lowest, u64 highest)
{
    bool negative = (W)-1 < (W)0 && x < (W)0;
    if (negative)
        return (i64)x < lowest ? (T)lowest : (T)x;
    return (u64)x > highest ? (T)highest : (T)x;
}

/* Converts a computed value to an element, with a single rounding. */
template <typename T, typename W> struct written;

#define WHOLE(T, LEAST, BEYOND, LOWEST, HIGHEST)                       \
    template <> struct written<T, f32> {                               \
        DEVICE T of(f32 x)                                             \
        {                                                              \
            return whole_of<T>((f64)x, LEAST, BEYOND, LOWEST, HIGHEST); \
        }                                                              \
    };                                                                 \
    template <> struct written<T, f64> {                               \
        DEVICE T of(f64 x)                                             \
        {                                                              \
            return whole_of<T>(x, LEAST, BEYOND, LOWEST, HIGHEST);     \
        }                                                              \
    };                                                                 \
    template <> struct written<T, i64> {                               \
        DEVICE T of(i64 x)                                             \
        {                                                              \
            return held<T>(x, (i64)(LOWEST), (u64)(HIGHEST));          \
        }                                                              \
    };                                                                 \
    template <> struct written<T, u64> {                               \
        DEVICE T of(u64 x)                                             \
        {                                                              \
            return held<T>(x, (i64)(LOWEST), (u64)(HIGHEST));          \
        }                                                              \
    };

WHOLE(i8, -128.0, 127.0, (i8)-128, (i8)127)
WHOLE(i16, -32768.0, 32767.0, (i16)-32768, (i16)32767)
WHOLE(i32, -2147483648.0, 2147483647.0, (i32)(-2147483647 - 1), (i32)2147483647)
WHOLE(i64, -9223372036854775808.0, 9223372036854775808.0, (i64)(-9223372036854775807LL - 1),
      (i64)9223372036854775807LL)
WHOLE(u8, 0.0, 255.0, (u8)0, (u8)255)
WHOLE(u16, 0.0, 65535.0, (u16)0, (u16)65535)
WHOLE(u32, 0.0, 4294967295.0, (u32)0, (u32)4294967295u)
WHOLE(u64, 0.0, 18446744073709551616.0, (u64)0, (u64)18446744073709551615ull)
#undef WHOLE

#define FLOAT(T, FROM_F32, FROM_F64, FROM_I64, FROM_U64) \
    template <> struct written<T, f32> {                 \
        DEVICE T of(f32 x)                               \
        {                                                \
            return FROM_F32;                             \
        }                                                \
    };                                                   \
    template <> struct written<T, f64> {                 \
        DEVICE T of(f64 x)                               \
        {                                                \
            return FROM_F64;                             \
        }                                                \
    };                                                   \
    template <> struct written<T, i64> {                 \
        DEVICE T of(i64 x)                               \
        {                                                \
            return FROM_I64;                             \
        }                                                \
    };                                                   \
    template <> struct written<T, u64> {                 \
        DEVICE T of(u64 x)                               \
        {                                                \
            return FROM_U64;                             \
        }                                                \
    };

FLOAT(f32, x, __double2float_rn(x), __ll2float_rn(x), __ull2float_rn(x))
FLOAT(f64, (f64)x, x, __ll2double_rn(x), __ull2double_rn(x))
FLOAT(f16, f16_of(x), f16_of(odd_f32(x)), f16_of(odd_f32(odd_f64(x))), f16_of(odd_f32(odd_f64(x))))
FLOAT(bf16, bf16_of(x), bf16_of(odd_f32(x)), bf16_of(odd_f32(odd_f64(x))),
      bf16_of(odd_f32(odd_f64(x))))
#undef FLOAT

template <typename W> struct written<boolean, W> {
    DEVICE boolean of(W x)
    {
        boolean y;
        y.bits = x != (W)0;
        return y;
    }
};

template <typename T, typename W> DEVICE T narrowed(W x)
{
    return written<T, W>::of(x);
}

/* `N` elements that are read and written at once, and are aligned as a whole. */
template <typename T, int N> struct __align__(sizeof(T) * N) pack {
    T of[N];
};

struct __align__(16) words {
    u32 of[4];
};

/* Writes a pack at once: without inline assembly, the compiler splits a pack of 16-bit elements. */
template <typename T, int N> DEVICE void put(T *to, const pack<T, N> &some)
{
    if constexpr (sizeof some % sizeof(words) != 0) {
        *(pack<T, N> *)to = some;
    } else {
        for (int i = 0; i < (int)(sizeof some / sizeof(words)); i++) {
            words *at = (words *)to + i, w;
            memcpy(&w, (const u8 *)&some + i * sizeof w, sizeof w);
#ifdef __CUDA_ARCH__
            asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(w.of[0]),
                         "r"(w.of[1]), "r"(w.of[2]), "r"(w.of[3])
                         : "memory");
#else
            *at = w;
#endif
        }
    }
}

/* Waits until the stream's previous kernels have ended and all that they wrote can be read: the first thing that a kernel
 * does whose launches overlap (cuda_launch). release_next permits the next kernel of the stream to start, if it overlaps;
 * it waits for the end of this one nonetheless. */
DEVICE void await_previous()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
DEVICE void release_next()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* The offset of a row or matrix in each operand; the last of the dimensions `outer` is the fastest. */
struct starts {
    i64 of[CUDA_ARGS_OPERANDS];
};

template <typename ARGS, typename NUMBER> DEVICE starts starts_of(const ARGS &args, NUMBER number)
{
    starts at = {};
    for (int d = args.rank - 1; d >= 0; d--) {
        NUMBER next = d > 0 ? number / (NUMBER)args.outer[d] : 0;
        i64 here = (i64)(number - next * (NUMBER)args.outer[d]);
        for (int i = 0; i < CUDA_ARGS_OPERANDS; i++)
            at.of[i] += here * args.stride[i][d];
        number = next;
    }
    return at;
}
