/* A reader of safetensors files.
 *
 * The file is not trusted: every length, offset and word is checked before it is used. It may use a
 * part of the format: names and dtypes without escapes. */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include <tenon/tenon.h>

enum { ST_NDIM_MAX = 8 };

typedef struct st_tensor {
    const char *name;
    tn_dtype dtype;
    int32_t ndim;
    int64_t shape[ST_NDIM_MAX];
    const void *data; /* not aligned */
    uint64_t bytes;
} st_tensor;

/* A text of the file's metadata, as it stands there: with its escapes. */
typedef struct st_text {
    const char *key;
    const char *value;
} st_text;

/* Zeroed is empty and can be closed. */
typedef struct st_file {
    char *bytes; /* the whole file */
    uint64_t size;
    st_tensor *tensors; /* sorted by their place in the file */
    size_t tensor_count;
    st_text *texts;
    size_t text_count;
} st_file;

/* Reads the file. On failure *out is unchanged. */
tn_status st_open(const char *path, st_file *out, tn_error *err);
void st_close(st_file *file);

/* NULL if there is none of that name. */
const st_tensor *st_find(const st_file *file, const char *name);
const char *st_metadata(const st_file *file, const char *key);

#endif
