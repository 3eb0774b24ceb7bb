/* Attention helpers for authors of kernels that can read the tables in memory: which keys a query
 * sees, where sequences are, which page a key is on, which weights dropout keeps.
 *
 *     tn_sequence s;
 *     if (tn_attention_check(run, err))
 *         return TN_INVALID_ARGUMENT;
 *     for (int64_t b = 0; b < at->batch; b++) {
 *         tn_attention_sequence(run, b, &s, NULL);
 *         for (int64_t i = 0; i < s.queries; i++) {
 *             int64_t first, count = tn_attention_seen(at, i, s.queries, s.keys, &first);
 *             ...
 *
 * A kernel must skip keys that are excluded for a query, by position or by a mask: K and V may
 * contain NaN and infinity there, and multiplying these by a weight of 0 gives NaN. A kernel must
 * not skip keys that are not excluded, even if their weight is 0. See
 * op/attention.h.
 *
 * Thread-safety: functions of their arguments only; callable from any thread. */
#ifndef TENON_MODULE_ATTENTION_H
#define TENON_MODULE_ATTENTION_H

#include "kernel.h"
#include "op/attention.h"
#include "philox.h"

TN_BEGIN_DECLS

/* The position of a sequence. Its query i is row first_query + i of [batch] of Q, OUT and LSE; its
 * key j is row first_key + j of [batch] of K and V, unless it is on a page. */
typedef struct tn_sequence {
    int64_t batch; /* 0 if packed */
    int64_t first_query;
    int64_t first_key;
    int64_t queries;
    int64_t keys;
} tn_sequence;

/* Returns how many of the `keys` keys query i of a sequence sees by position, and the first of them
 * in *out_first. */
static inline int64_t tn_attention_seen(const tn_attention_op *at, int64_t i, int64_t queries,
                                        int64_t keys, int64_t *out_first)
{
    int64_t place = i + at->shift + (at->corner == TN_CORNER_BOTTOM_RIGHT ? keys - queries : 0);
    int64_t first = at->left < 0 || place <= at->left ? 0 : place - at->left;
    int64_t end = at->right < 0 || at->right >= keys - place ? keys : place + at->right + 1;
    *out_first = first;
    return end > first ? end - first : 0;
}

static inline int tn_attention_has_(const tn_run *run, int32_t operand)
{
    return run->op->operand[operand].dtype != TN_DTYPE_NONE;
}

/* Returns the parameters of a run, with the seed and offset of SEED if it is present. */
static inline tn_attention_op tn_attention_params(const tn_run *run)
{
    tn_attention_op at = *TN_PARAMS(run->op, attention);
    if (tn_attention_has_(run, TN_ATTENTION_SEED)) {
        uint64_t given[2];
        memcpy(given, tn_operand(run, TN_ATTENTION_SEED), sizeof given);
        at.seed = given[0];
        at.offset = given[1];
    }
    return at;
}

/* Reads an element of an i32 table, with any alignment. */
static inline int64_t tn_attention_entry_(const tn_run *run, int32_t operand, int64_t i, int64_t j)
{
    const tn_layout *layout = &run->op->operand[operand];
    const char *first = (const char *)tn_operand(run, operand);
    int64_t offset = i * layout->stride[0] + (layout->rank > 1 ? j * layout->stride[1] : 0);
    int32_t value;
    memcpy(&value, first + offset * (int64_t)sizeof value, sizeof value);
    return value;
}

/* Reads entry i of a one-dimensional table; fails unless it is from `least` to `most`. */
static inline tn_status tn_attention_take_(const tn_run *run, int32_t operand, const char *name,
                                           int64_t i, int64_t least, int64_t most, int64_t *out,
                                           tn_error *err)
{
    int64_t found = tn_attention_entry_(run, operand, i, 0);
    if (found < least || found > most)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, run->row->name,
                       "%s[%lld]: expected %lld to %lld, got %lld", name, (long long)i,
                       (long long)least, (long long)most, (long long)found);
    *out = found;
    return TN_OK;
}

/* Reads where sequence b begins among `total` rows, and its number of rows, at most `most`. */
static inline tn_status tn_attention_span_(const tn_run *run, int32_t operand, const char *name,
                                           int64_t b, int64_t total, int64_t most,
                                           int64_t *out_first, int64_t *out_count, tn_error *err)
{
    int64_t first = 0, end = 0;
    tn_status status = tn_attention_take_(run, operand, name, b, 0, total, &first, err);
    if (status)
        return status;
    most = most < total - first ? most : total - first;
    status = tn_attention_take_(run, operand, name, b + 1, first, first + most, &end, err);
    if (status)
        return status;
    *out_first = first;
    *out_count = end - first;
    return TN_OK;
}

