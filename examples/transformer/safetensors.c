/* The format: 8 bytes, the length of the header as a little-endian number; the header, a JSON object;
 * then the data of all tensors, without gaps:
 *
 *     {"__metadata__": {"KEY": "TEXT", ...},
 *      "NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 */
#include "safetensors.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, HEADER_MAX = 100000000 };

static const char where[] = "st_open";

/* The rest of the header. `end` is the first byte after it. The first failure stays in `err`. */
typedef struct reader {
    char *at;
    char *begin;
    char *end;
    bool failed;
    tn_error *err;
} reader;

/* Records that the header is wrong at the current byte. Returns false. */
static bool reject(reader *r, const char *expected)
{
    if (!r->failed)
        tn_fail(r->err, TN_INVALID_ARGUMENT, 0, where, "byte %lld of the header: expected %s",
                (long long)(r->at - r->begin), expected);
    r->failed = true;
    return false;
}

static void skip_space(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

/* Whether the next character is `c`, which is then passed. */
static bool passes(reader *r, char c)
{
    skip_space(r);
    if (r->failed || r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool need(reader *r, char c)
{
    const char expected[] = {'"', c, '"', '\0'};
    return passes(r, c) || reject(r, expected);
}

/* Returns a text, which is terminated in place; NULL on failure. Its escapes stay, if it may have
 * any. */
static char *read_text(reader *r, bool escapes)
{
    if (!passes(r, '"')) {
        reject(r, "a text in quotes");
        return NULL;
    }
    char *text = r->at;
    for (; r->at < r->end && *r->at != '"'; r->at++) {
        if ((unsigned char)*r->at < ' ' || (*r->at == '\\' && !escapes)) {
            reject(r, "no control character and no escape in a text");
            return NULL;
        }
        if (*r->at == '\\')
            r->at++;
    }
    if (r->at >= r->end) {
        r->at = r->end;
        reject(r, "the end of a text");
        return NULL;
    }
    *r->at++ = '\0';
    return text;
}

/* Reads a number that is at least 0, without a sign, fraction or exponent. */
static bool read_number(reader *r, int64_t *out)
{
    int64_t number = 0;
    skip_space(r);
    const char *first = r->at;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        const int digit = *r->at - '0';
        if (number > (INT64_MAX - digit) / 10)
            return reject(r, "a smaller number");
        number = number * 10 + digit;
    }
    if (r->at == first || (*first == '0' && r->at - first > 1))
        return reject(r, "a number");
    *out = number;
    return true;
}

/* Reads a list of numbers. */
static bool read_numbers(reader *r, int32_t most, int64_t *out, int32_t *out_count)
{
    int32_t count = 0;
    if (!need(r, '['))
        return false;
    if (!passes(r, ']')) {
        do {
            if (count == most)
                return reject(r, "a shorter list");
            if (!read_number(r, &out[count++]))
                return false;
        } while (passes(r, ','));
        if (!need(r, ']'))
            return false;
    }
    *out_count = count;
    return true;
}

static bool read_dtype(reader *r, tn_dtype *out)
{
    static const struct {
        const char *word;
        tn_dtype dtype;
    } dtypes[] = {{"F64", TN_F64}, {"F32", TN_F32},  {"F16", TN_F16}, {"BF16", TN_BF16},
                  {"I64", TN_I64}, {"I32", TN_I32},  {"I16", TN_I16}, {"I8", TN_I8},
                  {"U8", TN_U8},   {"BOOL", TN_BOOL}};
    const char *word = read_text(r, false);
    for (size_t i = 0; word && i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (strcmp(word, dtypes[i].word) == 0) {
            *out = dtypes[i].dtype;
            return true;
        }
    }
    return reject(r, "a dtype: F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL");
}

/* The size of a tensor in bytes; false if it exceeds 63 bits. */
static bool count_bytes(const st_tensor *tensor, uint64_t *out)
{
    uint64_t bytes = (tensor->dtype >> 8 & 0xFF) / 8; /* tn_dtype has the bits in its second byte */
    for (int32_t i = 0; i < tensor->ndim; i++) {
        const uint64_t size = (uint64_t)tensor->shape[i];
        if (size > 0 && bytes > (uint64_t)INT64_MAX / size)
            return false;
        bytes *= size;
    }
    *out = bytes;
    return true;
}

/* Reads the object that describes a tensor. `data` is the first byte after the header. */
static bool read_tensor(reader *r, const char *data, uint64_t data_bytes, st_tensor *out)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
    int64_t offsets[2];
    int32_t count = 0, seen = 0;
    if (!need(r, '{'))
        return false;
    do {
        const char *key = read_text(r, false);
        if (!key || !need(r, ':'))
            return false;
        const int32_t bit = strcmp(key, "dtype") == 0          ? DTYPE
                            : strcmp(key, "shape") == 0        ? SHAPE
                            : strcmp(key, "data_offsets") == 0 ? OFFSETS
                                                               : 0;
        if (bit == 0 || (seen & bit))
            return reject(r, "dtype, shape and data_offsets, each once");
        seen |= bit;
        if ((bit == DTYPE && !read_dtype(r, &out->dtype)) ||
            (bit == SHAPE && !read_numbers(r, ST_NDIM_MAX, out->shape, &out->ndim)) ||
            (bit == OFFSETS && !read_numbers(r, 2, offsets, &count)))
            return false;
    } while (passes(r, ','));
    if (!need(r, '}'))
        return false;
    if (seen != (DTYPE | SHAPE | OFFSETS) || count != 2)
        return reject(r, "dtype, shape and two data_offsets");
    if (!count_bytes(out, &out->bytes) || offsets[1] < offsets[0] ||
        (uint64_t)offsets[1] > data_bytes || (uint64_t)(offsets[1] - offsets[0]) != out->bytes)
        return reject(r, "offsets within the file that fit the shape");
    out->data = data + offsets[0];
    return true;
}

/* Makes room for one more element. The number of elements is bounded by the header's length. */
static bool grow(void **array, size_t count, size_t size)
{
    if (count & (count - 1)) /* there is room up to the next power of two */
        return true;
    void *larger = realloc(*array, (count ? 2 * count : 1) * size);
    if (larger)
        *array = larger;
    return larger != NULL;
}

static bool read_metadata(reader *r, st_file *file)
{
    if (!need(r, '{'))
        return false;
    if (passes(r, '}'))
        return true;
    do {
        st_text text = {.key = read_text(r, true)};
        if (!text.key || !need(r, ':') || !(text.value = read_text(r, true)))
            return false;
        if (!grow((void **)&file->texts, file->text_count, sizeof text))
            return reject(r, "more memory");
        file->texts[file->text_count++] = text;
    } while (passes(r, ','));
    return need(r, '}');
}

static bool read_entry(reader *r, st_file *file)
{
    st_tensor tensor = {.name = read_text(r, false)};
    const uint64_t data_bytes = file->size - (uint64_t)(r->end - file->bytes);
    if (!tensor.name || !need(r, ':'))
        return false;
    if (strcmp(tensor.name, "__metadata__") == 0)
        return read_metadata(r, file);
    if (!read_tensor(r, r->end, data_bytes, &tensor))
        return false;
    if (!grow((void **)&file->tensors, file->tensor_count, sizeof tensor))
        return reject(r, "more memory");
    file->tensors[file->tensor_count++] = tensor;
    return true;
}

static int compare_places(const void *a, const void *b)
{
    const st_tensor *left = a, *right = b;
    if (left->data != right->data)
        return (const char *)left->data < (const char *)right->data ? -1 : 1;
    return left->bytes < right->bytes ? -1 : left->bytes > right->bytes;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The data of the tensors must follow each other up to the end of the file, and names differ. */
static tn_status check_tensors(st_file *file, const char *data, tn_error *err)
{
    tn_status status = TN_OK;
    const char **names = malloc((file->tensor_count + 1) * sizeof *names);
    if (!names)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, where, "no memory for the names of the tensors");
    if (file->tensor_count > 0)
        qsort(file->tensors, file->tensor_count, sizeof file->tensors[0], compare_places);
    for (size_t i = 0; i < file->tensor_count && !status; i++) {
        names[i] = file->tensors[i].name;
        if (file->tensors[i].data != data)
            status =
                tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                        "tensor %s: expected its data after that of the tensor before it, got a "
                        "gap or an overlap",
                        names[i]);
        data += file->tensors[i].bytes;
    }
    if (!status && data != file->bytes + file->size)
        status =
            tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "expected no data after the last tensor");
    if (!status)
        qsort(names, file->tensor_count, sizeof *names, compare_names);
    for (size_t i = 1; i < file->tensor_count && !status; i++) {
        if (strcmp(names[i - 1], names[i]) == 0)
            status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "two tensors have the name %s",
                             names[i]);
    }
    free(names);
    return status;
}

