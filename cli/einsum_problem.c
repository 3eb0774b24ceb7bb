#include "einsum_problem.h"

#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "einsum:";

static tn_status reject_shape(const char *at, const char *expected, tn_error *err)
{
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, "", "SHAPES: expected %s, got \"%.40s\"", expected,
                   at);
}

/* Parses "10x20"; "" is a scalar. Returns the first character after it in *out_end. */
static tn_status parse_shape(const char *text, einsum_operands *out, const char **out_end,
                             tn_error *err)
{
    int64_t *shape = out->shapes[out->count];
    int32_t ndim = 0;
    if (out->count == EINSUM_OPERANDS_MOST)
        return reject_shape(text, "at most 4096 shapes", err);
    while (*text && *text != ',') {
        char *end = NULL;
        errno = 0;
        const long long size = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : -1;
        if (size < 0 || errno || ndim == TN_TENSOR_NDIM_MAX)
            return reject_shape(text, "at most 32 sizes such as 10x20", err);
        shape[ndim++] = size;
        text = end;
        if (*text == 'x' && text[1] && text[1] != ',')
            text++;
        else if (*text && *text != ',')
            return reject_shape(text, "x and a size, or a comma", err);
    }
    out->tensors[out->count] =
        (tn_tensor){.device_type = TN_DLPACK_CPU, .ndim = ndim, .dtype = TN_F32, .shape = shape};
    out->list[out->count] = &out->tensors[out->count];
    out->count++;
    *out_end = text;
    return TN_OK;
}

tn_status einsum_operands_parse(const char *text, einsum_operands *out, tn_error *err)
{
    tn_status status = TN_OK;
    for (bool more = true; more && !status; text += more) {
        status = parse_shape(text, out, &text, err);
        more = *text == ',';
    }
    return status;
}

bool einsum_problem_is(const char *text)
{
    return strncmp(text, prefix, sizeof prefix - 1) == 0;
}

static tn_status parse_dtype(const char *word, tn_dtype *out, tn_error *err)
{
    static const tn_dtype dtypes[] = {TN_F64, TN_F32, TN_F16, TN_BF16, TN_C64, TN_C128, TN_I8,
                                      TN_I16, TN_I32, TN_I64, TN_U8,   TN_U16, TN_U32,  TN_U64};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        *out = dtypes[i];
        if (strcmp(word, tn_dtype_name(*out)) == 0)
            return TN_OK;
    }
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, "",
                   "einsum: expected f64, f32, f16, bf16, c64, c128 or an integer such as i32 as "
                   "dtype, got \"%.40s\"",
                   word);
}

/* Puts the operands on the device. */
static tn_status place_operands(einsum_problem *of, tn_error *err)
{
    tn_tensor like;
    const int64_t one = 1;
    const tn_status status = tn_tensor_create(of->device, of->dtype, &one, 1, &like, err);
    for (int32_t i = 0; i < of->operands.count && !status; i++) {
        of->operands.tensors[i].device_type = like.device_type;
        of->operands.tensors[i].device_id = like.device_id;
        of->operands.tensors[i].dtype = of->dtype;
    }
    if (!status)
        tn_tensor_release(&like);
    return status;
}

/* Splits "DTYPE:EQUATION:SHAPES@DEVICE", a copy of the rest of `text`, which it changes. */
static tn_status parse_fields(const char *text, char *fields, einsum_problem *of, tn_error *err)
{
    char *at = strchr(fields, '@'), *equation = strchr(fields, ':');
    char *shapes = equation ? strchr(equation + 1, ':') : NULL;
    if (at)
        *at++ = '\0';
    if (!shapes || (at && shapes > at) || strchr(shapes + 1, ':'))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "",
                       "expected einsum:DTYPE:EQUATION:SHAPES[@DEVICE], such as "
                       "einsum:f32:ij,jk->ik:10x20,20x30, got \"%.80s\"",
                       text);
    *equation++ = *shapes++ = '\0';
    of->equation = equation;
    tn_status status = parse_dtype(fields, &of->dtype, err);
    if (!status)
        status = einsum_operands_parse(shapes, &of->operands, err);
    if (!status)
        status = tn_device_get(at ? at : "best", &of->device, err);
    if (status)
        return status;
    const char *id = tn_device_id(of->device), *dtype = tn_dtype_name(of->dtype);
    const size_t room =
        sizeof prefix + strlen(dtype) + strlen(equation) + strlen(shapes) + strlen(id) + 4;
    of->text = malloc(room);
    if (!of->text)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "", "out of memory for a problem");
    snprintf(of->text, room, "%s%s:%s:%s@%s", prefix, dtype, equation, shapes, id);
    return place_operands(of, err);
}

tn_status einsum_problem_create(const char *text, einsum_problem **out, tn_error *err)
{
    const size_t size = strlen(text + sizeof prefix - 1) + 1;
    einsum_problem *of = calloc(1, sizeof *of + size);
    if (!of)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "", "out of memory for a problem");
    char *fields = memcpy(of + 1, text + sizeof prefix - 1, size);
    tn_status status = parse_fields(text, fields, of, err);
    if (!status)
        status =
            tn_einsum_explain(NULL,
                              TN_ARGS(einsum, .equation = of->equation,
                                      .operands = of->operands.list, .count = of->operands.count),
                              &of->path, err);
    of->info.struct_size = sizeof of->info;
    if (!status)
        status = tn_einsum_path_info_get(of->path, &of->info, err);
    if (status)
        einsum_problem_release(of);
    else
        *out = of;
    return status;
}

void einsum_problem_release(einsum_problem *of)
{
    if (!of)
        return;
    tn_einsum_path_release(of->path);
    free(of->text);
    free(of);
}
