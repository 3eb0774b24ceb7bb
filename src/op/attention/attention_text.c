/* The text form of attention problems:
 *
 *     b h hk  l | lq lk  d dv  layout=bhld|blhd   sizes; hk and dv are usually h and d
 *     mask=none|causal|causal-br|window:L;R|window-tl:L;R  and, after a ';', bool|additive|padding
 *     mdtype  dtype of an additive mask     sink=0|1|DTYPE   lse=0|1   out=DTYPE
 *     scale softcap dropout seed offset shift
 *     seed=device  seed and offset are an operand, in the device's memory
 *     varlen=l1;l2;...  lengths of queries; varlenk: of keys, if different; NxL: N lengths of L
 *     rows rowsk  total rows of queries and of keys, if more than the sum of the lengths
 *     used=1  the op has the operand LENGTHS     page  keys per page     pool  number of pages
 *     backend=NAME  the requested backend
 */
#include "attention.h"
#include "base/checked.h"
#include "base/words.h"
#include "op/fields.h"
#include "policy/backend_names/names.h"
#include "tenon/dtype.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* SEED is always contiguous. */
static const char *const stride_keys[] = {"sq",    "sk",     "sv",      "so",      "slse",  "smask",
                                          "ssink", "sstart", "sstartk", "slength", "spage", NULL,
                                          "sdo",   "sdq",    "sdk",     "sdv"};
static const char *const ways[] = {"bhld", "blhd", NULL};

enum { MASK_NONE, MASK_BOOL, MASK_ADDITIVE, MASK_PADDING };

/* Packed sequences. */
typedef struct pack {
    int64_t count; /* 0: not packed */
    int64_t all;   /* rows, including those outside all sequences */
    int64_t most;  /* maximum length of a sequence */
} pack;

typedef struct sizes {
    int64_t batch, heads, groups, queries, keys, size, value_size;
    int64_t page, pool;
    int64_t lse, used;
    bool device_seed;
    int32_t way, mask;
    tn_dtype out, mask_dtype, sinks;
    pack q, k;
} sizes;

void tni_attention_make_whole(tn_layout *out, tn_dtype dtype, const int64_t shape[4], int32_t way)
{
    int64_t turned[] = {shape[0], shape[1], shape[2], shape[3]};
    if (way == TN_LAYOUT_BLHD) {
        turned[1] = shape[2];
        turned[2] = shape[1];
    }
    tni_layout_make(out, dtype, turned, 4);
    tni_attention_turn(out, way);
}

/* Returns the number of pages for the keys of one sequence. */
static int64_t pages_of(const sizes *s)
{
    return s->page ? s->keys / s->page + (s->keys % s->page > 0) : 0;
}

static void usual_tables(const sizes *s, tn_layout *out)
{
    const int64_t starts[] = {s->q.count + 1}, lengths[] = {s->batch};
    const int64_t pages[] = {s->batch, pages_of(s)};
    if (s->sinks)
        tni_layout_make(&out[TN_ATTENTION_SINKS], s->sinks, &s->heads, 1);
    if (s->q.count)
        tni_layout_make(&out[TN_ATTENTION_STARTS_Q], TN_I32, starts, 1);
    if (s->q.count && !s->page)
        tni_layout_make(&out[TN_ATTENTION_STARTS_K], TN_I32, starts, 1);
    if (s->used)
        tni_layout_make(&out[TN_ATTENTION_LENGTHS], TN_I32, lengths, 1);
    if (s->page)
        tni_layout_make(&out[TN_ATTENTION_PAGES], TN_I32, pages, 2);
}

static void usual_mask(const sizes *s, tn_layout *out)
{
    const int64_t shape[] = {s->batch, s->heads, s->queries, s->keys};
    if (!s->mask)
        return;
    tni_layout_make(out, s->mask_dtype, shape, 4);
    if (s->mask == MASK_PADDING) {
        out->stride[0] = s->keys;
        out->stride[1] = out->stride[2] = 0;
    }
}

