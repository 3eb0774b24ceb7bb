/* Random problem texts: any operator, any combination of its fields, sizes on both sides of what kernels
 * treat differently. Some combinations are invalid or unsupported, which the library has to say. */
#include "attack.h"

#include <stdarg.h>

enum { LARGEST = 1 << 22 }; /* multiplications of a product, roughly: a batch takes seconds */

/* A text that grows; what does not fit is left out, which the reader of problems rejects. */
typedef struct writer {
    dice *dice;
    char *out;
    size_t used;
} writer;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
add_text(writer *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(w->out + w->used, ATTACK_PROBLEM - w->used, format, arguments);
    va_end(arguments);
    if (length > 0 && w->used + (size_t)length < ATTACK_PROBLEM)
        w->used += (size_t)length;
}

/* A size up to `most`, often one at which a kernel changes its path. */
static int64_t random_size(dice *d, int64_t most)
{
    static const int64_t steps[] = {2, 3, 4, 8, 16, 32, 64, 128, 256};
    int64_t size;
    switch (dice_range(d, 0, 7)) {
    case 0: size = 1; break;
    case 1: size = dice_range(d, 0, 4); break;
    case 2: size = dice_range(d, 1, 20); break;
    case 3:
    case 4: size = DICE_PICK(d, steps) * dice_range(d, 1, 3) + dice_range(d, -1, 1); break;
    case 5: size = dice_range(d, 1, most); break;
    default: size = dice_range(d, 1, 100); break;
    }
    return size > most ? most : size;
}

static void add_list(writer *w, const char *field, const int64_t *numbers, int count)
{
    add_text(w, ",%s=", field);
    for (int i = 0; i < count; i++)
        add_text(w, "%s%lld", i ? ";" : "", (long long)numbers[i]);
}

/* Strides of a tensor of these sizes: rows with gaps, transposed, spread, reversed order of dimensions; `reads`:
 * also broadcast. */
static void add_strides(writer *w, const char *field, const int64_t *sizes, int rank, bool reads)
{
    int64_t strides[8], step = dice_one_in(w->dice, 3) ? dice_range(w->dice, 1, 3) : 1;
    bool reversed = dice_one_in(w->dice, 4);
    for (int i = 0; i < rank; i++) {
        int at = reversed ? i : rank - 1 - i;
        strides[at] = step;
        step *= sizes[at] > 0 ? sizes[at] : 1;
        if (dice_one_in(w->dice, 3))
            step += dice_range(w->dice, 0, 9);
        if (reads && dice_one_in(w->dice, 8))
            strides[at] = 0;
    }
    add_list(w, field, strides, rank);
}

static void add_alignment(writer *w, int operands)
{
    int64_t bytes[16];
    for (int i = 0; i < operands; i++)
        bytes[i] = INT64_C(1) << dice_range(w->dice, 3, 6);
    add_list(w, "align", bytes, operands);
}

static void add_matmul(writer *w)
{
    static const char *const dtypes[] = {"f32",  "f32",  "f64",       "f16",     "bf16",
                                         "bf16", "c64",  "c128",      "i8",      "f8_e4m3fn",
                                         "f32",  "bf16", "f8_e4m3fn", "f8_e5m2", "f16"};
    static const char *const acts[] = {"relu", "gelu", "gelu-tanh", "silu"};
    static const char *const outs[] = {"f32", "f64", "f16", "bf16", "i32"};
    static const char *const factors[] = {"0", "0.5", "-1", "1e-3", "2.5"};
    dice *d = w->dice;
    const char *dtype = DICE_PICK(d, dtypes);
    int64_t batch[3], m = random_size(d, 400), n = random_size(d, 400), k = random_size(d, 700);
    int batches = dice_one_in(d, 3) ? (int)dice_range(d, 1, 2) : 0;
    while (m * n * k > LARGEST)
        m = (m + 1) / 2, n = (n + 1) / 2;
    add_text(w, "matmul:%s:m=%lld,n=%lld,k=%lld", dtype, (long long)m, (long long)n, (long long)k);
    for (int i = 0; i < batches; i++)
        batch[i] = dice_range(d, 1, 4);
    if (batches == 1)
        add_text(w, ",batch=%lld", (long long)batch[0]);
    if (batches == 2)
        add_text(w, ",batch=%lldx%lld", (long long)batch[0], (long long)batch[1]);
    bool ta = dice_one_in(d, 4), tb = dice_one_in(d, 3);
    if (ta)
        add_text(w, ",ta=1");
    if (tb)
        add_text(w, ",tb=1");
    if (dice_one_in(d, 4))
        add_text(w, ",alpha=%s", DICE_PICK(d, factors));
    if (dice_one_in(d, 4))
        add_text(w, ",beta=%s", DICE_PICK(d, factors));
    if (dice_one_in(d, 4))
        add_text(w, ",bias=1");
    if (dice_one_in(d, 4))
        add_text(w, ",act=%s", DICE_PICK(d, acts));
    if (dice_one_in(d, 5))
        add_text(w, ",out=%s", DICE_PICK(d, outs));
    if (dtype[0] == 'f' && dtype[1] == '8' && dice_one_in(d, 2))
        add_text(w, ",scale_a=%s,scale_b=%s", dice_one_in(d, 2) ? "tensor" : "rows",
                 dice_one_in(d, 2) ? "tensor" : "columns");
    int64_t sizes[5];
    memcpy(sizes, batch, sizeof batch);
    if (dice_one_in(d, 4)) {
        sizes[batches] = ta ? k : m, sizes[batches + 1] = ta ? m : k;
        add_strides(w, "sa", sizes, batches + 2, true);
    }
    if (dice_one_in(d, 4)) {
        sizes[batches] = tb ? n : k, sizes[batches + 1] = tb ? k : n;
        add_strides(w, "sb", sizes, batches + 2, true);
    }
    if (dice_one_in(d, 4)) {
        sizes[batches] = m, sizes[batches + 1] = n;
        add_strides(w, "sc", sizes, batches + 2, false);
    }
    if (dice_one_in(d, 12))
        add_text(w, ",grouped=1");
    else if (dice_one_in(d, 5))
        add_alignment(w, 3);
}

