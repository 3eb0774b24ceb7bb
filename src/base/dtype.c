#include "dtype.h"

static const struct {
    tn_dtype dtype;
    const char *word;
} rows[] = {
#define ROW(name, word, code, bits) {name, word},
    TN_DTYPE_LIST(ROW)
#undef ROW
};
enum { ROWS = sizeof rows / sizeof rows[0] };

#define WHOLE(name, word, code, bits) \
    TN_STATIC_ASSERT((bits) % 8 == 0, word " has elements of whole bytes");
TN_DTYPE_LIST(WHOLE)
#undef WHOLE

const char *tn_dtype_name(tn_dtype dtype)
{
    switch (dtype) {
#define NAME(name, word, code, bits) \
    case name: return word;
        TN_DTYPE_LIST(NAME)
#undef NAME
    default: return NULL;
    }
}

tn_dtype tni_dtype_find(const char *word)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].word, word) == 0)
            return rows[i].dtype;
    }
    return TN_DTYPE_NONE;
}

static const char *const words[] = {
#define WORD(name, word, code, bits) word,
    TN_DTYPE_LIST(WORD)
#undef WORD
};

const char *tni_dtype_nearest(const char *word)
{
    return tni_words_nearest(word, words, ROWS);
}

/* Names of PyTorch and NumPy that are not similar to Tenon's, each before Tenon's. */
static const char *const foreign[] = {
    "float",   "f32", "float32",   "f32",  "double",     "f64", "float64", "f64", "half",   "f16",
    "float16", "f16", "bfloat16",  "bf16", "uint8",      "u8",  "uint16",  "u16", "uint32", "u32",
    "uint64",  "u64", "complex64", "c64",  "complex128", "c128"};

const char *tni_dtype_offer(const char *word, char room[TNI_OFFER])
{
    enum { NAMES = sizeof foreign / sizeof foreign[0] / 2 };
    const char *names[NAMES], *near = tni_dtype_nearest(word);
    for (size_t i = 0; i < NAMES; i++)
        names[i] = foreign[2 * i];
    const char *other = near ? NULL : tni_words_nearest(word, names, NAMES);
    for (size_t i = 0; i < NAMES; i++) {
        if (other == names[i])
            near = foreign[2 * i + 1];
    }
    return near ? tni_words_hint(near, room) : tni_words_offer(word, words, ROWS, room);
}

int64_t tni_dtype_bytes(tn_dtype dtype)
{
    switch (dtype) {
#define BYTES(name, word, code, bits) \
    case name: return (bits) / 8;
        TN_DTYPE_LIST(BYTES)
#undef BYTES
    default: return 0;
    }
}
