/* fft: what tensors and arguments make of it, what is refused, and the numbers by the definition.
 *
 * unit.stack: OPERATOR(fft, .in = &spectrum, .out = &spectrum, .direction = TN_FFT_INVERSE) */
#include "ops_elementwise.h"

#include <complex.h>
#include <stdlib.h>

static piece x, y;

static const tn_fft_op *fft_of(const tn_op *op)
{
    return TN_PARAMS(op, fft);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    CHECK_ARGS(fft);
    const tn_tensor *in = DENSE(&x, 0, TN_C64, 3, 8), *out = DENSE(&y, 1024, TN_C64, 3, 8);
    REFUSED(fft, "args->reserved has bits", .in = in, .out = out, .reserved = 1);
    REFUSED(fft, "in: the tensor is NULL", .out = out);
    REFUSED(fft, "direction: expected 0 (forward) or 1 (inverse), got 2", .in = in, .out = out,
            .direction = 2);
    REFUSED(fft, "norm: expected 0 (backward), 1 (ortho) or 2 (forward), got -1", .in = in,
            .out = out, .norm = -1);
    REFUSED(fft, "axes_count: expected 0, as axes is NULL, got 1", .in = in, .out = out,
            .axes_count = 1);
    const int32_t axes[] = {0, 1, 2, 3};
    REFUSED(fft, "axes_count: expected 1 to 3, got 4; transform more by several calls", .in = in,
            .out = out, .axes = axes, .axes_count = 4);
    REFUSED(fft, "axes_count: expected 1 to 3, got 0", .in = in, .out = out, .axes = axes);
    REFUSED(fft, "axes[2]: expected a dimension of in, 0 to 1, got 2", .in = in, .out = out,
            .axes = axes, .axes_count = 3);
    REFUSED(fft, "axes[1] is 0: duplicate dimension", .in = in, .out = out,
            .axes = (const int32_t[]){0, 0}, .axes_count = 2);
    REFUSED(fft, "in: expected at least 1 dimensions, as many as are transformed, got 0",
            .in = NUMBER(&x, 0, TN_C64), .out = NUMBER(&y, 1024, TN_C64));
}

static void dtypes_and_shapes_are_checked(void **state)
{
    (void)state;
    UNSUPPORTED(fft, "in: expected f32, f64, c64 or c128, got f16; cast it first",
                .in = DENSE(&x, 0, TN_F16, 8), .out = DENSE(&y, 1024, TN_C64, 5));
    REFUSED(fft, "out: expected c64 for in of f32, got c128", .in = DENSE(&x, 0, TN_F32, 8),
            .out = DENSE(&y, 1024, TN_C128, 5));
    REFUSED(fft, "out: expected c128 or f64 for in of c128, got f32",
            .in = DENSE(&x, 0, TN_C128, 5), .out = DENSE(&y, 1024, TN_F32, 8));
    REFUSED(
        fft,
        "out: last transformed dimension: expected 5 elements for 8 real numbers (half and one), "
        "got 8",
        .in = DENSE(&x, 0, TN_F32, 8), .out = DENSE(&y, 1024, TN_C64, 8));
    REFUSED(
        fft,
        "in: last transformed dimension: expected 4 elements for 7 real numbers (half and one), "
        "got 5",
        .in = DENSE(&x, 0, TN_C64, 5), .out = DENSE(&y, 1024, TN_F32, 7));
    REFUSED(fft, "out: transformed dimension 0: expected 8 elements, as many as in has, got 4",
            .in = DENSE(&x, 0, TN_C64, 8), .out = DENSE(&y, 1024, TN_C64, 4));
    REFUSED(fft, "out: dimension 0 of the batch: expected 3 elements, as many as in has, got 2",
            .in = DENSE(&x, 0, TN_C64, 3, 8), .out = DENSE(&y, 1024, TN_C64, 2, 8));
    REFUSED(fft, "out: expected 2 dimensions, as many as in has, got 1", .in = &x.tensor,
            .out = DENSE(&y, 1024, TN_C64, 8));
    REFUSED(fft, "transformed dimension 0: expected a length of at least 1, got 0",
            .in = DENSE(&x, 0, TN_C64, 3, 0), .out = DENSE(&y, 1024, TN_C64, 3, 0));
    REFUSED(fft, "transformed dimension 0: expected a length of at least 1, got 0",
            .in = DENSE(&x, 0, TN_C64, 3, 1), .out = DENSE(&y, 1024, TN_F32, 3, 0));
    REFUSED(fft, "in shares memory with out", .in = DENSE(&x, 0, TN_C64, 3, 8),
            .out = DENSE(&y, 8, TN_C64, 3, 8));
    REFUSED(fft, "in shares memory with out", .in = DENSE(&x, 0, TN_F32, 8),
            .out = DENSE(&y, 0, TN_C64, 5));
    const int64_t turned[] = {1, 3, -1};
    REFUSED(fft, "in shares memory with out", .in = DENSE(&x, 0, TN_C64, 3, 8),
            .out = piece_at(&y, 0, TN_C64, LIST(3, 8, -1), turned));
    expect_refused("fft:c64:shape=4294967296",
                   "transformed dimension 0: expected a length up to 2147483647, got 4294967296");
    expect_refused("fft:c64:dims=1", "shape is missing");
    expect_refused("fft:c64:shape=8,dims=2", "in: expected at least 2 dimensions, as many as are");
    expect_refused("fft:c64:shape=8,dims=4", "expected 1 to 3 dimensions to transform, got 4");
    expect_refused("fft:c64:shape=8,dims=0", "dims: expected");
    expect_refused("fft:c64:shape=8,dir=back",
                   "dir: expected one of forward inverse, got \"back\"");
    expect_refused("fft:c64:shape=-1", "shape: ");
    expect_refused("fft:c64:shape=0", "expected a length of at least 1, got 0");
    expect_refused("fft:f32:shape=4,inplace=1",
                   "inplace: expected a complex transform, got f32 to c64");
    expect_refused("fft:c64:shape=3x8,so=16;1,inplace=1",
                   "in place, out needs the strides and alignment of in");
    expect_refused("fft:i32:shape=8", "in: expected f32, f64, c64 or c128, got i32");
    expect_refused("fft:c64:shape=8,out=c128", "out: expected c64 or f32 for in of c64");
    expect_refused("fft:c64:shape=2x2x2x2x2x2x2x2x2", "shape: ");
}