static int add_shape(writer *w, int64_t sizes[4], int least, bool even)
{
    int rank = (int)dice_range(w->dice, least, 4);
    int64_t room = 60000;
    for (int i = rank; i-- > 0;) {
        sizes[i] = random_size(w->dice, i == rank - 1 ? 3000 : 60);
        if (even && i == rank - 1)
            sizes[i] = (sizes[i] / 2 + 1) * 2;
        if (sizes[i] > room)
            sizes[i] = even && i == rank - 1 ? 2 : 1;
        room /= sizes[i] ? sizes[i] : 1;
    }
    add_text(w, "shape=");
    for (int i = 0; i < rank; i++)
        add_text(w, "%s%lld", i ? "x" : "", (long long)sizes[i]);
    return rank;
}

static const char *random_float(dice *d)
{
    static const char *const floats[] = {"f32", "f32", "f64", "f16", "bf16", "bf16"};
    return DICE_PICK(d, floats);
}

static const char *random_dtype(dice *d)
{
    static const char *const dtypes[] = {"f32", "f64",  "f16",  "bf16",      "i8",     "i16",
                                         "i32", "i64",  "u8",   "u16",       "u32",    "u64",
                                         "c64", "c128", "bool", "f8_e4m3fn", "f8_e5m2"};
    return DICE_PICK(d, dtypes);
}

/* Strides or in place, and alignments: what elementwise and row operators share. */
static void add_places(writer *w, const int64_t *sizes, int rank, bool inplace, bool second)
{
    if (inplace && dice_one_in(w->dice, 5)) {
        add_text(w, ",inplace=1");
        return;
    }
    if (dice_one_in(w->dice, 3))
        add_strides(w, "si", sizes, rank, true);
    if (second && dice_one_in(w->dice, 3))
        add_strides(w, "s2", sizes, rank, true);
    if (dice_one_in(w->dice, 3))
        add_strides(w, "so", sizes, rank, false);
    if (!second && dice_one_in(w->dice, 5))
        add_alignment(w, 2);
}