/* Reads sequence b of a run of attention or attention-backward. Fails with TN_INVALID_ARGUMENT if
 * the starts decrease, are out of range or are farther apart than the op says, or if a length
 * exceeds the number of keys. */
static inline tn_status tn_attention_sequence(const tn_run *run, int64_t b, tn_sequence *out,
                                              tn_error *err)
{
    const tn_op *op = run->op;
    const tn_attention_op *at = TN_PARAMS(op, attention);
    tn_sequence s = {b, 0, 0, at->queries, at->keys};
    tn_status status = TN_OK;
    if (tn_attention_has_(run, TN_ATTENTION_STARTS_Q)) {
        s.batch = 0;
        status = tn_attention_span_(run, TN_ATTENTION_STARTS_Q, "starts_q", b,
                                    op->operand[TN_ATTENTION_Q].shape[2], at->queries,
                                    &s.first_query, &s.queries, err);
    }
    if (!status && tn_attention_has_(run, TN_ATTENTION_STARTS_K))
        status = tn_attention_span_(run, TN_ATTENTION_STARTS_K, "starts_k", b,
                                    op->operand[TN_ATTENTION_K].shape[2], at->keys, &s.first_key,
                                    &s.keys, err);
    if (!status && tn_attention_has_(run, TN_ATTENTION_LENGTHS))
        status =
            tn_attention_take_(run, TN_ATTENTION_LENGTHS, "lengths", b, 0, s.keys, &s.keys, err);
    if (!status)
        *out = s;
    return status;
}

/* Reads the page number (index in the first dimension of K and V) of the keys of sequence b from p
 * * page on. Fails with TN_INVALID_ARGUMENT if there is no such page. */
static inline tn_status tn_attention_page(const tn_run *run, int64_t b, int64_t p, int64_t *out,
                                          tn_error *err)
{
    int64_t last = run->op->operand[TN_ATTENTION_K].shape[0] - 1;
    int64_t found = tn_attention_entry_(run, TN_ATTENTION_PAGES, b, p);
    if (found < 0 || found > last)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, run->row->name,
                       "pages[%lld][%lld]: expected 0 to %lld, got %lld", (long long)b,
                       (long long)p, (long long)last, (long long)found);
    *out = found;
    return TN_OK;
}

/* Checks all sequences of a run and the pages of the keys that are seen. Table entries of pages
 * whose keys no query sees by position are not checked. If this succeeds, the two functions above
 * do not fail. */
static inline tn_status tn_attention_check(const tn_run *run, tn_error *err)
{
    const tn_attention_op *at = TN_PARAMS(run->op, attention);
    tn_status status = TN_OK;
    for (int64_t b = 0; b < at->batch && !status; b++) {
        tn_sequence s;
        int64_t first, last, page;
        status = tn_attention_sequence(run, b, &s, err);
        if (status || at->page == 0 || s.queries == 0)
            continue;
        (void)tn_attention_seen(at, 0, s.queries, s.keys, &first);
        int64_t end = tn_attention_seen(at, s.queries - 1, s.queries, s.keys, &last);
        end = end + last < s.keys ? end + last : s.keys;
        for (int64_t j = first; j < end && !status; j += at->page - j % at->page)
            status = tn_attention_page(run, b, j / at->page, &page, err);
    }
    return status;
}

/* Returns 1 if dropout keeps the weight of key j for query i of head h in sequence b. `at` is from
 * tn_attention_params. */
static inline int tn_attention_keeps(const tn_attention_op *at, int64_t b, int64_t h, int64_t i,
                                     int64_t j)
{
    uint64_t row = ((uint64_t)b * (uint64_t)at->heads + (uint64_t)h) * (uint64_t)at->queries;
    uint64_t place = (row + (uint64_t)i) * (uint64_t)at->keys + (uint64_t)j;
    uint32_t words[TN_PHILOX_WORDS];
    tn_philox_block(at->seed, 0, at->offset + place / TN_PHILOX_WORDS, words);
    return (double)tn_philox_uniform(words[place % TN_PHILOX_WORDS]) >= at->dropout;
}

TN_END_DECLS

#endif
