/* Every number of the narrow formats, there and back, through the rows `cast` and `fill`. */
#include "make.h"

#include "tenon/module/op/cast.h"

static void cast_all(const void *in, tn_dtype in_dtype, void *out, tn_dtype out_dtype,
                     int64_t count)
{
    tn_layout layout = {.dtype = in_dtype, .rank = 1, .alignment = 1};
    layout.shape[0] = count, layout.stride[0] = 1;
    operand from = {.layout = layout}, to = {.layout = layout};
    to.layout.dtype = out_dtype;
    to.first = out;
    from.first = malloc((size_t)(count * bytes_of(in_dtype)));
    assert_non_null(from.first);
    memcpy(from.first, in, (size_t)(count * bytes_of(in_dtype)));
    tn_op op = each_op(TN_OP_CAST, 0, &to.layout, 0);
    compute(&op, (const operand *const[]){&from, &to}, 1);
    free(from.first);
}

static uint64_t cast_one(double value, tn_dtype dtype)
{
    char out[16] = {0};
    cast_all(&value, TN_F64, out, dtype, 1);
    return load_bits(out, bytes_of(dtype) > 8 ? 8 : bytes_of(dtype));
}

static void every_code_has_its_value(void **state)
{
    (void)state;
    for (int i = 0; i < SMALL_FORMATS; i++) {
        const format *f = &formats[i];
        const int64_t codes = INT64_C(1) << f->bits;
        static char in[65536 * 2];
        static double out[65536];
        static float narrow[65536];
        for (int64_t code = 0; code < codes; code++)
            store_bits(in + code * f->bits / 8, f->bits / 8, (uint64_t)code);
        cast_all(in, f->dtype, out, TN_F64, codes);
        cast_all(in, f->dtype, narrow, TN_F32, codes);
        for (int64_t code = 0; code < codes; code++) {
            long double want = format_value(f, (uint64_t)code);
            assert_true(is_nan(want) ? is_nan(out[code]) : (long double)out[code] == want);
            assert_true(is_nan(want) ? is_nan(narrow[code]) : (long double)narrow[code] == want);
            assert_true(is_nan(want) || is_negative(out[code]) == is_negative((double)want));
        }
    }
}

static void every_code_comes_back(void **state)
{
    (void)state;
    for (int i = 0; i < SMALL_FORMATS; i++) {
        const format *f = &formats[i];
        const uint64_t codes = UINT64_C(1) << f->bits;
        static double in[65536];
        static float narrow[65536];
        static char out[65536 * 2];
        for (int from_f32 = 0; from_f32 < 2; from_f32++) {
            for (uint64_t code = 0; code < codes; code++) {
                in[code] = (double)format_value(f, code);
                narrow[code] = (float)in[code];
            }
            cast_all(from_f32 ? (const void *)narrow : in, from_f32 ? TN_F32 : TN_F64, out,
                     f->dtype, (int64_t)codes);
            for (uint64_t code = 0; code < codes; code++) {
                uint64_t got = load_bits(out + code * (uint64_t)f->bits / 8, f->bits / 8);
                if (is_nan(format_value(f, code)))
                    assert_true(is_nan(format_value(f, got)));
                else
                    assert_int_equal(got, code);
            }
        }
    }
}

/* Between two neighbours: the nearer one, in the middle the even one. */
static void all_between_is_rounded(void **state)
{
    (void)state;
    for (int i = 0; i < SMALL_FORMATS; i++) {
        const format *f = &formats[i];
        const uint64_t sign = UINT64_C(1) << (f->bits - 1);
        const int step = test_reduced() && f->bits == 16 ? 37 : 1;
        for (uint64_t code = 0; code + 1 < sign; code += (uint64_t)step) {
            double low = (double)format_value(f, code), high = (double)format_value(f, code + 1);
            double middle = low + (high - low) / 2;
            if (is_inf(high) || is_nan(high))
                continue;
            assert_int_equal(cast_one(middle, f->dtype), code + (code & 1));
            assert_int_equal(cast_one(nextafter(middle, low), f->dtype), code);
            assert_int_equal(cast_one(nextafter(middle, high), f->dtype), code + 1);
            assert_int_equal(cast_one(-nextafter(middle, high), f->dtype), sign | (code + 1));
        }
    }
}

