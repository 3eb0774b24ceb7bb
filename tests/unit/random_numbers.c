/* The numbers themselves: uniform ones to the last bit, normal ones against a long double
 * reference, and both against what chance allows. */
#include "device/random/numbers.h"

#include "tenon/random.h"
#include "test.h"

#include <float.h>
#include <math.h>

static uint64_t seed = 0x9E3779B97F4A7C15;

static uint64_t random_word(void)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return seed ^ seed >> 29;
}

static long double f16_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    long double size = exponent ? ldexpl(1024 + fraction, exponent - 25) : ldexpl(fraction, -24);
    return bits >> 15 ? -size : size;
}

static float bf16_value(uint16_t bits)
{
    return tni_f32_of((uint32_t)bits << 16);
}

static void uniform_numbers_are_exact(void **state)
{
    uint32_t step = test_reduced() ? 1009 : test_full() ? 7 : 61;
    (void)state;
    for (uint32_t i = 0; i < 1u << 24; i += i < 70000 ? 1 : step) {
        uint32_t word = i << 8 | (i * 77 & 255);
        long double exact = ldexpl(i, -24);
        uint16_t f16 = tni_uniform_f16(word), bf16 = tni_uniform_bf16(word);
        assert_true(tni_uniform_f32(word) == exact);
        assert_true(f16_value(f16) <= exact && exact < f16_value((uint16_t)(f16 + 1)));
        assert_true(bf16_value(bf16) <= exact && exact < bf16_value((uint16_t)(bf16 + 1)));
    }
    assert_true(tni_uniform_f32(UINT32_MAX) == 1 - 0x1p-24f);
    assert_int_equal(tni_uniform_f16(UINT32_MAX), 0x3BFF);
    assert_int_equal(tni_uniform_bf16(UINT32_MAX), 0x3F7F);
    assert_int_equal(tni_uniform_f16(0x100), 1); /* 2^-24, the least f16 there is */
    assert_true(tni_uniform_f64(UINT64_MAX) == 1 - 0x1p-53);
    assert_true(tni_uniform_f64(0x7FF) == 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t pair = random_word() >> i % 54;
        assert_true(tni_uniform_f64(pair) == ldexp((double)(pair >> 11), -53));
    }
}

/* Between every two neighbours: the middle goes to the even one, its sides to the nearer. */
static void halves_are_rounded_to_nearest(void **state)
{
    (void)state;
    for (uint32_t low = 0; low < 0x7BFF; low++) {
        float middle = (float)((f16_value((uint16_t)low) + f16_value((uint16_t)(low + 1))) / 2);
        uint32_t bits = tni_bits_f32(middle);
        assert_int_equal(tni_f16_nearest(middle), low + (low & 1));
        assert_int_equal(tni_f16_nearest(tni_f32_of(bits - 1)), low);
        assert_int_equal(tni_f16_nearest(tni_f32_of(bits + 1)), low + 1);
        assert_int_equal(tni_f16_nearest((float)f16_value((uint16_t)low)), low);
        assert_int_equal(tni_f16_nearest(-middle), (low + (low & 1)) | 0x8000);
    }
    for (uint32_t low = 0; low < 0x7F7F; low++) {
        uint32_t bits = low << 16 | 0x8000;
        assert_int_equal(tni_bf16_nearest(tni_f32_of(bits)), low + (low & 1));
        assert_int_equal(tni_bf16_nearest(tni_f32_of(bits - 1)), low);
        assert_int_equal(tni_bf16_nearest(tni_f32_of(bits + 1)), low + 1);
        assert_int_equal(tni_bf16_nearest(tni_f32_of(bits | 0x80000000)),
                         (low + (low & 1)) | 0x8000);
    }
}

static const long double two_pi = 6.283185307179586476925286766559005768L;

static long double exact_distance(uint64_t word, int bits)
{
    uint64_t odd = word | 1, top = UINT64_C(1) << (bits - 1);
    uint64_t from_one = (bits == 64 ? 0 : UINT64_C(1) << bits) - odd;
    long double log_u = odd < top ? logl(ldexpl((long double)odd, -bits))
                                  : log1pl(-ldexpl((long double)from_one, -bits));
    return sqrtl(-2 * log_u);
}

/* How far the pair of numbers is from what it stands for. */
static long double error_of(uint64_t word0, uint64_t word1, int bits, const double z[2])
{
    long double distance = exact_distance(word0, bits);
    long double angle = two_pi * ldexpl((long double)word1, -bits);
    long double error0 = fabsl(z[0] - distance * cosl(angle));
    long double error1 = fabsl(z[1] - distance * sinl(angle));
    return error0 > error1 ? error0 : error1;
}