static void add_elementwise(writer *w)
{
    static const char *const unary[] = {"neg",  "abs",     "sqrt", "rsqrt", "exp",       "log",
                                        "tanh", "sigmoid", "relu", "gelu",  "gelu-tanh", "silu"};
    static const char *const binary[] = {"add", "sub", "mul", "div", "max", "min"};
    static const char *const values[] = {"0", "1", "-3", "2.5", "1e30", "inf", "nan", "300"};
    dice *d = w->dice;
    int64_t sizes[4];
    int rank;
    switch (dice_range(d, 0, 4)) {
    case 0: {
        int64_t order[4] = {0, 1, 2, 3};
        add_text(w, "permute:%s:", random_dtype(d));
        rank = add_shape(w, sizes, 1, false);
        for (int i = rank; i-- > 1;) {
            int64_t j = dice_range(d, 0, i), swap = order[i];
            order[i] = order[j], order[j] = swap;
        }
        if (dice_one_in(d, 2))
            add_list(w, "order", order, rank);
        else
            add_places(w, sizes, rank, false, false);
        break;
    }
    case 1:
        add_text(w, "cast:%s:to=%s,", random_dtype(d), random_dtype(d));
        rank = add_shape(w, sizes, 1, false);
        add_places(w, sizes, rank, false, false);
        break;
    case 2:
        add_text(w, "fill:%s:value=%s,", random_dtype(d), DICE_PICK(d, values));
        rank = add_shape(w, sizes, 1, false);
        if (dice_one_in(d, 2))
            add_strides(w, "so", sizes, rank, false);
        break;
    case 3:
        add_text(w, "unary:%s:kind=%s,", dice_one_in(d, 3) ? random_dtype(d) : random_float(d),
                 DICE_PICK(d, unary));
        rank = add_shape(w, sizes, 1, false);
        add_places(w, sizes, rank, true, false);
        break;
    default:
        add_text(w, "binary:%s:kind=%s,", random_dtype(d), DICE_PICK(d, binary));
        rank = add_shape(w, sizes, 1, false);
        add_places(w, sizes, rank, true, true);
        break;
    }
}

static void add_rows(writer *w)
{
    static const char *const reduce[] = {"sum", "mean", "max", "min", "prod"};
    static const char *const transformed[] = {"c64", "c128", "f32", "f64"};
    const char *dtype;
    dice *d = w->dice;
    int64_t sizes[4];
    int rank;
    switch (dice_range(d, 0, 4)) {
    case 0:
        add_text(w, "reduce:%s:kind=%s,", dice_one_in(d, 3) ? random_dtype(d) : random_float(d),
                 DICE_PICK(d, reduce));
        rank = add_shape(w, sizes, 1, false);
        add_text(w, ",axes=%lld", (long long)dice_range(d, 1, rank));
        if (dice_one_in(d, 3))
            add_strides(w, "si", sizes, rank, true);
        break;
    case 1:
        add_text(w, "softmax:%s:", random_float(d));
        rank = add_shape(w, sizes, 1, false);
        if (dice_one_in(d, 3))
            add_text(w, ",log=1");
        add_places(w, sizes, rank, true, false);
        break;
    case 2:
        add_text(w, "norm:%s:kind=%s,", random_float(d), dice_one_in(d, 2) ? "layer" : "rms");
        rank = add_shape(w, sizes, 1, false);
        if (dice_one_in(d, 2))
            add_text(w, ",weight=%s", dice_one_in(d, 3) ? "f32" : "1");
        if (dice_one_in(d, 3))
            add_text(w, ",bias=1");
        add_places(w, sizes, rank, true, false);
        break;
    case 3:
        dtype = DICE_PICK(d, transformed);
        add_text(w, "fft:%s:", dtype);
        rank = add_shape(w, sizes, 1, false);
        add_text(w, ",dims=%lld", (long long)dice_range(d, 1, rank < 3 ? rank : 3));
        if (dice_one_in(d, 2))
            add_text(w, ",dir=inverse");
        if (dice_one_in(d, 3))
            add_text(w, ",norm=%s", dice_one_in(d, 2) ? "ortho" : "forward");
        add_places(w, sizes, rank, dtype[0] == 'c', false);
        break;
    default:
        add_text(w, "rotary:%s:kind=%s,", random_float(d), dice_one_in(d, 2) ? "halves" : "pairs");
        rank = add_shape(w, sizes, 2, true);
        if (dice_one_in(d, 3))
            add_text(w, ",size=%lld", (long long)dice_range(d, 1, sizes[rank - 1] / 2) * 2);
        add_places(w, sizes, rank, true, false);
        break;
    }
}

/* Masks, caps and dropout: what attention and its gradient share. */
static void add_attention_fields(writer *w)
{
    static const char *const places[] = {"causal",     "causal-br",      "window:3;5",
                                         "window:9;0", "window-tl:-1;7", "window:0;0"};
    static const char *const tensors[] = {"bool", "additive", "padding"};
    dice *d = w->dice;
    bool placed = dice_one_in(d, 3), masked = dice_one_in(d, 4);
    if (placed || masked)
        add_text(w, ",mask=%s%s%s", placed ? DICE_PICK(d, places) : "", placed && masked ? ";" : "",
                 masked ? DICE_PICK(d, tensors) : "");
    if (dice_one_in(d, 6))
        add_text(w, ",scale=%s", dice_one_in(d, 2) ? "0.5" : "-0.1");
    if (dice_one_in(d, 6))
        add_text(w, ",softcap=5");
    if (dice_one_in(d, 6))
        add_text(w, ",dropout=0.25,seed=%lld,offset=%lld", (long long)dice_range(d, 0, 99),
                 (long long)dice_range(d, 0, 99));
    if (dice_one_in(d, 5))
        add_text(w, ",layout=blhd");
}