/* Makes the default layouts for an op of these sizes. */
static void make_usual_layouts(const sizes *s, const tn_op *op, tn_dtype dtype, tn_layout *out)
{
    int64_t batch = s->q.count ? 1 : s->batch, rows = s->q.count ? s->q.all : s->queries;
    int64_t keys = s->page ? s->page : s->q.count ? s->k.all : s->keys;
    const int64_t q[] = {batch, s->heads, rows, s->size};
    const int64_t k[] = {s->page ? s->pool : batch, s->groups, keys, s->size};
    const int64_t v[] = {k[0], s->groups, keys, s->value_size};
    const int64_t to[] = {batch, s->heads, rows, s->value_size};
    for (int32_t i = 0; i < op->count; i++)
        out[i].dtype = TN_DTYPE_NONE;
    tni_attention_make_whole(&out[TN_ATTENTION_Q], dtype, q, s->way);
    tni_attention_make_whole(&out[TN_ATTENTION_K], dtype, k, s->way);
    tni_attention_make_whole(&out[TN_ATTENTION_V], dtype, v, s->way);
    tni_attention_make_whole(&out[TN_ATTENTION_OUT], s->out, to, s->way);
    if (s->lse)
        tni_layout_make(&out[TN_ATTENTION_LSE], tni_attention_lse(dtype), q, 3);
    usual_mask(s, &out[TN_ATTENTION_MASK]);
    if (s->device_seed)
        tni_layout_make(&out[TN_ATTENTION_SEED], TN_I64, (const int64_t[]){2}, 1);
    if (op->kind != TN_OP_ATTENTION_BACKWARD) {
        usual_tables(s, out);
        return;
    }
    tni_attention_make_whole(&out[TN_ATTENTION_BACKWARD_DOUT], dtype, to, s->way);
    tni_attention_make_whole(&out[TN_ATTENTION_BACKWARD_DQ], dtype, q, s->way);
    tni_attention_make_whole(&out[TN_ATTENTION_BACKWARD_DK], dtype, k, s->way);
    tni_attention_make_whole(&out[TN_ATTENTION_BACKWARD_DV], dtype, v, s->way);
}

static tn_status reject_field(const tni_fields *fields, const char *key, const char *needs,
                              tn_error *err)
{
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, "problem", "%.160s: %s: expected %s",
                   fields->problem, key, needs);
}

/* Parses an integer of at least `least` at the start of the text, and moves the text past it. */
static bool read_number(const char **text, int64_t least, int64_t *out)
{
    char *end;
    if ((**text < '0' || **text > '9') && **text != '-')
        return false;
    errno = 0;
    long long value = strtoll(*text, &end, 10);
    *out = value;
    bool fits = errno == 0 && end != *text && value >= least;
    *text = end;
    return fits;
}

static bool read_word(const char **text, const char *word)
{
    size_t length = strlen(word);
    bool is =
        strncmp(*text, word, length) == 0 && ((*text)[length] == '\0' || (*text)[length] == ';');
    *text += is ? length : 0;
    return is;
}

/* Parses "window:L;R"; `word` is the part before the numbers. */
static bool read_window(const char **text, const char *word, int64_t *out_left, int64_t *out_right)
{
    size_t length = strlen(word);
    const char *at = *text + length;
    if (strncmp(*text, word, length) != 0 || !read_number(&at, -1, out_left) || *at++ != ';' ||
        !read_number(&at, -1, out_right))
        return false;
    *text = at;
    return true;
}

