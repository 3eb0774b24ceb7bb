/* A whole einsum against one loop over all labels in long double. */
#include "einsum_values.h"

#include "system.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "einsum";

enum { LABELS_MOST = 4096, SAMPLES = 4096 };
static const double products_most = 2e9;

/* A loop over all labels: first those of out, then the summed ones. */
typedef struct loop {
    int32_t operands, labels, kept;
    const char *name[LABELS_MOST]; /* a character of the equation */
    int64_t size[LABELS_MOST];
    int64_t at[LABELS_MOST];
    int64_t *step;  /* [labels][operands]: elements between values of a label */
    int64_t *first; /* [operands]: the current element */
} loop;

/* Everything of a check. */
typedef struct trial {
    const einsum_problem *of;
    loop loop;
    tn_tensor *tensors;   /* operands, then out */
    double **values;      /* of the operands: real, or real and imaginary parts */
    unsigned char *found; /* out's bytes */
    int64_t outputs;
    double products; /* of each output */
    bool complex;
} trial;

/* A number, and the sum of the magnitudes of what was added up. */
typedef struct sum {
    long double real, imaginary, magnitude;
} sum;

static tn_status no_memory(tn_error *err)
{
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, where, "out of memory for a check");
}

/* Bytes of the character at `text`. */
static size_t character_size(const char *text)
{
    const unsigned char lead = (unsigned char)*text;
    return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/* The number of a label, which is added if it is new; -1 if there are too many. */
static int32_t find_label(loop *l, const char *name)
{
    const size_t size = character_size(name);
    for (int32_t i = 0; i < l->labels; i++) {
        if (strncmp(l->name[i], name, size) == 0)
            return i;
    }
    if (l->labels == LABELS_MOST)
        return -1;
    l->name[l->labels] = name;
    l->size[l->labels] = 1;
    return l->labels++;
}

/* Adds the labels of out, then those of the operands, and finds their sizes. */
static tn_status find_labels(const einsum_problem *of, loop *l, tn_error *err)
{
    const char *equation = of->info.equation, *at = strstr(equation, "->") + 2;
    int32_t label = 0;
    for (; *at && label >= 0; at += character_size(at))
        label = find_label(l, at);
    l->kept = l->labels;
    at = equation;
    for (int32_t term = 0; term < l->operands && label >= 0; term++, at++) {
        for (int32_t dim = 0; dim < of->operands.tensors[term].ndim && label >= 0; dim++) {
            const int64_t size = of->operands.shapes[term][dim];
            label = find_label(l, at);
            if (label >= 0 && l->size[label] == 1)
                l->size[label] = size;
            at += character_size(at);
        }
    }
    return label >= 0 ? TN_OK
                      : tn_fail(err, TN_UNSUPPORTED, 0, where,
                                "expected at most %d labels; check the steps' problems instead",
                                LABELS_MOST);
}

/* Finds how far the elements of each operand are apart along each label. */
static tn_status init_loop(const einsum_problem *of, loop *l, tn_error *err)
{
    const char *at = of->info.equation;
    l->operands = of->operands.count;
    const tn_status status = find_labels(of, l, err);
    if (status)
        return status;
    const size_t operands = (size_t)l->operands;
    l->step = calloc(((size_t)l->labels + 1) * operands, sizeof *l->step);
    l->first = calloc(operands, sizeof *l->first);
    if (!l->step || !l->first)
        return no_memory(err);
    for (size_t term = 0; term < operands; term++, at++) {
        const int32_t ndim = of->operands.tensors[term].ndim;
        for (int32_t dim = 0; dim < ndim; dim++) {
            int64_t stride = of->operands.shapes[term][dim] == 1 ? 0 : 1;
            for (int32_t k = dim + 1; k < ndim; k++)
                stride *= of->operands.shapes[term][k];
            l->step[(size_t)find_label(l, at) * operands + term] += stride;
            at += character_size(at);
        }
    }
    return TN_OK;
}

/* Moves along the labels from `begin` to `end` - 1; returns whether another combination is left. */
static bool advance(loop *l, int32_t begin, int32_t end)
{
    const size_t operands = (size_t)l->operands;
    for (int32_t label = end; label-- > begin;) {
        const bool wraps = ++l->at[label] == l->size[label];
        const int64_t by = wraps ? 1 - l->size[label] : 1;
        for (size_t i = 0; i < operands; i++)
            l->first[i] += by * l->step[(size_t)label * operands + i];
        if (!wraps)
            return true;
        l->at[label] = 0;
    }
    return false;
}

/* Moves to an element of out. */
static void go_to(loop *l, int64_t output)
{
    const size_t operands = (size_t)l->operands;
    memset(l->first, 0, operands * sizeof *l->first);
    memset(l->at, 0, sizeof l->at);
    for (int32_t label = l->kept; label-- > 0;) {
        const int64_t at = output % l->size[label];
        output /= l->size[label];
        for (size_t i = 0; i < operands; i++)
            l->first[i] += at * l->step[(size_t)label * operands + i];
    }
}

/* Computes the output that the loop is at. */
static sum compute_output(trial *t)
{
    sum all = {0};
    loop *l = &t->loop;
    for (int32_t i = l->kept; i < l->labels; i++) {
        if (l->size[i] == 0)
            return all;
    }
    do {
        long double real = 1, imaginary = 0;
        for (int32_t i = 0; i < l->operands; i++) {
            const double *value = t->values[i] + l->first[i] * (t->complex ? 2 : 1);
            const long double x = value[0], y = t->complex ? value[1] : 0, before = real;
            real = real * x - imaginary * y;
            imaginary = before * y + imaginary * x;
        }
        all.real += real;
        all.imaginary += imaginary;
        all.magnitude += fabsl(real) + fabsl(imaginary);
    } while (advance(l, l->kept, l->labels));
    return all;
}

/* Runs the einsum, whose result is poisoned before. */
static tn_status run_einsum(trial *t, tn_error *err)
{
    const loop *l = &t->loop;
    const tn_tensor **list = calloc((size_t)l->operands, sizeof *list);
    tn_tensor *out = &t->tensors[l->operands];
    uint64_t bytes = 0;
    tn_status status =
        list ? tn_tensor_create(t->of->device, t->of->dtype, l->size, l->kept, out, err)
             : no_memory(err);
    for (int32_t i = 0; i < l->operands && list; i++)
        list[i] = &t->tensors[i];
    if (!status)
        status = tn_tensor_elements(out, &t->outputs, err);
    if (!status)
        status = tn_tensor_bytes(out, &bytes, err);
    if (!status && !(t->found = malloc((size_t)bytes + 1)))
        status = no_memory(err);
    if (!status) {
        memset(t->found, 0xFF, (size_t)bytes);
        status = tn_tensor_write(out, t->found, bytes, err);
    }
    if (!status)
        status = tn_einsum(NULL,
                           TN_ARGS(einsum, .equation = t->of->equation, .operands = list,
                                   .count = l->operands, .out = out),
                           err);
    if (!status)
        status = tn_tensor_read(out, t->found, bytes, err);
    free(list);
    return status;
}

/* Half the distance from 1 to the next number, of the result and of the numbers that are added. */
static void find_rounding(const einsum_problem *of, double *out_result, double *out_sum)
{
    const bool f64 = einsum_part_bytes(of->dtype) == 8;
    const tn_setting setting = strncmp(tn_device_id(of->device), "cuda", 4) == 0
                                   ? TN_SETTING_CUDA_MATMUL_FP32_PRECISION
                                   : TN_SETTING_MKLDNN_MATMUL_FP32_PRECISION;
    *out_sum = f64 ? 0x1p-53 : 0x1p-24;
    *out_result = of->dtype == TN_F16 ? 0x1p-11 : of->dtype == TN_BF16 ? 0x1p-8 : *out_sum;
    if (einsum_part_bytes(of->dtype) == 4 && tn_setting_resolved(NULL, setting) == TN_FP32_TF32)
        *out_result = 0x1p-10;
    if (einsum_part_bytes(of->dtype) == 4 && tn_setting_resolved(NULL, setting) == TN_FP32_BF16)
        *out_result = 0x1p-7;
}

/* How far an output may be from the exact one, as a part of the magnitudes that are added: each step
 * rounds its operands and its result, and a number for each product. */
static double find_bound(const trial *t)
{
    double result, added, all = 0;
    const tn_einsum_step *step;
    if (einsum_integer_bits(t->of->dtype))
        return 0;
    find_rounding(t->of, &result, &added);
    for (size_t i = 0; (step = tn_einsum_path_step(t->of->path, i)); i++) {
        all += 4 * result;
        all += added * (step->elements > 0 ? step->cost / step->elements + 8 : 8);
    }
    return all * (t->complex ? 4 : 1);
}

/* Compares an output with what it should be, and keeps the worst. */
static void compare_output(trial *t, int64_t output, double bound, tn_check_result *to)
{
    const tn_dtype dtype = t->of->dtype;
    const size_t part = einsum_part_bytes(dtype);
    const unsigned char *at = t->found + (size_t)output * part * (t->complex ? 2 : 1);
    const int bits = abs(einsum_integer_bits(dtype));
    double error, least = 0, found, expected;
    go_to(&t->loop, output);
    const sum all = compute_output(t);
    if (bits) {
        const uint64_t mask = UINT64_MAX >> (64 - bits), whole = einsum_decode_integer(dtype, at);
        const uint64_t wanted = (uint64_t)(int64_t)all.real & mask;
        found = (double)whole;
        expected = (double)wanted;
        error = whole == wanted ? 0 : (double)INFINITY;
    } else {
        const double real = einsum_decode_float(dtype, at);
        const double imaginary = t->complex ? einsum_decode_float(dtype, at + part) : 0;
        const bool worse = fabsl(imaginary - all.imaginary) > fabsl(real - all.real);
        found = worse ? imaginary : real;
        expected = (double)(worse ? all.imaginary : all.real);
        /* Numbers below the least normal one have a rounding error of their own. */
        least = bound * (double)all.magnitude +
                (dtype == TN_F16 ? 0x1p-24 : 0x1p-126) * (t->products + 1);
        error = (double)(fabsl((worse ? imaginary : real) - (worse ? all.imaginary : all.real)) /
                         least);
        error = isnan(real) || isnan(imaginary) ? (double)INFINITY : error;
    }
    to->checked++;
    if (to->at >= 0 && error <= to->error)
        return;
    to->error = error;
    to->bound = least;
    to->found = found;
    to->expected = expected;
    to->at = output;
}

/* Compares all outputs, or as many random ones as there is time for. */
static tn_status compare_outputs(trial *t, tn_generator *random, tn_check_result *to, tn_error *err)
{
    const double bound = find_bound(t), each = (t->products + 1) * t->loop.operands;
    int64_t count = t->outputs;
    if (each > products_most)
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "an output is a sum of %g products, which takes too long to check; use "
                       "smaller sizes",
                       t->products);
    to->sampled = (double)count * each > products_most;
    if (to->sampled)
        count = (double)SAMPLES * each > products_most ? (int64_t)(products_most / each) : SAMPLES;
    for (int64_t i = 0; i < count; i++) {
        double uniform = 0;
        if (to->sampled && i > 1 && tn_random_fill_uniform(random, TN_F64, &uniform, 1, err))
            return err->status;
        const int64_t any = (int64_t)(uniform * (double)t->outputs);
        compare_output(t, !to->sampled ? i : i < 2 ? i * (t->outputs - 1) : any, bound, to);
    }
    to->ok = !(to->error > 1);
    if (!to->ok)
        snprintf(to->text, sizeof to->text, "output %lld: expected %.9g, got %.9g",
                 (long long)to->at, to->expected, to->found);
    return TN_OK;
}