/* Beyond the greatest, what the next number would be is infinity, or a NaN. */
static void what_is_too_great(void **state)
{
    static const struct {
        tn_dtype dtype;
        double most, middle; /* the greatest; half way to what would come next */
        uint64_t greatest, beyond;
    } rows[] = {
        {TN_F16, 65504, 65520, 0x7BFF, 0x7C00}, {TN_BF16, 0x1.FEp127, 0x1.FFp127, 0x7F7F, 0x7F80},
        {TN_F8_E4M3FN, 448, 464, 0x7E, 0x7F},   {TN_F8_E4M3FNUZ, 240, 248, 0x7F, 0x80},
        {TN_F8_E5M2, 57344, 61440, 0x7B, 0x7C}, {TN_F8_E5M2FNUZ, 57344, 61440, 0x7F, 0x80},
    };
    (void)state;
    for (int i = 0; i < SMALL_FORMATS; i++) {
        const uint64_t even = rows[i].greatest & 1 ? rows[i].beyond : rows[i].greatest;
        assert_int_equal(cast_one(rows[i].most, rows[i].dtype), rows[i].greatest);
        assert_int_equal(cast_one(nextafter(rows[i].middle, 0), rows[i].dtype), rows[i].greatest);
        assert_int_equal(cast_one(rows[i].middle, rows[i].dtype), even);
        assert_int_equal(cast_one(nextafter(rows[i].middle, INFINITY), rows[i].dtype),
                         rows[i].beyond);
        assert_int_equal(cast_one(1e300, rows[i].dtype), rows[i].beyond);
        assert_int_equal(cast_one((double)INFINITY, rows[i].dtype), rows[i].beyond);
        assert_int_equal(cast_one(-(double)INFINITY, rows[i].dtype),
                         rows[i].beyond | UINT64_C(1) << (formats[i].bits - 1));
    }
}

static void what_is_too_small(void **state)
{
    (void)state;
    for (int i = 0; i < SMALL_FORMATS; i++) {
        const format *f = &formats[i];
        const uint64_t sign = f->zero_is_one ? 0 : UINT64_C(1) << (f->bits - 1);
        const double half = (double)format_value(f, 1) / 2;
        assert_int_equal(cast_one(half, f->dtype), 0);
        assert_int_equal(cast_one(-half, f->dtype), sign);
        assert_int_equal(cast_one(-0.0, f->dtype), sign);
        assert_int_equal(cast_one(nextafter(half, 1), f->dtype), 1);
        assert_int_equal(cast_one(0x1p-1074, f->dtype), 0);
        assert_int_equal(cast_one(-0x1p-1022, f->dtype), sign);
    }
}

/* The way by f32 would round twice. */
static void one_rounding_from_f64(void **state)
{
    (void)state;
    assert_int_equal(cast_one(1 + 0x1p-11 + 0x1p-40, TN_F16), 0x3C01);
    assert_int_equal(cast_one(1 + 0x1p-8 + 0x1p-40, TN_BF16), 0x3F81);
    assert_int_equal(cast_one(1 + 0x1p-8, TN_BF16), 0x3F80);
}

static void whole_numbers_of_64_bits(void **state)
{
    static const struct {
        int64_t value;
        float want;
    } rows[] = {
        {INT64_C(0x4000004000000001), 0x1.000002p62f}, /* just above the middle of two floats */
        {INT64_C(0x4000004000000000), 0x1p62f},
        {-INT64_C(0x4000004000000001), -0x1.000002p62f},
        {INT64_MIN, -0x1p63f},
        {INT64_MAX, 0x1p63f},
        {(INT64_C(1) << 53) + 1, 0x1p53f},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float out;
        double wide;
        int64_t magnitude = rows[i].value < 0 ? 0 : rows[i].value;
        cast_all(&rows[i].value, TN_I64, &out, TN_F32, 1);
        assert_true(out == rows[i].want);
        cast_all(&magnitude, TN_U64, &out, TN_F32, 1);
        assert_true(out == (rows[i].value < 0 ? 0 : rows[i].want));
        cast_all(&rows[i].value, TN_I64, &wide, TN_F64, 1);
        assert_true(wide == (double)rows[i].value);
    }
    uint64_t most = UINT64_MAX;
    float out;
    cast_all(&most, TN_U64, &out, TN_F32, 1);
    assert_true(out == 0x1p64f);
}