bool tni_attention_read_place(const char **text, tn_attention_op *at)
{
    int64_t left = -1, right = -1;
    if (read_word(text, "none"))
        return tni_attention_see(at, TN_MASK_NONE, 0, 0);
    if (read_word(text, "causal-br"))
        return tni_attention_see(at, TN_MASK_CAUSAL_BR, 0, 0);
    if (read_word(text, "causal"))
        return tni_attention_see(at, TN_MASK_CAUSAL, 0, 0);
    bool top = read_window(text, "window-tl:", &left, &right);
    if (!top && !read_window(text, "window:", &left, &right))
        return false;
    (void)tni_attention_see(at, TN_MASK_WINDOW, left, right);
    at->corner = top ? TN_CORNER_TOP_LEFT : TN_CORNER_BOTTOM_RIGHT;
    return true;
}

static tn_status parse_mask(tni_fields *fields, tn_dtype dtype, sizes *s, tn_attention_op *at,
                            tn_error *err)
{
    static const char *const words[] = {"bool",   "additive",  "padding", "none",
                                        "causal", "causal-br", "window:", "window-tl:"};
    const char *const value = tni_fields_take(fields, "mask"), *text = value;
    char hint[TNI_HINT];
    (void)tni_attention_see(at, TN_MASK_NONE, 0, 0);
    if (!text)
        return TN_OK;
    bool place = tni_attention_read_place(&text, at), more = !place || *text == ';';
    text += place && more;
    for (int32_t i = 0; i < 3 && more && !s->mask; i++)
        s->mask = read_word(&text, words[i]) ? i + MASK_BOOL : MASK_NONE;
    if (*text || (more && !s->mask))
        return tn_fail(
            err, TN_INVALID_ARGUMENT, 0, "problem",
            "%.160s: mask: expected a position (none, causal, causal-br, window:L;R, "
            "window-tl:L;R), a tensor (bool, additive, padding), or both, such as causal;bool; got "
            "\"%.40s\"%s",
            fields->problem, value,
            tni_words_hint(tni_words_nearest(value, words, sizeof words / sizeof words[0]), hint));
    s->mask_dtype = s->mask == MASK_ADDITIVE ? dtype : (tn_dtype)TN_BOOL;
    return s->mask == MASK_ADDITIVE ? tni_fields_dtype(fields, "mdtype", &s->mask_dtype, err)
                                    : TN_OK;
}

/* Parses lengths, of which some may be repeated: "128;3x77". */
static tn_status parse_pack(tni_fields *fields, const char *key, pack *out, tn_error *err)
{
    const char *text = tni_fields_take(fields, key);
    bool sound = true;
    if (!text)
        return TN_OK;
    *out = (pack){0};
    while (sound) {
        int64_t times = 1, length;
        sound = read_number(&text, 0, &length);
        if (sound && *text == 'x') {
            text++;
            times = length;
            sound = times > 0 && read_number(&text, 0, &length);
        }
        sound = sound && times <= INT32_MAX - out->count && length <= INT32_MAX &&
                times * length <= INT32_MAX - out->all;
        if (!sound)
            break;
        out->count += times;
        out->all += times * length;
        out->most = length > out->most ? length : out->most;
        if (*text == '\0')
            return TN_OK;
        sound = *text++ == ';';
    }
    return reject_field(fields, key, "lengths like 128;3x77, that 32 bits can count together", err);
}

/* Parses sequences that all have the same length. Takes only their fields, so that those of packed sequences are
 * rejected as unknown. */
static tn_status parse_lengths(tni_fields *fields, sizes *s, tn_error *err)
{
    int64_t both = -1;
    s->batch = 1;
    tn_status status = tni_fields_integer(fields, "b", 0, &s->batch, err);
    if (!status)
        status = tni_fields_integer(fields, "l", 0, &both, err);
    s->queries = s->keys = both;
    if (!status)
        status = tni_fields_integer(fields, "lq", 0, &s->queries, err);
    if (!status)
        status = tni_fields_integer(fields, "lk", 0, &s->keys, err);
    if (!status && s->queries < 0)
        status = tni_fields_missing(fields, s->keys < 0 ? "l" : "lq", err);
    if (!status && s->keys < 0)
        status = tni_fields_missing(fields, "lk", err);
    return status;
}

