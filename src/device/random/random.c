#include "tenon/random.h"

#include "base/checked.h"
#include "base/dtype.h"
#include "fill.h"
#include "generators.h"
#include "os/cpu.h"
#include "philox.h"
#include "settings/process.h"
#include "tenon/parallel.h"

#include <stdbool.h>

#define FUNCTION(name) (void (*)(void)) tni_fill_##name
static const tni_isa_row rows[] = {
#ifdef TENON_ISA_AVX512
    {"avx512", TENON_ISA_AVX512, FUNCTION(avx512)},
#endif
#ifdef TENON_ISA_AVX2
    {"avx2", TENON_ISA_AVX2, FUNCTION(avx2)},
#endif
    {"portable", 0, FUNCTION(portable)},
};
static tni_isa_table table = {rows, sizeof rows / sizeof rows[0], NULL};

const tni_isa_row *tni_fill_rows(size_t *out_count)
{
    *out_count = table.count;
    return table.rows;
}

const tni_isa_row *tni_fill_choose(uint64_t features)
{
    return tni_isa_use(&table, features);
}

/* A fill is divided into pieces at multiples of PIECE blocks, counted from the generator's start:
 * so no piece crosses a multiple of 2^32, as tni_fill requires. */
enum { PIECE = 1 << 14 };

/* Fills of at least this many bytes use non-temporal stores: these do not read the memory first,
 * and do not evict other data from the caches. */
enum { PAST_CACHES = 32 << 20 };

struct job {
    tni_fill *fill;
    tni_fill_source source;
    int kind;
    size_t count;
    unsigned char *out;
    uint64_t first_piece; /* blocks in it */
};

static void run_piece(void *user, int64_t index)
{
    const struct job *job = user;
    const size_t in_block = TN_PHILOX_WORDS / tni_fill_words[job->kind];
    uint64_t end = job->first_piece + (uint64_t)index * PIECE;
    uint64_t begin = index == 0 ? 0 : end - PIECE;
    size_t from = (size_t)begin * in_block, to = (size_t)end * in_block;
    tni_fill_source source = job->source;
    source.block += begin;
    if (to > job->count)
        to = job->count;
    job->fill(&source, job->kind, to - from, job->out + from * tni_fill_bytes[job->kind]);
}

static void fill_numbers(tn_generator *generator, int kind, void *out, size_t count)
{
    const size_t in_block = TN_PHILOX_WORDS / tni_fill_words[kind];
    uint64_t blocks = count / in_block + (count % in_block != 0);
    tn_generator_state taken = tni_generators_advance(generator, blocks);
    tni_settings_load(); /* settings may forbid some instructions */
    struct job job = {
        .fill = (tni_fill *)tni_isa_best(&table)->function,
        .source = {taken.seed, taken.subsequence, taken.offset,
                   .past_caches = count >= PAST_CACHES / tni_fill_bytes[kind]},
        .kind = kind,
        .count = count,
        .out = out,
        .first_piece = PIECE - taken.offset % PIECE,
    };
    if (blocks <= job.first_piece)
        run_piece(&job, 0);
    else
        tn_parallel_for((int64_t)(1 + (blocks - job.first_piece + PIECE - 1) / PIECE), run_piece,
                        &job);
}

/* What is available for one distribution. */
struct offer {
    const char *where;
    const char *numbers; /* "uniform" */
    const char *dtypes;  /* for messages */
    int (*kind)(tn_dtype dtype);
};

static int uniform_kind(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F16: return TNI_FILL_UNIFORM_F16;
    case TN_BF16: return TNI_FILL_UNIFORM_BF16;
    case TN_F32: return TNI_FILL_UNIFORM_F32;
    case TN_F64: return TNI_FILL_UNIFORM_F64;
    case TN_I32:
    case TN_U32: return TNI_FILL_WORDS;
    default: return TNI_FILL_COUNT;
    }
}

static int normal_kind(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F16: return TNI_FILL_NORMAL_F16;
    case TN_BF16: return TNI_FILL_NORMAL_BF16;
    case TN_F32: return TNI_FILL_NORMAL_F32;
    case TN_F64: return TNI_FILL_NORMAL_F64;
    default: return TNI_FILL_COUNT;
    }
}

static const struct offer uniform = {"tn_random_fill_uniform", "uniform",
                                     "f16, bf16, f32, f64, i32, u32", uniform_kind};
static const struct offer normal = {"tn_random_fill_normal", "normal", "f16, bf16, f32, f64",
                                    normal_kind};

static tn_status refuse_dtype(const struct offer *offer, tn_dtype dtype, tn_error *err)
{
    const char *name = tn_dtype_name(dtype);
    if (!name)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, offer->where,
                       "%#x is not a dtype: %s numbers support %s", (unsigned)dtype, offer->numbers,
                       offer->dtypes);
    return tn_fail(err, TN_UNSUPPORTED, 0, offer->where,
                   "%s numbers do not support dtype %s; they support %s", offer->numbers, name,
                   offer->dtypes);
}

static tn_status check_and_fill(const struct offer *offer, tn_generator *generator, tn_dtype dtype,
                                void *out, int64_t count, tn_error *err)
{
    int kind = offer->kind(dtype);
    size_t bytes;
    if (kind == TNI_FILL_COUNT)
        return refuse_dtype(offer, dtype, err);
    if (count < 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, offer->where,
                       "count: expected at least 0, got %lld", (long long)count);
    if ((uint64_t)count > SIZE_MAX || !tni_mul_size((size_t)count, tni_fill_bytes[kind], &bytes) ||
        bytes > PTRDIFF_MAX)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, offer->where,
                       "%lld elements of %s exceed the address space", (long long)count,
                       tn_dtype_name(dtype));
    if (count > 0 && !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, offer->where, "out is NULL, and count is %lld",
                       (long long)count);
    if (count > 0)
        fill_numbers(generator, kind, out, (size_t)count);
    return TN_OK;
}

tn_status tn_random_fill_uniform(tn_generator *generator, tn_dtype dtype, void *out, int64_t count,
                                 tn_error *err)
{
    return check_and_fill(&uniform, generator, dtype, out, count, err);
}

tn_status tn_random_fill_normal(tn_generator *generator, tn_dtype dtype, void *out, int64_t count,
                                tn_error *err)
{
    return check_and_fill(&normal, generator, dtype, out, count, err);
}