static void add_heads(writer *w, int64_t *size)
{
    static const int64_t widths[] = {8,  16, 24,  32,  40,  64,  64, 72,
                                     80, 96, 128, 128, 160, 192, 256};
    dice *d = w->dice;
    int64_t groups = dice_range(d, 1, 3), heads = dice_range(d, 1, 3);
    add_text(w, "h=%lld", (long long)(heads * groups));
    if (groups > 1)
        add_text(w, ",hk=%lld", (long long)heads);
    *size = dice_one_in(d, 3) ? dice_range(d, 1, 100) : DICE_PICK(d, widths);
    add_text(w, ",d=%lld", (long long)*size);
    if (dice_one_in(d, 6))
        add_text(w, ",dv=%lld", (long long)dice_range(d, 1, 130));
}

static void add_lengths(writer *w, bool one)
{
    dice *d = w->dice;
    add_text(w, ",b=%lld", (long long)dice_range(d, 1, 3));
    if (one || dice_one_in(d, 3))
        add_text(w, ",l=%lld", (long long)random_size(d, 150));
    else
        add_text(w, ",lq=%lld,lk=%lld", (long long)(dice_one_in(d, 3) ? 1 : random_size(d, 130)),
                 (long long)random_size(d, 300));
}

static void add_attention(writer *w)
{
    dice *d = w->dice;
    int64_t size;
    add_text(w, "attention:%s:", random_float(d));
    add_heads(w, &size);
    switch (dice_range(d, 0, 7)) {
    case 0:
        add_text(w, ",varlen=%lld;%lld;%lld", (long long)random_size(d, 70),
                 (long long)random_size(d, 70), (long long)random_size(d, 70));
        if (dice_one_in(d, 2))
            add_text(w, ",varlenk=%lld;%lld;%lld", (long long)random_size(d, 70),
                     (long long)random_size(d, 70), (long long)random_size(d, 70));
        break;
    case 1:
        add_lengths(w, false);
        add_text(w, ",page=%d", 1 << dice_range(d, 2, 6));
        break;
    case 2:
        add_lengths(w, false);
        add_text(w, ",used=1");
        break;
    default: add_lengths(w, false); break;
    }
    add_attention_fields(w);
    if (dice_one_in(d, 3))
        add_text(w, ",lse=1");
    if (dice_one_in(d, 6))
        add_text(w, ",sink=1");
    if (dice_one_in(d, 6))
        add_text(w, ",out=f32");
}

static void add_gradient_or_merge(writer *w)
{
    int64_t size;
    if (dice_one_in(w->dice, 3)) {
        add_text(w, "attention-merge:%s:h=%lld,d=%lld", random_float(w->dice),
                 (long long)dice_range(w->dice, 1, 4), (long long)random_size(w->dice, 130));
        add_lengths(w, true);
        add_text(w, "%s%s", dice_one_in(w->dice, 2) ? ",lse=1" : "",
                 dice_one_in(w->dice, 3) ? ",layout=blhd" : "");
        return;
    }
    add_text(w, "attention-backward:%s:", random_float(w->dice));
    add_heads(w, &size);
    add_lengths(w, false);
    add_attention_fields(w);
}

void attack_problem(dice *d, const char *device, char out[ATTACK_PROBLEM])
{
    writer w = {.dice = d, .out = out};
    switch (dice_range(d, 0, 6)) {
    case 0:
    case 1: add_matmul(&w); break;
    case 2: add_elementwise(&w); break;
    case 3: add_rows(&w); break;
    case 4:
    case 5: add_attention(&w); break;
    default: add_gradient_or_merge(&w); break;
    }
    add_text(&w, "@%s", device);
}

tn_context *attack_context(const attack *self, dice *d)
{
    static const char *const texts[] = {"determinism=run-to-run",   "determinism=batch-invariant",
                                        "determinism=cross-device", "workspace.limit=4k",
                                        "cuda.flash_sdp=false",     "inference=true"};
    tn_change changes[3];
    tn_context *made = NULL;
    tn_error err;
    size_t count = (size_t)dice_range(d, 0, 2);
    for (size_t i = 0; i < count; i++)
        if (tn_setting_parse(DICE_PICK(d, texts), &changes[i], &err))
            attack_found(self, "tn_setting_parse: %s", err.message);
    if (tn_context_derive(NULL, changes, count, &made, &err))
        attack_found(self, "tn_context_derive: %s", err.message);
    return made;
}