/* Parses packed sequences with individual lengths. With pages, lk is the maximum number of keys of a sequence. The
 * number of rows defaults to the sum of the lengths; the lengths of keys default to those of queries. */
static tn_status parse_packed(tni_fields *fields, sizes *s, tn_error *err)
{
    tn_status status = parse_pack(fields, "varlen", &s->q, err);
    if (!status)
        status = tni_fields_integer(fields, "rows", s->q.all, &s->q.all, err);
    s->k = s->q;
    if (!status && !s->page)
        status = parse_pack(fields, "varlenk", &s->k, err);
    if (!status && !s->page)
        status = tni_fields_integer(fields, "rowsk", s->k.all, &s->k.all, err);
    if (!status && s->k.count != s->q.count)
        status = reject_field(fields, "varlenk", "as many lengths as varlen", err);
    s->batch = s->q.count;
    s->queries = s->q.most;
    s->keys = s->k.most;
    return status || !s->page ? status : tni_fields_integer(fields, "lk", 0, &s->keys, err);
}

/* Parses the fields that only the forward pass has. */
static tn_status parse_tables(tni_fields *fields, sizes *s, tn_error *err)
{
    tn_status status = tni_fields_integer(fields, "page", 0, &s->page, err);
    if (!status && s->page)
        status = tni_fields_integer(fields, "pool", 0, &s->pool, err);
    if (!status)
        status = tni_fields_switch(fields, "lse", &s->lse, err);
    if (!status && !s->page)
        status = tni_fields_switch(fields, "used", &s->used, err);
    s->used |= s->page > 0;
    return status;
}

static tn_status parse_sizes(tni_fields *fields, bool forward, sizes *s, tn_error *err)
{
    struct {
        const char *key;
        int64_t *to;
        bool needed;
    } rows[] = {{"h", &s->heads, true},
                {"d", &s->size, true},
                {"hk", &s->groups, false},
                {"dv", &s->value_size, false}};
    tn_status status = forward ? parse_tables(fields, s, err) : TN_OK;
    if (!status && forward && tni_fields_take(fields, "varlen"))
        status = parse_packed(fields, s, err);
    else if (!status)
        status = parse_lengths(fields, s, err);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && !status; i++) {
        *rows[i].to = -1;
        status = tni_fields_integer(fields, rows[i].key, 0, rows[i].to, err);
        if (!status && rows[i].needed && *rows[i].to < 0)
            status = tni_fields_missing(fields, rows[i].key, err);
    }
    if (!status)
        status = tni_fields_word(fields, "layout", ways, &s->way, err);
    s->groups = s->groups < 0 ? s->heads : s->groups;
    s->value_size = s->value_size < 0 ? s->size : s->value_size;
    if (!status && s->pool < 0 && !tni_mul_i64(s->batch, pages_of(s), &s->pool))
        status = reject_field(fields, "lk", "no more pages than 63 bits count", err);
    return status;
}

/* Parses an unsigned 64-bit integer. */
static tn_status parse_bits(tni_fields *fields, const char *key, uint64_t *out, tn_error *err)
{
    const char *text = tni_fields_take(fields, key);
    char *end;
    if (!text)
        return TN_OK;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno)
        return reject_field(fields, key, "a whole number from 0 to 18446744073709551615", err);
    *out = value;
    return TN_OK;
}

/* "seed=device": seed and offset are an operand. */
static tn_status parse_seed(tni_fields *fields, tn_attention_op *at, bool *out_device,
                            tn_error *err)
{
    const char *text = tni_fields_take(fields, "seed");
    *out_device = text && strcmp(text, "device") == 0;
    if (*out_device)
        return tni_fields_take(fields, "offset")
                   ? reject_field(fields, "offset", "a seed that is a number", err)
                   : TN_OK;
    tn_status status = parse_bits(fields, "seed", &at->seed, err);
    return status ? status : parse_bits(fields, "offset", &at->offset, err);
}

