/* Functions of one number, in its own type. NaN stays NaN. */
DEVICE f32 of_sqrt(f32 x) { return __fsqrt_rn(x); }
DEVICE f64 of_sqrt(f64 x) { return __dsqrt_rn(x); }
DEVICE f32 of_rsqrt(f32 x) { return __fdiv_rn(1.0f, __fsqrt_rn(x)); }
DEVICE f64 of_rsqrt(f64 x) { return 1.0 / __dsqrt_rn(x); }
DEVICE f32 of_exp(f32 x) { return expf(x); }
DEVICE f64 of_exp(f64 x) { return exp(x); }
DEVICE f32 of_log(f32 x) { return logf(x); }
DEVICE f64 of_log(f64 x) { return log(x); }
DEVICE f32 of_tanh(f32 x) { return tanhf(x); }
DEVICE f64 of_tanh(f64 x) { return tanh(x); }
DEVICE f32 of_erf(f32 x) { return erff(x); }
DEVICE f64 of_erf(f64 x) { return erf(x); }

template <typename T> DEVICE T of_neg(T x) { return -x; }
template <typename T> DEVICE T of_abs(T x) { return x < 0 ? -x : x; }
template <> SPECIAL f32 of_abs<f32>(f32 x) { return fabsf(x); }
template <> SPECIAL f64 of_abs<f64>(f64 x) { return fabs(x); }
template <> SPECIAL u64 of_abs<u64>(u64 x) { return x; }
template <typename T> DEVICE T of_relu(T x) { return x < 0 ? (T)0 : x; }
template <> SPECIAL u64 of_relu<u64>(u64 x) { return x; }

template <typename T> DEVICE T of_sigmoid(T x) { return (T)1 / ((T)1 + of_exp(-x)); }
template <typename T> DEVICE T of_silu(T x) { return x / ((T)1 + of_exp(-x)); }

/* Uses the complementary function, because 1 + erf would cancel below zero. */
DEVICE f32 of_gelu(f32 x) { return 0.5f * x * erfcf(-x * 0.70710678118654752f); }
DEVICE f64 of_gelu(f64 x) { return 0.5 * x * erfc(-x * 0.70710678118654752440); }

/* For 16-bit results: with z = |x| / sqrt 2 and t = 1 / (1 + z / 2), half of erfc(z) is exp(-z z) times a
 * polynomial in t, with a relative error of at most 1.4e-6 (fitted over z from 0 to 10). */
DEVICE f32 of_gelu_narrow(f32 x)
{
    const f32 t = __fdividef(1.0f, fmaf(fabsf(x), 0.35355339f, 1.0f));
    f32 p = 0.0441016965f;
    p = fmaf(p, t, -0.178367108f);
    p = fmaf(p, t, 0.194609046f);
    p = fmaf(p, t, 0.01894789f);
    p = fmaf(p, t, 0.14075084f);
    p = fmaf(p, t, 0.138791278f);
    p = fmaf(p, t, 0.141165689f);
    const f32 tail = t * p * __expf(-0.5f * x * x);
    return x * (x < 0 ? tail : 1.0f - tail);
}

/* The reciprocal with an error of one ulp of f32, also above 2^126, where __fdividef() returns 0. */
DEVICE f32 near_reciprocal(f32 x)
{
    f32 y;
    asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* For 16-bit results: error of at most 1e-5, as far as the exponential has a reciprocal. */
DEVICE f32 of_silu_narrow(f32 x) { return x * near_reciprocal(1.0f + __expf(-x)); }

/* x/2 (1 + tanh u) is computed as x / (1 + exp(-2 u)), where nothing cancels. */
template <typename T> DEVICE T of_gelu_tanh(T x)
{
    return x / ((T)1 + of_exp((T)-1.59576912160573071176 * (x + (T)0.044715 * x * x * x)));
}

/* Functions of two numbers. */
template <typename T> DEVICE T of_add(T a, T b) { return a + b; }
template <typename T> DEVICE T of_sub(T a, T b) { return a - b; }
template <typename T> DEVICE T of_mul(T a, T b) { return a * b; }
template <> SPECIAL i64 of_add<i64>(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
template <> SPECIAL i64 of_sub<i64>(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
template <> SPECIAL i64 of_mul<i64>(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
DEVICE f32 of_div(f32 a, f32 b) { return __fdiv_rn(a, b); }
DEVICE f64 of_div(f64 a, f64 b) { return a / b; }
DEVICE i64 of_div(i64 a, i64 b) { return b == 0 ? 0 : b == -1 ? (i64)(0 - (u64)a) : a / b; }
DEVICE u64 of_div(u64 a, u64 b) { return b == 0 ? 0 : a / b; }

/* NaN if either is NaN; -0 is less than 0. */
DEVICE bool is_negative(f32 x) { return __float_as_uint(x) >> 31; }
DEVICE bool is_negative(f64 x) { return (u64)__double_as_longlong(x) >> 63; }
template <typename T> DEVICE T less_float(T a, T b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? (is_negative(a) ? a : b) : a < b ? a : b;
}
#if __CUDA_ARCH__ >= 800
DEVICE f32 of_min(f32 a, f32 b)
{
    f32 c;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}
DEVICE f32 of_max(f32 a, f32 b)
{
    f32 c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}
#else
DEVICE f32 of_min(f32 a, f32 b) { return less_float(a, b); }
DEVICE f32 of_max(f32 a, f32 b) { return -less_float(-a, -b); }
#endif
DEVICE f64 of_min(f64 a, f64 b) { return less_float(a, b); }
DEVICE i64 of_min(i64 a, i64 b) { return a < b ? a : b; }
DEVICE u64 of_min(u64 a, u64 b) { return a < b ? a : b; }
DEVICE f64 of_max(f64 a, f64 b) { return -less_float(-a, -b); }
DEVICE i64 of_max(i64 a, i64 b) { return a < b ? b : a; }
DEVICE u64 of_max(u64 a, u64 b) { return a < b ? b : a; }