static void problems_have_a_text(void **state)
{
    (void)state;
    const tn_tensor *in = DENSE(&x, 0, TN_C64, 3, 4, 5), *out = DENSE(&y, 1024, TN_C64, 3, 4, 5);
    const tn_op *op = MAKE(fft, .in = in, .out = out);
    assert_true(op->kind == TN_OP_FFT && op->count == 2 && op->uses == 0);
    assert_true(fft_of(op)->kind == TN_FFT_COMPLEX && fft_of(op)->dims == 1);
    assert_true(fft_of(op)->length[0] == 5 && fft_of(op)->points == 5 && fft_of(op)->batch == 12);
    assert_true(fft_of(op)->scale == 1);
    assert_string_equal(round_trip(op), "fft:c64:shape=3x4x5");
    TEXT(fft, "fft:c64:shape=3x4x5,dims=2,dir=inverse,norm=ortho", .in = in, .out = out,
         .axes = (const int32_t[]){1, 2}, .axes_count = 2, .direction = TN_FFT_INVERSE,
         .norm = TN_FFT_ORTHO);
    assert_true(fft_of(&problem.op)->scale == 1 / sqrt(20));
    assert_int_equal(problem.op.uses, TN_FFT_USES_DIMS);
    TEXT(fft, "fft:c64:shape=4x5x3,si=5;1;20,so=5;1;20", .in = in, .out = out,
         .axes = (const int32_t[]){0}, .axes_count = 1);
    assert_int_equal(problem.op.uses, TN_FFT_USES_STRIDES);
    TEXT(fft, "fft:c64:shape=4x5x3,dims=3,dir=inverse,si=5;1;20,so=5;1;20", .in = in, .out = out,
         .axes = (const int32_t[]){1, 2, 0}, .axes_count = 3, .direction = TN_FFT_INVERSE);
    assert_true(fft_of(&problem.op)->scale == 1.0 / 60);
    TEXT(fft, "fft:c64:shape=3x4x5,inplace=1", .in = in, .out = in);
    assert_int_equal(problem.op.uses, TN_FFT_USES_IN_PLACE);
    TEXT(fft, "fft:f64:shape=2x7,norm=forward", .in = DENSE(&x, 0, TN_F64, 2, 7),
         .out = DENSE(&y, 1024, TN_C128, 2, 4), .norm = TN_FFT_BY_FORWARD);
    assert_true(fft_of(&problem.op)->scale == 1.0 / 7 && problem.op.uses == TN_FFT_USES_REAL);
    TEXT(fft, "fft:c64:shape=2x8,out=f32", .in = DENSE(&x, 0, TN_C64, 2, 5),
         .out = DENSE(&y, 1024, TN_F32, 2, 8));
    assert_true(fft_of(&problem.op)->kind == TN_FFT_COMPLEX_TO_REAL &&
                fft_of(&problem.op)->length[0] == 8);
    TEXT(fft, "fft:c64:shape=0x8", .in = DENSE(&x, 0, TN_C64, 0, 8),
         .out = DENSE(&y, 1024, TN_C64, 0, 8));
    tn_op said;
    parse("fft:c128:shape=3x8,out=f64,si=1;3", &said);
    assert_int_equal(said.uses, TN_FFT_USES_REAL | TN_FFT_USES_STRIDES);
    parse("fft:c64:shape=3x8,si=0;1", &said);
    assert_int_equal(said.uses, TN_FFT_USES_BROADCAST);
}