/* Words of which many are near 0, near 1, or near the places where the definition changes over. */
static uint64_t some_word(int i)
{
    uint64_t word = random_word();
    switch (i % 5) {
    case 0: return word >> (i / 5) % 64;
    case 1: return ~(word >> (i / 5) % 64);
    case 2: return (word << 61) + (word >> 35 & 63) - 32; /* multiples of 1/8 */
    default: return word;
    }
}

static void normal_numbers_are_close(void **state)
{
    int rounds = test_reduced() ? 20000 : test_full() ? 200000 : 40000;
    long double worst_f32 = 0, worst_f64 = 0;
    (void)state;
    for (int i = 0; i < rounds; i++) {
        uint64_t word0 = some_word(i), word1 = some_word(i / 3);
        uint32_t high0 = (uint32_t)(word0 >> 32), high1 = (uint32_t)(word1 >> 32);
        float f32[2];
        double f64[2];
        tni_normals_f32(high0, high1, &f32[0], &f32[1]);
        long double error = error_of(high0, high1, 32, (double[2]){f32[0], f32[1]});
        worst_f32 = error > worst_f32 ? error : worst_f32;
        tni_normals_f64(word0, word1, &f64[0], &f64[1]);
        error = error_of(word0, word1, 64, f64);
        worst_f64 = error > worst_f64 ? error : worst_f64;
    }
    print_message("largest errors: f32 %.3g, f64 %.3g\n", (double)worst_f32, (double)worst_f64);
    assert_true(worst_f32 < 2e-6L);
    if (LDBL_MANT_DIG < 64)
        skip_because("long double is no wider than double here: f64 was not judged");
    assert_true(worst_f64 < 5e-15L);
}

/* Both ends of u, and the axes. */
static void normal_numbers_have_ends(void **state)
{
    float c, s;
    double c64, s64;
    (void)state;
    assert_true(fabsf(tni_distance_f32(0) - 6.6604371f) < 1e-6f);
    assert_true(fabs(tni_distance_f64(0) - 9.4192805) < 1e-6);
    assert_true(tni_distance_f32(UINT32_MAX) > 0 && tni_distance_f32(UINT32_MAX) < 3e-5f);
    assert_true(tni_distance_f64(UINT64_MAX) > 0 && tni_distance_f64(UINT64_MAX) < 4e-10);
    for (uint32_t quarter = 0; quarter < 4; quarter++) {
        float expected_cos = quarter == 0 ? 1 : quarter == 2 ? -1 : 0;
        float expected_sin = quarter == 1 ? 1 : quarter == 3 ? -1 : 0;
        tni_direction_f32(quarter << 30, &c, &s);
        tni_direction_f64((uint64_t)quarter << 62, &c64, &s64);
        assert_true(c == expected_cos && s == expected_sin);
        assert_true(c64 == (double)expected_cos && s64 == (double)expected_sin);
    }
}

/* What follows is drawn with fixed seeds, so a test that passes once passes always; limits are such
 * that one seed in some ten thousand would exceed them. */
enum { DRAWN = 1 << 20, BINS = 256 };

/* The mean of (x - mean)^power, and of the products of neighbours. */
static double moment(const double *x, int count, double mean, int power)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += pow(x[i] - mean, power);
    return sum / count;
}

static double beside(const double *x, int count, double mean)
{
    double sum = 0;
    for (int i = 1; i < count; i++)
        sum += (x[i - 1] - mean) * (x[i] - mean);
    return sum / count;
}

/* The chi-square statistic of `count` numbers of [0, 1) over equal bins; its mean is BINS - 1. */
static double chi_square(const double *x, int count)
{
    static int seen[BINS];
    double sum = 0, expected = (double)count / BINS;
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < count; i++)
        seen[(int)(x[i] * BINS)]++;
    for (int i = 0; i < BINS; i++)
        sum += (seen[i] - expected) * (seen[i] - expected) / expected;
    return sum;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov's and Smirnov's statistic of numbers that should be uniform, times sqrt(count). */
static double kolmogorov_smirnov(double *x, int count)
{
    double worst = 0;
    qsort(x, (size_t)count, sizeof x[0], by_value);
    for (int i = 0; i < count; i++) {
        double above = (double)(i + 1) / count - x[i], below = x[i] - (double)i / count;
        double larger = above > below ? above : below;
        if (larger > worst)
            worst = larger;
    }
    return worst * sqrt(count);
}

/* The numbers of one dtype as doubles. */
static void draw(uint64_t from, int normal, tn_dtype dtype, double *out, int count)
{
    tn_generator *g = NULL;
    void *memory = malloc((size_t)count * 8);
    assert_int_equal(tn_generator_create(from, &g, NULL), TN_OK);
    assert_non_null(memory);
    assert_int_equal(
        (normal ? tn_random_fill_normal : tn_random_fill_uniform)(g, dtype, memory, count, NULL),
        TN_OK);
    for (int i = 0; i < count; i++)
        out[i] = dtype == TN_F32   ? (double)((float *)memory)[i]
                 : dtype == TN_F64 ? ((double *)memory)[i]
                 : dtype == TN_F16 ? (double)f16_value(((uint16_t *)memory)[i])
                                   : (double)bf16_value(((uint16_t *)memory)[i]);
    free(memory);
    tn_generator_release(g);
}