static tn_status parse_numbers(tni_fields *fields, tn_attention_op *at, int64_t size, tn_error *err)
{
    struct {
        const char *key;
        double *to;
    } reals[] = {{"scale", &at->scale}, {"softcap", &at->softcap}, {"dropout", &at->dropout}};
    tn_status status = TN_OK;
    at->scale = tni_attention_scale(size);
    for (size_t i = 0; i < 3 && !status; i++)
        status = tni_fields_real(fields, reals[i].key, reals[i].to, err);
    if (!status)
        status = tni_fields_integer(fields, "shift", INT64_MIN, &at->shift, err);
    return status;
}

/* Parses the dtype of sinks. 0: no sinks; 1: q's dtype. */
static tn_status parse_sinks(tni_fields *fields, tn_dtype dtype, tn_dtype *out, tn_error *err)
{
    const char *value = tni_fields_take(fields, "sink");
    if (value && strcmp(value, "1") == 0)
        *out = dtype;
    else if (value && strcmp(value, "0") != 0)
        return tni_fields_dtype(fields, "sink", out, err);
    return TN_OK;
}

/* Parses the name of a backend; case is ignored. */
static tn_status parse_backend(tni_fields *fields, int32_t *out, tn_error *err)
{
    const char *const *names = tni_attention_backends + 1;
    const char *value = tni_fields_take(fields, "backend");
    char hint[TNI_OFFER];
    if (!value)
        return TN_OK;
    for (int32_t i = 0; names[i]; i++) {
        if (tni_words_same(names[i], value)) {
            *out = i + 1;
            return TN_OK;
        }
    }
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, "problem",
                   "%.160s: no attention backend \"%.40s\"%s", fields->problem, value,
                   tni_words_offer(value, names, TN_BACKEND_COUNT - 1, hint));
}

tn_status tni_attention_parse(tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err)
{
    sizes s = {.pool = -1, .out = dtype};
    tn_attention_op *at = TN_PARAMS_MUTABLE(op, attention);
    int64_t backward = op->kind == TN_OP_ATTENTION_BACKWARD;
    tn_status status = backward ? TN_OK : tni_fields_switch(fields, "backward", &backward, err);
    if (backward)
        tni_op_init(op, tni_op_class_of(TN_OP_ATTENTION_BACKWARD));
    *at = (tn_attention_op){0};
    if (!status)
        status = parse_sizes(fields, !backward, &s, err);
    if (!status)
        status = parse_mask(fields, dtype, &s, at, err);
    if (!status)
        status = tni_fields_dtype(fields, "out", &s.out, err);
    if (!status && !backward)
        status = parse_sinks(fields, dtype, &s.sinks, err);
    if (!status)
        status = parse_numbers(fields, at, s.size, err);
    if (!status)
        status = parse_seed(fields, at, &s.device_seed, err);
    if (!status)
        status = parse_backend(fields, &at->backend, err);
    if (status)
        return status;
    s.lse |= backward;
    at->queries = s.q.count ? s.q.most : 0;
    at->keys = s.q.count && !s.page ? s.k.most : 0;
    make_usual_layouts(&s, op, dtype, op->operand);
    for (int32_t i = 0; i < op->count && !status; i++) {
        if (op->operand[i].dtype && stride_keys[i])
            status = tni_fields_strides(fields, stride_keys[i], &op->operand[i], err);
    }
    return status;
}

/* Writes lengths with the same count, maximum and sum: as many of the maximum as fit, the rest, then zeros. Writes the
 * number of rows too if the lengths do not cover all. */
