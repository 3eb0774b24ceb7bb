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

const char *tni_dtype_offer(const char *word, char room[TNI_OFFER])
{
    return tni_words_offer(word, words, ROWS, room);
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
