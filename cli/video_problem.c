#include "video_problem.h"

#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "attention-video:";

static const char *const kinds[] = {"sliding-tile", "sparse", NULL};
static const char *const layouts[] = {"bhld", "blhd", NULL};

static const char fields_known[] =
    "kind, canvas, tile, window, keep, sparsity, gate, text, b, h, hk, d, scale, layout";

bool video_problem_is(const char *text)
{
    return strncmp(text, prefix, sizeof prefix - 1) == 0;
}

static tn_status reject(const char *key, const char *expected, const char *value, tn_error *err)
{
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, "", "%s: expected %s, got \"%.40s\"", key, expected,
                   value);
}

/* Parses numbers that are separated by `separator`: exactly `count`. Returns where they end, or NULL. */
static const char *parse_numbers(const char *text, char separator, int32_t count, int64_t *out)
{
    for (int32_t i = 0; i < count; i++) {
        char *end = NULL;
        errno = 0;
        out[i] = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : -1;
        if (!end || errno || (i + 1 < count && *end != separator))
            return NULL;
        text = end + (i + 1 < count);
    }
    return text;
}

static tn_status parse_box(const char *key, const char *value, int64_t *out, tn_error *err)
{
    const char *end = parse_numbers(value, 'x', 3, out);
    return end && !*end ? TN_OK : reject(key, "three sizes such as 30x48x80", value, err);
}

static tn_status parse_number(const char *key, const char *value, int64_t *out, tn_error *err)
{
    const char *end = parse_numbers(value, 0, 1, out);
    return end && !*end ? TN_OK : reject(key, "a number", value, err);
}

static tn_status parse_real(const char *key, const char *value, double *out, tn_error *err)
{
    char *end = NULL;
    *out = strtod(value, &end);
    return end != value && !*end ? TN_OK : reject(key, "a number", value, err);
}

static tn_status parse_word(const char *key, const char *value, const char *const *words,
                            int32_t *out, tn_error *err)
{
    for (int32_t i = 0; words[i]; i++) {
        if (strcmp(words[i], value) == 0) {
            *out = i;
            return TN_OK;
        }
    }
    return reject(key, words == kinds ? "sliding-tile or sparse" : "bhld or blhd", value, err);
}

/* Parses "3x3x3" or "3x3x3;1x5x5": a window for all heads, or one for each. */
static tn_status parse_windows(const char *value, video_problem *of, tn_error *err)
{
    size_t count = 1;
    for (const char *at = value; *at; at++)
        count += *at == ';';
    free(of->windows);
    of->windows = malloc(3 * count * sizeof *of->windows);
    if (!of->windows)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "", "out of memory for a problem");
    const char *at = value;
    for (size_t i = 0; i < count; i++) {
        at = parse_numbers(at, 'x', 3, of->windows + 3 * i);
        if (!at || (*at && *at != ';'))
            return reject("window", "three sizes such as 3x3x3, or such windows separated by ;",
                          value, err);
        at += *at == ';';
    }
    of->args.windows = of->windows;
    of->args.window_count = (int32_t)count;
    return TN_OK;
}

/* Parses one field; `field` is "key=value", which it divides. */
static tn_status parse_field(char *field, video_problem *of, tn_error *err)
{
    char *value = strchr(field, '=');
    const struct {
        const char *key;
        int64_t *to;
    } numbers[] = {{"b", &of->batch},         {"h", &of->heads},   {"hk", &of->groups},
                   {"d", &of->size},          {"gate", &of->gate}, {"keep", &of->args.keep},
                   {"text", &of->text_tokens}};
    if (!value)
        return reject("a field", "key=value", field, err);
    *value++ = '\0';
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(field, numbers[i].key) == 0)
            return parse_number(field, value, numbers[i].to, err);
    }
    if (strcmp(field, "kind") == 0)
        return parse_word(field, value, kinds, &of->args.kind, err);
    if (strcmp(field, "layout") == 0)
        return parse_word(field, value, layouts, &of->args.layout, err);
    if (strcmp(field, "canvas") == 0)
        return parse_box(field, value, of->canvas, err);
    if (strcmp(field, "tile") == 0) {
        of->args.tile = of->tile;
        return parse_box(field, value, of->tile, err);
    }
    if (strcmp(field, "window") == 0)
        return parse_windows(value, of, err);
    if (strcmp(field, "sparsity") == 0)
        return parse_real(field, value, &of->args.sparsity, err);
    if (strcmp(field, "scale") == 0) {
        of->args.set = TN_ATTENTION_SET_SCALE;
        return parse_real(field, value, &of->args.scale, err);
    }
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, "", "no field \"%.40s\"; there are: %s", field,
                   fields_known);
}