static void release_trial(trial *t)
{
    for (int32_t i = 0; i <= t->loop.operands && t->tensors; i++)
        tn_tensor_release(&t->tensors[i]);
    for (int32_t i = 0; i < t->loop.operands && t->values; i++)
        free(t->values[i]);
    free(t->tensors);
    free(t->values);
    free(t->found);
    free(t->loop.step);
    free(t->loop.first);
    free(t);
}

static tn_status run_trial(trial *t, tn_check_result *to, tn_error *err)
{
    const einsum_problem *of = t->of;
    tn_generator *random = NULL;
    t->tensors = calloc((size_t)of->operands.count + 1, sizeof *t->tensors);
    t->values = calloc((size_t)of->operands.count, sizeof *t->values);
    tn_status status = t->tensors && t->values ? init_loop(of, &t->loop, err) : no_memory(err);
    t->products = 1;
    for (int32_t i = t->loop.kept; i < t->loop.labels; i++)
        t->products *= (double)t->loop.size[i];
    if (!status)
        status = tn_generator_create(to->seed, &random, err);
    for (int32_t i = 0; i < t->loop.operands && !status; i++)
        status = einsum_values_make(of, i, random, &t->tensors[i], &t->values[i], err);
    if (!status)
        status = run_einsum(t, err);
    if (!status)
        status = compare_outputs(t, random, to, err);
    tn_generator_release(random);
    return status;
}

tn_status einsum_problem_check(const einsum_problem *of, uint64_t seed, tn_check_result *out,
                               tn_error *err)
{
    trial *t = calloc(1, sizeof *t);
    *out = (tn_check_result){.struct_size = out->struct_size, .at = -1, .seed = seed};
    snprintf(out->kernel, sizeof out->kernel, "tn_einsum");
    if (!t)
        return no_memory(err);
    t->of = of;
    t->complex = einsum_is_complex(of->dtype);
    if (!out->seed)
        out->seed = (uint64_t)(system_seconds() * 1e9) % 1000000007 + 1;
    const tn_status status = run_trial(t, out, err);
    release_trial(t);
    return status;
}