static double drawn[DRAWN];

static void uniform_numbers_are_uniform(void **state)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    int count = test_full() && !test_reduced() ? DRAWN : DRAWN / 16;
    (void)state;
    for (uint64_t from = 1; from <= 2; from++)
        for (int i = 0; i < 4; i++) {
            double root = sqrt(count), lost = dtypes[i] == TN_BF16 ? 0x1p-9 : 0x1p-12;
            draw(from, 0, dtypes[i], drawn, count);
            double mean = moment(drawn, count, 0, 1);
            assert_true(fabs(mean - 0.5) < 4 * 0.2887 / root + lost);
            assert_true(fabs(moment(drawn, count, mean, 2) - 1.0 / 12) < 4 * 0.0745 / root + lost);
            assert_true(fabs(beside(drawn, count, mean)) < 4 * 0.0833 / root);
            if (dtypes[i] != TN_BF16) /* it has 256 numbers in the upper half only */
                assert_true(fabs(chi_square(drawn, count) - (BINS - 1)) < 4 * sqrt(2 * (BINS - 1)));
            if (dtypes[i] == TN_F32 || dtypes[i] == TN_F64)
                assert_true(kolmogorov_smirnov(drawn, count) < 2.2);
        }
}

static void every_bit_is_fair(void **state)
{
    enum { WORDS = 1 << 16 };
    static uint32_t words[WORDS];
    tn_generator *g = NULL;
    (void)state;
    assert_int_equal(tn_generator_create(5, &g, NULL), TN_OK);
    assert_int_equal(tn_random_fill_uniform(g, TN_U32, words, WORDS, NULL), TN_OK);
    for (int bit = 0; bit < 32; bit++) {
        int ones = 0, changes = 0;
        for (int i = 0; i < WORDS; i++) {
            ones += (int)(words[i] >> bit & 1);
            changes += (int)((words[i] ^ words[(i + 1) % WORDS]) >> bit & 1);
        }
        assert_true(abs(ones - WORDS / 2) < 4 * 128);
        assert_true(abs(changes - WORDS / 2) < 4 * 128);
    }
    tn_generator_release(g);
}

/* How many are beyond `limit`, against what a normal distribution has there. */
static void check_tail(const double *x, int count, double limit)
{
    double expected = count * erfc(limit / sqrt(2)), found = 0;
    for (int i = 0; i < count; i++)
        found += fabs(x[i]) > limit;
    assert_true(fabs(found - expected) < 4 * sqrt(expected) + 3);
}

static void normal_numbers_are_normal(void **state)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    int count = test_full() && !test_reduced() ? DRAWN : DRAWN / 16;
    (void)state;
    for (uint64_t from = 1; from <= 2; from++)
        for (int i = 0; i < 4; i++) {
            double root = sqrt(count);
            draw(from, 1, dtypes[i], drawn, count);
            assert_true(fabs(moment(drawn, count, 0, 1)) < 4 / root);
            assert_true(fabs(moment(drawn, count, 0, 2) - 1) < 4 * sqrt(2) / root);
            assert_true(fabs(moment(drawn, count, 0, 3)) < 4 * sqrt(15) / root);
            assert_true(fabs(moment(drawn, count, 0, 4) - 3) < 4 * sqrt(96) / root);
            assert_true(fabs(beside(drawn, count, 0)) < 4 / root);
            if (dtypes[i] == TN_F16 || dtypes[i] == TN_BF16)
                continue; /* too few numbers for what follows */
            check_tail(drawn, count, 3);
            check_tail(drawn, count, 4);
            check_tail(drawn, count, 5);
            for (int k = 0; k < count; k++)
                drawn[k] = erfc(-drawn[k] / sqrt(2)) / 2;
            assert_true(fabs(chi_square(drawn, count) - (BINS - 1)) < 4 * sqrt(2 * (BINS - 1)));
            assert_true(kolmogorov_smirnov(drawn, count) < 2.2);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_numbers_are_exact),
        cmocka_unit_test(halves_are_rounded_to_nearest),
        cmocka_unit_test(normal_numbers_are_close),
        cmocka_unit_test(normal_numbers_have_ends),
        cmocka_unit_test(uniform_numbers_are_uniform),
        cmocka_unit_test(every_bit_is_fair),
        cmocka_unit_test(normal_numbers_are_normal),
    };
    return run_suite("unit.random_numbers", tests);
}