static tn_status parse_dtype(const char *word, tn_dtype *out, tn_error *err)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        *out = dtypes[i];
        if (strcmp(word, tn_dtype_name(*out)) == 0)
            return TN_OK;
    }
    return reject("attention-video", "the dtype f32, f64, f16 or bf16", word, err);
}

/* Sets the shapes of tensors without data. */
static tn_status place_tensors(video_problem *of, tn_error *err)
{
    const int64_t one = 1, tokens = of->canvas[0] * of->canvas[1] * of->canvas[2];
    const int32_t length = of->args.layout == TN_LAYOUT_BLHD ? 1 : 2;
    tn_tensor like;
    const tn_status status = tn_tensor_create(of->device, of->dtype, &one, 1, &like, err);
    if (status)
        return status;
    for (int32_t n = 0; n < 2; n++) {
        of->shapes[n][0] = of->batch;
        of->shapes[n][length] = tokens + of->text_tokens;
        of->shapes[n][3 - length] = n ? of->groups : of->heads;
        of->shapes[n][3] = of->size;
        *(n ? &of->like_k : &of->like_q) = (tn_tensor){.device_type = like.device_type,
                                                       .device_id = like.device_id,
                                                       .ndim = 4,
                                                       .dtype = of->dtype,
                                                       .shape = of->shapes[n]};
    }
    tn_tensor_release(&like);
    of->args.q = of->args.out = &of->like_q;
    of->args.k = of->args.v = &of->like_k;
    of->args.gate = of->gate ? &of->like_q : NULL;
    of->args.canvas = of->canvas;
    return TN_OK;
}

/* Splits "DTYPE:FIELDS@DEVICE", a copy of the rest of `text`, which it changes. */
static tn_status parse_fields(const char *text, char *rest, video_problem *of, tn_error *err)
{
    char *at = strchr(rest, '@'), *fields = strchr(rest, ':');
    if (at)
        *at++ = '\0';
    if (!fields || (at && fields > at))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "",
                       "expected attention-video:DTYPE:FIELD=VALUE,...[@DEVICE], such as "
                       "attention-video:f32:canvas=30x48x80,window=3x3x3,h=24,d=128, got \"%.80s\"",
                       text);
    *fields++ = '\0';
    tn_status status = parse_dtype(rest, &of->dtype, err);
    const size_t room = strlen(text) + 64;
    of->text = malloc(room);
    if (!status && !of->text)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "", "out of memory for a problem");
    if (!status)
        status = tn_device_get(at ? at : "cpu", &of->device, err);
    if (!status)
        snprintf(of->text, room, "%s%s:%s@%s", prefix, rest, fields, tn_device_id(of->device));
    for (char *field = fields; field && !status;) {
        char *next = strchr(field, ',');
        if (next)
            *next++ = '\0';
        status = parse_field(field, of, err);
        field = next;
    }
    if (!status && !of->canvas[0] && !of->text_tokens)
        status = reject("canvas", "three sizes such as 30x48x80", "none", err);
    if (!status && (!of->heads || !of->size))
        status = reject(of->heads ? "d" : "h", "a number above 0", "none", err);
    of->groups = of->groups ? of->groups : of->heads;
    return status ? status : place_tensors(of, err);
}

tn_status video_problem_create(const char *text, video_problem **out, tn_error *err)
{
    const size_t size = strlen(text + sizeof prefix - 1) + 1;
    video_problem *of = calloc(1, sizeof *of + size);
    if (!of)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "", "out of memory for a problem");
    char *rest = memcpy(of + 1, text + sizeof prefix - 1, size);
    of->args.struct_size = sizeof of->args;
    of->info.struct_size = sizeof of->info;
    of->batch = 1;
    tn_status status = parse_fields(text, rest, of, err);
    if (!status)
        status = tn_attention_video_explain(NULL, &of->args, &of->plan, err);
    if (!status)
        status = tn_attention_video_info_get(of->plan, &of->info, err);
    if (status)
        video_problem_release(of);
    else
        *out = of;
    return status;
}

void video_problem_release(video_problem *of)
{
    if (!of)
        return;
    tn_attention_video_plan_release(of->plan);
    free(of->windows);
    free(of->text);
    free(of);
}