/* A transform that is computed and compared with the definition. */
typedef struct trial {
    int64_t shape[3]; /* full; batch and up to two transformed dimensions */
    int32_t dims;
    int32_t kind, direction, norm;
    bool wide;   /* f64 */
    bool turned; /* strides of the transposed array */
    bool in_place;
} trial;

enum { POINTS = 4096 };
static double complex input[POINTS], expected[POINTS];

static double draw(void)
{
    return (double)roll(-1000, 1000) / 1000;
}

static void fill_roots(double complex *roots, int64_t n, double sign)
{
    for (int64_t k = 0; k < n; k++)
        roots[k] = cexp(sign * 2 * M_PI * I * (double)k / (double)n);
}

/* expected = the transforms of input, [batch, rows, n], as the header defines them. For complex to
 * real, input has the numbers of the whole spectrum's half; the rest is filled in. */
static void define(const trial *t)
{
    const int64_t rows = t->shape[1], n = t->shape[2], points = t->dims == 2 ? rows * n : n;
    const double sign = t->direction == TN_FFT_FORWARD ? -1 : 1;
    const double scale = t->norm == TN_FFT_ORTHO ? 1 / sqrt((double)points)
                         : (t->norm == TN_FFT_BACKWARD) == (t->direction == TN_FFT_INVERSE)
                             ? 1 / (double)points
                             : 1;
    static double complex along[POINTS], across[POINTS];
    fill_roots(along, n, sign);
    fill_roots(across, rows, sign);
    for (int64_t b = 0; b < t->shape[0]; b++) {
        double complex *from = input + b * rows * n, *to = expected + b * rows * n;
        static double complex columns[POINTS];
        for (int64_t k = 0; k < rows; k++) {
            for (int64_t j = 0; j < n; j++) {
                columns[k * n + j] = t->dims == 2 ? 0 : from[k * n + j];
                for (int64_t i = 0; i < rows && t->dims == 2; i++)
                    columns[k * n + j] += from[i * n + j] * across[i * k % rows];
            }
            if (t->kind == TN_FFT_COMPLEX_TO_REAL) {
                double complex *row = columns + k * n;
                row[0] = creal(row[0]);
                for (int64_t j = 1; j <= n / 2; j++) {
                    row[j] = 2 * j == n ? creal(row[j]) : row[j];
                    row[n - j] = conj(row[j]);
                }
            }
            for (int64_t q = 0; q < n; q++) {
                double complex sum = 0;
                for (int64_t j = 0; j < n; j++)
                    sum += columns[k * n + j] * along[j * q % n];
                to[k * n + q] = sum * scale;
            }
        }
    }
}

/* One side of a transform in memory: [batch, rows, columns] of a dtype. */
typedef struct side {
    char bytes[POINTS * 16];
    int64_t shape[3], strides[3];
    tn_tensor tensor;
} side;

static void lay_out(side *s, const trial *t, bool real, bool half)
{
    const int64_t *shape = t->shape, n = half ? shape[2] / 2 + 1 : shape[2];
    const int64_t dense[] = {shape[1] * n, n, 1}, turned[] = {1, shape[0], shape[0] * shape[1]};
    memcpy(s->shape, (const int64_t[]){shape[0], shape[1], n}, sizeof s->shape);
    memcpy(s->strides, t->turned ? turned : dense, sizeof s->strides);
    memset(s->bytes, 0x5A, sizeof s->bytes);
    s->tensor = (tn_tensor){.data = s->bytes,
                            .device_type = TN_DLPACK_CPU,
                            .ndim = 3,
                            .dtype = real      ? t->wide ? TN_F64 : TN_F32
                                     : t->wide ? TN_C128
                                               : TN_C64,
                            .shape = s->shape,
                            .strides = s->strides};
}