static tn_status read_header(st_file *file, tn_error *err)
{
    uint64_t length = 0;
    if (file->size < LENGTH_BYTES)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "expected a safetensors file, got %llu bytes",
                       (unsigned long long)file->size);
    for (int i = LENGTH_BYTES; i-- > 0;)
        length = length << 8 | (unsigned char)file->bytes[i];
    if (length > HEADER_MAX || length > file->size - LENGTH_BYTES)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "expected a header within the file of %llu bytes, got a length of %llu",
                       (unsigned long long)file->size, (unsigned long long)length);
    char *begin = file->bytes + LENGTH_BYTES;
    reader r = {.at = begin, .begin = begin, .end = begin + length, .err = err};
    if (need(&r, '{') && !passes(&r, '}')) {
        while (read_entry(&r, file) && passes(&r, ','))
            continue;
        need(&r, '}');
    }
    skip_space(&r);
    if (!r.failed && r.at < r.end)
        reject(&r, "the end of the header");
    return r.failed ? TN_INVALID_ARGUMENT : check_tensors(file, r.end, err);
}

/* Reads a file whole: fread rather than a mapping, so that this is plain C. */
static tn_status read_bytes(const char *path, st_file *out, tn_error *err)
{
    size_t room = 1 << 20;
    FILE *file = fopen(path, "rb");
    if (!file)
        return tn_fail(err, TN_NOT_FOUND, 0, where, "%s: cannot be opened", path);
    tn_status status = TN_OK;
    do {
        char *larger = realloc(out->bytes, room *= 2);
        if (!larger) {
            status =
                tn_fail(err, TN_OUT_OF_MEMORY, 0, where, "%s: no memory for %zu bytes", path, room);
            break;
        }
        out->bytes = larger;
        out->size += fread(out->bytes + out->size, 1, room - (size_t)out->size, file);
    } while (out->size == room);
    if (!status && ferror(file))
        status = tn_fail(err, TN_IO, 0, where, "%s: cannot be read", path);
    fclose(file);
    return status;
}

tn_status st_open(const char *path, st_file *out, tn_error *err)
{
    st_file file = {0};
    tn_status status = read_bytes(path, &file, err);
    if (!status)
        status = read_header(&file, err);
    if (status)
        st_close(&file);
    else
        *out = file;
    return status;
}

void st_close(st_file *file)
{
    free(file->bytes);
    free(file->tensors);
    free(file->texts);
    memset(file, 0, sizeof *file);
}

const st_tensor *st_find(const st_file *file, const char *name)
{
    for (size_t i = 0; i < file->tensor_count; i++) {
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    }
    return NULL;
}

const char *st_metadata(const st_file *file, const char *key)
{
    for (size_t i = 0; i < file->text_count; i++) {
        if (strcmp(file->texts[i].key, key) == 0)
            return file->texts[i].value;
    }
    return NULL;
}