static void write_pack(tni_buffer *out, const char *key, const char *rows, const pack *p)
{
    char text[128];
    int64_t fit = p->most > 0 ? p->all / p->most : 0, whole = fit < p->count ? fit : p->count;
    int64_t rest = whole < p->count ? p->all - whole * p->most : 0;
    int64_t left = p->count - whole - (rest > 0);
    int used = 0;
    if (whole > 0)
        used = snprintf(text, sizeof text, "%" PRId64 "x%" PRId64, whole, p->most);
    if (rest > 0)
        used +=
            snprintf(text + used, sizeof text - (size_t)used, "%s%" PRId64, used ? ";" : "", rest);
    if (left > 0)
        snprintf(text + used, sizeof text - (size_t)used, "%s%" PRId64 "x0", used ? ";" : "", left);
    tni_write_word(out, key, text);
    if (whole * p->most + rest < p->all)
        tni_write_integer(out, rows, p->all);
}

void tni_attention_write_place(const tn_attention_op *at, char *out, size_t size)
{
    const bool top = at->corner == TN_CORNER_TOP_LEFT;
    out[0] = '\0';
    if (at->right == 0 && at->left < 0)
        snprintf(out, size, "%s", top ? "causal" : "causal-br");
    else if (at->left >= 0 || at->right >= 0)
        snprintf(out, size, "window%s:%" PRId64 ";%" PRId64, top ? "-tl" : "", at->left, at->right);
}

static void write_mask(const tn_attention_op *at, const sizes *s, tni_buffer *out)
{
    static const char *const words[] = {"", "bool", "additive", "padding"};
    char text[96];
    tni_attention_write_place(at, text, sizeof text);
    size_t used = strlen(text);
    if (s->mask)
        snprintf(text + used, sizeof text - used, "%s%s", used ? ";" : "", words[s->mask]);
    if (text[0])
        tni_write_word(out, "mask", text);
}

static void take_sizes(const tn_op *op, sizes *s)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const tn_layout *q = &op->operand[TN_ATTENTION_Q], *k = &op->operand[TN_ATTENTION_K];
    bool forward = op->kind == TN_OP_ATTENTION;
    bool packed = forward && op->operand[TN_ATTENTION_STARTS_Q].dtype;
    *s = (sizes){.batch = at->batch,
                 .heads = at->heads,
                 .groups = at->groups,
                 .queries = at->queries,
                 .keys = at->keys,
                 .size = at->size,
                 .value_size = at->value_size,
                 .page = at->page,
                 .pool = k->shape[0],
                 .lse = op->operand[TN_ATTENTION_LSE].dtype != 0,
                 .used = forward && op->operand[TN_ATTENTION_LENGTHS].dtype,
                 .device_seed = op->operand[TN_ATTENTION_SEED].dtype,
                 .out = op->operand[TN_ATTENTION_OUT].dtype,
                 .mask_dtype = op->operand[TN_ATTENTION_MASK].dtype,
                 .sinks = forward ? op->operand[TN_ATTENTION_SINKS].dtype : (tn_dtype)0};
    if (packed) {
        s->q = (pack){at->batch, q->shape[2], at->queries};
        s->k = at->page ? s->q : (pack){at->batch, k->shape[2], at->keys};
    }
    if (s->mask_dtype)
        s->mask = s->mask_dtype == TN_BOOL ? MASK_BOOL : MASK_ADDITIVE;
}

/* Determines the memory order of Q, K, V and out: blhd if not all are dense in bhld and at least one is in blhd; and
 * whether a boolean mask is a padding mask. */
static void take_ways(const tn_op *op, sizes *s)
{
    tn_layout dense[TN_OP_OPERANDS_MAX];
    tn_dtype dtype = op->operand[TN_ATTENTION_Q].dtype;
    bool turned = false, straight = true;
    make_usual_layouts(s, op, dtype, dense);
    for (int32_t i = 0; i <= TN_ATTENTION_OUT; i++)
        straight = straight && tni_strides_same(&op->operand[i], &dense[i]);
    if (!straight) {
        s->way = TN_LAYOUT_BLHD;
        make_usual_layouts(s, op, dtype, dense);
        for (int32_t i = 0; i <= TN_ATTENTION_OUT; i++)
            turned = turned || tni_strides_same(&op->operand[i], &dense[i]);
        s->way = turned ? TN_LAYOUT_BLHD : TN_LAYOUT_BHLD;
    }
    if (s->mask == MASK_BOOL) {
        s->mask = MASK_PADDING;
        usual_mask(s, &dense[TN_ATTENTION_MASK]);
        if (!tni_strides_same(&op->operand[TN_ATTENTION_MASK], &dense[TN_ATTENTION_MASK]))
            s->mask = MASK_BOOL;
    }
}