/* The number `part` of an element: the real part, the imaginary part. */
static char *number_at(side *s, const trial *t, int64_t b, int64_t k, int64_t j, bool real,
                       int64_t part)
{
    int64_t at = b * s->strides[0] + k * s->strides[1] + j * s->strides[2];
    return s->bytes + (at * (real ? 1 : 2) + part) * (t->wide ? 8 : 4);
}

static void put(side *s, const trial *t, bool real)
{
    for (int64_t i = 0; i < s->shape[0] * s->shape[1] * s->shape[2]; i++) {
        int64_t j = i % s->shape[2], k = i / s->shape[2] % s->shape[1],
                b = i / s->shape[2] / s->shape[1];
        double complex value = input[(b * t->shape[1] + k) * t->shape[2] + j];
        for (int64_t part = 0; part < (real ? 1 : 2); part++) {
            double one = part ? cimag(value) : creal(value);
            float narrow = (float)one;
            memcpy(number_at(s, t, b, k, j, real, part), t->wide ? (void *)&one : (void *)&narrow,
                   t->wide ? 8 : 4);
        }
    }
}

static void expect_side(side *s, const trial *t, bool real)
{
    const double allowed = (t->wide ? 1e-14 : 4e-6) * sqrt((double)(t->shape[1] * t->shape[2]));
    for (int64_t i = 0; i < s->shape[0] * s->shape[1] * s->shape[2]; i++) {
        int64_t j = i % s->shape[2], k = i / s->shape[2] % s->shape[1],
                b = i / s->shape[2] / s->shape[1];
        double complex value = expected[(b * t->shape[1] + k) * t->shape[2] + j];
        for (int64_t part = 0; part < (real ? 1 : 2); part++) {
            double found, needed = part ? cimag(value) : creal(value);
            float narrow;
            memcpy(&narrow, number_at(s, t, b, k, j, real, part), 4);
            if (t->wide)
                memcpy(&found, number_at(s, t, b, k, j, real, part), 8);
            else
                found = narrow;
            if (!(fabs(found - needed) <= allowed))
                fail_msg("%d x %d x %d, %d dims, kind %d, direction %d, norm %d%s: [%d %d %d].%d: "
                         "expected %.9g, got %.9g",
                         (int)t->shape[0], (int)t->shape[1], (int)t->shape[2], (int)t->dims,
                         (int)t->kind, (int)t->direction, (int)t->norm, t->turned ? ", turned" : "",
                         (int)b, (int)k, (int)j, (int)part, needed, found);
        }
    }
}

static void expect_definition(const trial *t)
{
    static side in, out;
    static const int32_t axes[] = {1, 2};
    const bool to_real = t->kind == TN_FFT_COMPLEX_TO_REAL,
               real = t->kind == TN_FFT_REAL_TO_COMPLEX;
    tn_error err;
    for (int64_t i = 0; i < t->shape[0] * t->shape[1] * t->shape[2]; i++) {
        input[i] = real ? draw() : draw() + I * draw();
        input[i] = t->wide ? input[i] : (float complex)input[i];
    }
    lay_out(&in, t, real, to_real);
    lay_out(&out, t, to_real, real);
    put(&in, t, real);
    define(t);
    if (tn_fft(NULL,
               TN_ARGS(fft, .in = &in.tensor, .out = t->in_place ? &in.tensor : &out.tensor,
                       .axes = t->dims == 2 ? axes : NULL, .axes_count = t->dims == 2 ? 2 : 0,
                       .direction = t->direction, .norm = t->norm),
               &err))
        fail_msg("%s", err.message);
    expect_side(t->in_place ? &in : &out, t, to_real);
}

static void expect_all_forms(int64_t batch, int64_t rows, int64_t n, int32_t dims)
{
    for (int32_t form = 0; form < 3 * 2 * 2; form++) {
        trial t = {.shape = {batch, rows, n},
                   .dims = dims,
                   .kind = form % 3,
                   .direction = form / 3 % 2,
                   .norm = (int32_t)roll(0, 2),
                   .wide = form / 6,
                   .turned = roll(0, 1)};
        t.in_place = t.kind == TN_FFT_COMPLEX && roll(0, 1);
        expect_definition(&t);
    }
}