static void floats_to_whole_numbers(void **state)
{
    static const struct {
        double value;
        tn_dtype dtype;
        uint64_t want;
    } rows[] = {
        {2.5, TN_I8, 2},
        {3.99, TN_I8, 3},
        {-3.99, TN_I8, 0xFD},
        {-2.5, TN_I8, 0xFE},
        {127.4, TN_I8, 127},
        {128, TN_I8, 127},
        {-129, TN_I8, 0x80},
        {1e30, TN_I16, 0x7FFF},
        {-1e30, TN_I32, 1u << 31},
        {-1, TN_U8, 0},
        {-0.9, TN_U8, 0},
        {255.5, TN_U8, 255},
        {0.5, TN_U16, 0},
        {1.5, TN_U16, 1},
        {1e10, TN_U32, UINT32_MAX},
        {1e20, TN_I64, INT64_MAX},
        {-1e20, TN_I64, UINT64_C(1) << 63},
        {0x1p63, TN_U64, UINT64_C(1) << 63},
        {1e20, TN_U64, UINT64_MAX},
        {0x1p64, TN_U64, UINT64_MAX},
        {0x1p63, TN_I64, INT64_MAX},
        {0x1.fffffffffffffp62, TN_I64, INT64_C(0x7FFFFFFFFFFFFC00)},
        {0.25, TN_BOOL, 1},
        {-0.0, TN_BOOL, 0},
    };
    static const tn_dtype whole[] = {TN_I8, TN_I16, TN_I32, TN_I64, TN_U8, TN_U16, TN_U32, TN_U64};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(cast_one(rows[i].value, rows[i].dtype), rows[i].want);
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        const int64_t bits = bytes_of(whole[i]) * 8;
        const int is_signed = (whole[i] & 0xFF) == TN_DTYPE_CODE_INT;
        assert_int_equal(cast_one((double)NAN, whole[i]), 0);
        assert_int_equal(cast_one((double)INFINITY, whole[i]),
                         UINT64_MAX >> (64 - bits + is_signed));
        assert_int_equal(cast_one(-(double)INFINITY, whole[i]),
                         is_signed ? UINT64_C(1) << (bits - 1) : 0);
    }
    assert_int_equal(cast_one((double)NAN, TN_BOOL), 1);
}

static const tn_dtype all[] = {
#define NAME(name, word, code, bits) name,
    TN_DTYPE_LIST(NAME)
#undef NAME
};
enum { ALL = sizeof all / sizeof all[0] };

/* What every pair of dtypes makes of small whole numbers, which all of them have. */
static void every_pair(void **state)
{
    (void)state;
    for (int i = 0; i < ALL; i++) {
        for (int j = 0; j < ALL; j++) {
            for (double value = 0; value < 8; value++) {
                char from[16] = {0}, to[16];
                long double want = all[i] == TN_BOOL || all[j] == TN_BOOL ? value != 0 : value;
                memset(to, 0xFF, sizeof to);
                cast_all(&value, TN_F64, from, all[i], 1);
                cast_all(from, all[i], to, all[j], 1);
                assert_true(load(all[j], to, 0) == want);
                assert_true(parts_of(all[j]) == 1 || load(all[j], to, 1) == 0);
            }
        }
    }
}

static void whole_numbers_become_the_greatest_or_least(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 8; j++) {
            for (int turn = 0; turn < 200; turn++) {
                char from[8], to[8];
                store_random(all[i], from);
                if (turn < 4)
                    memset(from, turn % 2 ? 0xFF : 0, 8),
                        from[bytes_of(all[i]) - 1] ^= (char)(turn / 2 * 0x80);
                cast_all(from, all[i], to, all[j], 1);
                const int64_t bits = bytes_of(all[j]) * 8;
                const int is_signed = (all[j] & 0xFF) == TN_DTYPE_CODE_INT;
                long double most = ldexpl(1, (int)bits - is_signed) - 1;
                long double least = is_signed ? -most - 1 : 0, want = load(all[i], from, 0);
                want = want > most ? most : want < least ? least : want;
                assert_true(load(all[j], to, 0) == want);
            }
        }
    }
}

static void complex_numbers(void **state)
{
    const float number[] = {2.5f, -3, 0, 5, 0, 0};
    double wide[6];
    float real[3];
    unsigned char truth[3], bytes[] = {7, 0};
    (void)state;
    cast_all(number, TN_C64, wide, TN_C128, 3);
    for (int i = 0; i < 6; i++)
        assert_true(wide[i] == (double)number[i]);
    cast_all(number, TN_C64, real, TN_F32, 3);
    assert_true(real[0] == 2.5f && real[1] == 0 && real[2] == 0);
    cast_all(number, TN_C64, truth, TN_BOOL, 3);
    assert_true(truth[0] == 1 && truth[1] == 1 && truth[2] == 0);
    cast_all(bytes, TN_BOOL, real, TN_F32, 2); /* any byte but 0 is true */
    assert_true(real[0] == 1 && real[1] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_value),
        cmocka_unit_test(every_code_comes_back),
        cmocka_unit_test(all_between_is_rounded),
        cmocka_unit_test(what_is_too_great),
        cmocka_unit_test(what_is_too_small),
        cmocka_unit_test(one_rounding_from_f64),
        cmocka_unit_test(whole_numbers_of_64_bits),
        cmocka_unit_test(floats_to_whole_numbers),
        cmocka_unit_test(every_pair),
        cmocka_unit_test(whole_numbers_become_the_greatest_or_least),
        cmocka_unit_test(complex_numbers),
    };
    return run_suite("kernels.ref_number", tests);
}