static void write_sizes(const sizes *s, tni_buffer *out)
{
    if (!s->q.count)
        tni_write_integer(out, "b", s->batch);
    tni_write_integer(out, "h", s->heads);
    if (s->groups != s->heads)
        tni_write_integer(out, "hk", s->groups);
    if (s->q.count) {
        write_pack(out, "varlen", "rows", &s->q);
        if (!s->page && (s->k.all != s->q.all || s->k.most != s->q.most))
            write_pack(out, "varlenk", "rowsk", &s->k);
        if (s->page)
            tni_write_integer(out, "lk", s->keys);
    } else if (s->queries == s->keys) {
        tni_write_integer(out, "l", s->queries);
    } else {
        tni_write_integer(out, "lq", s->queries);
        tni_write_integer(out, "lk", s->keys);
    }
    tni_write_integer(out, "d", s->size);
    if (s->value_size != s->size)
        tni_write_integer(out, "dv", s->value_size);
    if (s->way)
        tni_write_word(out, "layout", ways[s->way]);
}

static void write_bits(tni_buffer *out, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    tni_write_word(out, key, text);
}

static void write_numbers(const tn_attention_op *at, bool device_seed, tni_buffer *out)
{
    if (at->scale != tni_attention_scale(at->size))
        tni_write_real(out, "scale", at->scale);
    if (at->softcap != 0)
        tni_write_real(out, "softcap", at->softcap);
    if (at->dropout != 0)
        tni_write_real(out, "dropout", at->dropout);
    if (device_seed)
        tni_write_word(out, "seed", "device");
    if (at->seed && !device_seed)
        write_bits(out, "seed", at->seed);
    if (at->offset && !device_seed)
        write_bits(out, "offset", at->offset);
    if (at->shift)
        tni_write_integer(out, "shift", at->shift);
}

void tni_attention_write(const tn_op *op, tni_buffer *out)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    tn_dtype dtype = op->operand[TN_ATTENTION_Q].dtype;
    tn_layout dense[TN_OP_OPERANDS_MAX];
    sizes s;
    take_sizes(op, &s);
    take_ways(op, &s);
    make_usual_layouts(&s, op, dtype, dense);
    write_sizes(&s, out);
    write_mask(at, &s, out);
    if (s.mask == MASK_ADDITIVE && s.mask_dtype != dtype)
        tni_write_word(out, "mdtype", tn_dtype_name(s.mask_dtype));
    if (s.sinks)
        tni_write_word(out, "sink", s.sinks == dtype ? "1" : tn_dtype_name(s.sinks));
    if (s.lse && op->kind == TN_OP_ATTENTION)
        tni_write_integer(out, "lse", 1);
    if (s.out != dtype)
        tni_write_word(out, "out", tn_dtype_name(s.out));
    write_numbers(at, s.device_seed, out);
    if (s.used && !s.page)
        tni_write_integer(out, "used", 1);
    if (s.page) {
        int64_t each = s.keys / s.page;
        tni_write_integer(out, "page", s.page);
        if (s.pool != s.batch * each)
            tni_write_integer(out, "pool", s.pool);
    }
    if (at->backend)
        tni_write_word(out, "backend", tni_attention_backends[at->backend]);
    for (int32_t i = 0; i < op->count; i++) {
        if (op->operand[i].dtype && stride_keys[i])
            tni_write_strides(out, stride_keys[i], &op->operand[i], &dense[i]);
    }
}