static void expect_all_lengths(void)
{
    static const int64_t lengths[] = {31,  32,  33,  37,  45,  49,  60,  64,  67,
                                      77,  96,  97,  101, 120, 121, 125, 127, 128,
                                      143, 150, 169, 210, 243, 256, 257, 289, 343};
    for (int64_t n = 1; n <= 30; n++)
        expect_all_forms(roll(1, 3), roll(1, 3), n, 1);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        expect_all_forms(roll(1, 2), roll(1, 3), lengths[i], 1);
    for (int64_t i = 0; i < 40; i++)
        expect_all_forms(roll(1, 3), roll(1, 20), roll(1, 40), 2);
}

/* By every kernel that is there: each is required in turn. */
static void numbers_are_those_of_the_definition(void **state)
{
    tn_decision *decision = NULL;
    tn_error err;
    (void)state;
    assert_int_equal(tn_explain(NULL, "fft:c64:shape=8@cpu:0", &decision, &err), TN_OK);
    assert_true(tn_decision_count(decision) > 0);
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        const tn_candidate *one = tn_decision_candidate(decision, i);
        char rules[160];
        if (one->why)
            continue;
        (void)snprintf(rules, sizeof rules, "rules=require:%s", one->kernel);
        assert_int_equal(tn_settings_set(rules, &err), TN_OK);
        expect_all_lengths();
        assert_int_equal(tn_settings_reset("rules", &err), TN_OK);
    }
    tn_decision_release(decision);
}

/* The reference would take days for some of these. */
static void no_length_is_left_to_the_reference(void **state)
{
    static const char *const problems[] = {
        "fft:c64:shape=67108865@cpu:0",   "fft:c128:shape=134217728@cpu:0",
        "fft:c64:shape=40000003@cpu:0",   "fft:f32:shape=80000006@cpu:0",
        "fft:c64:shape=887503681@cpu:0", /* 31^6: the factors are far apart */
        "fft:c64:shape=1073741824@cpu:0", "fft:c64:shape=2147483647@cpu:0",
        "fft:f64:shape=2147483646@cpu:0"};
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        tn_decision *decision = NULL;
        assert_int_equal(tn_explain(NULL, problems[i], &decision, &err), TN_OK);
        const tn_candidate *chosen = tn_decision_candidate(decision, 0);
        if (chosen->why || strcmp(chosen->kernel, "cpu.fft.ref") == 0)
            fail_msg("%s: expected a kernel that is fast, got %s", problems[i], chosen->kernel);
        tn_decision_release(decision);
    }
}

/* Not a number in one transform leaves the others of the batch as they are; an empty batch is nothing. */
static void transforms_of_a_batch_are_apart(void **state)
{
    enum { BATCH = 6, N = 60 };
    static float complex in[BATCH * N], out[BATCH * N], again[BATCH * N];
    int64_t shape[] = {BATCH, N};
    tn_tensor from = {
        .data = in, .device_type = TN_DLPACK_CPU, .ndim = 2, .dtype = TN_C64, .shape = shape};
    tn_tensor to = from, other = from;
    tn_error err;
    (void)state;
    to.data = out, other.data = again;
    for (int32_t i = 0; i < BATCH * N; i++)
        in[i] = (float complex)(draw() + I * draw());
    assert_int_equal(tn_fft(NULL, TN_ARGS(fft, .in = &from, .out = &to), &err), TN_OK);
    in[2 * N + 7] = (float)NAN;
    in[3 * N + 8] = (float)INFINITY;
    assert_int_equal(tn_fft(NULL, TN_ARGS(fft, .in = &from, .out = &other), &err), TN_OK);
    for (int32_t b = 0; b < BATCH; b++) {
        if (b != 2 && b != 3)
            assert_memory_equal(out + b * N, again + b * N, N * sizeof *out);
    }
    shape[0] = 0;
    memcpy(again, out, sizeof out);
    assert_int_equal(tn_fft(NULL, TN_ARGS(fft, .in = &from, .out = &to), &err), TN_OK);
    assert_memory_equal(out, again, sizeof out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(dtypes_and_shapes_are_checked),
        cmocka_unit_test(problems_have_a_text),
        cmocka_unit_test(numbers_are_those_of_the_definition),
        cmocka_unit_test(no_length_is_left_to_the_reference),
        cmocka_unit_test(transforms_of_a_batch_are_apart),
    };
    return run_suite("unit.op_fft", tests);
}
