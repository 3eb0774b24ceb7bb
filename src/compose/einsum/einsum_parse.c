/* The equation of an einsum: from text and shapes to sets of indices. */
#include "einsum.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

static const char where[] = "tn_einsum";

/* Characters of the text other than labels. */
enum { END = 0, COMMA = ',', ARROW = 1, ELLIPSIS = 2, LEAST_LABEL = 'A', LEAST_FURTHER = 0xC0 };

/* Symbols of the dimensions of "...", counted from the last: no characters of Unicode. */
#define OF_ELLIPSIS UINT32_C(0x80000000)

typedef struct parser {
    const char *text; /* the whole equation */
    const char *at;
    const tn_einsum_args *args;
    tni_einsum *sum;
    int32_t *founder; /* [indices]: the operand that has it */
    int32_t *occurs;  /* [indices]: dimensions of all operands that have it */
    int32_t known[128];
    int32_t *table; /* of the other symbols: 1 + index, 0 for a free place */
    uint32_t table_mask;
    int32_t ellipses; /* the most dimensions that "..." stands for */
    tn_error *err;
} parser;

/* One side of a comma, or out. */
typedef struct part {
    int32_t labels;
    int32_t before; /* labels before "..."; -1 without "..." */
    const char *begin;
} part;

#define FAIL(p, ...) tn_fail((p)->err, TN_INVALID_ARGUMENT, 0, where, __VA_ARGS__)

static uint32_t decode(const char *at, size_t size)
{
    static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code = (unsigned char)at[0] & masks[size];
    for (size_t i = 1; i < size; i++)
        code = code << 6 | ((unsigned char)at[i] & 0x3F);
    return code;
}

static size_t encode(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    static const unsigned char heads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    out[0] = (char)(heads[size] | code);
    return size;
}

/* "label 'j'", or "dimension -2 of '...'". */
static const char *name_of(uint32_t symbol, char out[40])
{
    if (symbol & OF_ELLIPSIS) {
        snprintf(out, 40, "dimension -%" PRIu32 " of '...'", (symbol & ~OF_ELLIPSIS) + 1);
        return out;
    }
    size_t size = (size_t)snprintf(out, 40, "label '");
    size += encode(symbol, out + size);
    memcpy(out + size, "'", 2);
    return out;
}

static bool is_label(uint32_t code)
{
    return (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z') || code >= LEAST_FURTHER;
}

/* The length of a text, at most that of a character: the equation may have many. */
static size_t first_bytes(const char *at)
{
    const char *end = memchr(at, '\0', 4);
    return end ? (size_t)(end - at) : 4;
}

/* Reads the next character that is not a space: a label, COMMA, ARROW, ELLIPSIS or END. */
static tn_status read_token(parser *p, uint32_t *out)
{
    while (*p->at == ' ')
        p->at++;
    const size_t left = first_bytes(p->at), size = tni_utf8_size(p->at, left);
    const uint32_t code = size ? decode(p->at, size) : 0;
    *out = code;
    if (!left || *p->at == ',' || (size && is_label(code))) {
        p->at += left ? size : 0;
        return TN_OK;
    }
    if (strncmp(p->at, "->", 2) == 0 || strncmp(p->at, "...", 3) == 0) {
        *out = *p->at == '-' ? ARROW : ELLIPSIS;
        p->at += *p->at == '-' ? 2 : 3;
        return TN_OK;
    }
    return FAIL(
        p, "equation \"%.200s\": expected a letter, '...', ',' or '->' at byte %zu, got %s%.*s%s",
        p->text, (size_t)(p->at - p->text), size ? "'" : "an invalid byte", (int)size, p->at,
        size ? "'" : "");
}

/* Reads labels up to the next comma, arrow or end, which is *out_end. */
static tn_status read_part(parser *p, part *out, uint32_t *out_end)
{
    *out = (part){.before = -1, .begin = p->at};
    for (;;) {
        uint32_t token;
        const tn_status status = read_token(p, &token);
        if (status)
            return status;
        if (token == END || token == COMMA || token == ARROW) {
            *out_end = token;
            return TN_OK;
        }
        if (token != ELLIPSIS) {
            out->labels++;
            continue;
        }
        if (out->before >= 0)
            return FAIL(p, "equation \"%.200s\": \"...\" is twice in \"%.*s\"; use it once",
                        p->text, (int)(p->at - out->begin), out->begin);
        out->before = out->labels;
    }
}

/* Where a symbol's index is kept: 1 + index, or 0 if the symbol is new. */
static int32_t *find_symbol(parser *p, uint32_t symbol)
{
    if (symbol < 128)
        return &p->known[symbol];
    uint32_t at = symbol * UINT32_C(0x9E3779B1) >> 7 & p->table_mask;
    while (p->table[at] && p->sum->symbol[p->table[at] - 1] != symbol)
        at = (at + 1) & p->table_mask;
    return &p->table[at];
}

/* The index of a symbol, which is added if it is new. */
static int32_t index_of(parser *p, uint32_t symbol)
{
    tni_einsum *sum = p->sum;
    int32_t *found = find_symbol(p, symbol);
    if (*found)
        return *found - 1;
    const int32_t made = sum->indices++;
    *found = made + 1;
    sum->symbol[made] = symbol;
    sum->size[made] = 1;
    return made;
}

/* Sets the indices of the dimensions of a term; `ellipsis` is how many "..." stands for. */
static void read_axes(parser *p, const part *from, int32_t term, int32_t ellipsis)
{
    const char *after = p->at;
    int32_t *axes = p->sum->axes[term], dim = 0;
    p->at = from->begin;
    for (int32_t label = 0; label <= from->labels; label++) {
        uint32_t token = END;
        for (int32_t k = ellipsis; label == from->before && k-- > 0;)
            axes[dim++] = index_of(p, OF_ELLIPSIS | (uint32_t)k);
        while (label < from->labels && read_token(p, &token) == TN_OK && token == ELLIPSIS)
            ;
        if (label < from->labels)
            axes[dim++] = index_of(p, token);
    }
    p->sum->ndim[term] = dim;
    p->at = after;
}

/* Merges the size of a dimension into that of its index. */
static tn_status merge_size(parser *p, int32_t term, int32_t dim)
{
    char name[40];
    tni_einsum *sum = p->sum;
    const int32_t index = sum->axes[term][dim];
    const int64_t size = p->args->operands[term]->shape[dim];
    for (int32_t i = 0; i < dim; i++) {
        const int64_t other = p->args->operands[term]->shape[i];
        if (sum->axes[term][i] == index && other != size)
            return FAIL(p,
                        "%s is repeated in operand %d: expected equal sizes, got %" PRId64
                        " in dimension %d and %" PRId64 " in dimension %d",
                        name_of(sum->symbol[index], name), (int)term, other, (int)i, size,
                        (int)dim);
    }
    if (size == 1 || size == sum->size[index])
        return TN_OK;
    if (sum->size[index] != 1)
        return FAIL(p,
                    "%s: expected one size, or 1 to broadcast, got %" PRId64
                    " in operand %d and %" PRId64 " in operand %d",
                    name_of(sum->symbol[index], name), sum->size[index], (int)p->founder[index],
                    size, (int)term);
    sum->size[index] = size;
    p->founder[index] = term;
    return TN_OK;
}

static tn_status read_operand(parser *p, int32_t term, uint32_t *out_end)
{
    part of;
    const int32_t ndim = p->args->operands[term]->ndim;
    tn_status status = read_part(p, &of, out_end);
    if (status)
        return status;
    if (of.before < 0 ? of.labels != ndim : of.labels > ndim)
        return FAIL(p, "operand %d has %d dimensions, and its part of \"%.200s\" %d labels%s",
                    (int)term, (int)ndim, p->text, (int)of.labels,
                    of.before < 0 ? "; name each dimension, or use \"...\" for the others" : "");
    const int32_t ellipsis = of.before < 0 ? 0 : ndim - of.labels;
    p->ellipses = ellipsis > p->ellipses ? ellipsis : p->ellipses;
    read_axes(p, &of, term, ellipsis);
    for (int32_t dim = 0; dim < ndim && !status; dim++) {
        p->occurs[p->sum->axes[term][dim]]++;
        status = merge_size(p, term, dim);
    }
    return status;
}

/* Out of an equation without "->". */
static tn_status imply_out(parser *p)
{
    tni_einsum *sum = p->sum;
    int32_t *axes = sum->axes[sum->terms], ndim = 0;
    for (int32_t k = p->ellipses; k-- > 0;)
        axes[ndim++] = index_of(p, OF_ELLIPSIS | (uint32_t)k);
    const int32_t labels_from = ndim;
    for (int32_t i = 0; i < sum->indices; i++) {
        if (sum->symbol[i] & OF_ELLIPSIS || p->occurs[i] != 1)
            continue;
        if (ndim == TN_TENSOR_NDIM_MAX)
            return FAIL(p, "equation \"%.200s\": out has more than %d dimensions", p->text,
                        TN_TENSOR_NDIM_MAX);
        int32_t at = ndim++;
        for (; at > labels_from && sum->symbol[axes[at - 1]] > sum->symbol[i]; at--)
            axes[at] = axes[at - 1];
        axes[at] = i;
    }
    sum->ndim[sum->terms] = ndim;
    return TN_OK;
}

static tn_status read_out(parser *p)
{
    part of;
    uint32_t end = END;
    char name[40];
    tni_einsum *sum = p->sum;
    const int32_t known = sum->indices;
    tn_status status = read_part(p, &of, &end);
    if (status)
        return status;
    if (end != END)
        return FAIL(p, "equation \"%.200s\": expected the end after the labels of out, got '%s'",
                    p->text, end == COMMA ? "," : "->");
    const int32_t ellipsis = of.before < 0 ? 0 : p->ellipses;
    if (of.labels + ellipsis > TN_TENSOR_NDIM_MAX || of.labels > known)
        return FAIL(p,
                    "equation \"%.200s\": out has %d labels; the operands have %d, and %d is "
                    "the most",
                    p->text, (int)of.labels, (int)known, TN_TENSOR_NDIM_MAX);
    read_axes(p, &of, sum->terms, ellipsis);
    for (int32_t i = 0; i < sum->ndim[sum->terms]; i++) {
        const int32_t index = sum->axes[sum->terms][i];
        if (index >= known)
            return FAIL(p, "equation \"%.200s\": %s of out is in no operand", p->text,
                        name_of(sum->symbol[index], name));
        for (int32_t j = 0; j < i; j++) {
            if (sum->axes[sum->terms][j] == index)
                return FAIL(p, "equation \"%.200s\": %s is twice in out; use it once", p->text,
                            name_of(sum->symbol[index], name));
        }
    }
    return TN_OK;
}

static int32_t count_parts(const char *equation)
{
    int32_t count = 1;
    for (; *equation && *equation != '-' && count < INT32_MAX; equation++)
        count += *equation == ',';
    return count;
}

static tn_status read_all(parser *p)
{
    tni_einsum *sum = p->sum;
    uint32_t end = COMMA;
    tn_status status = TN_OK;
    int32_t term = 0;
    for (; end == COMMA && !status; term++) {
        if (term == sum->terms)
            return FAIL(p, "equation \"%.200s\": expected %d operands, got %d", p->text,
                        (int)count_parts(p->text), (int)sum->terms);
        status = read_operand(p, term, &end);
    }
    if (status)
        return status;
    if (term < sum->terms)
        return FAIL(p, "equation \"%.200s\": expected %d operands, got %d", p->text, (int)term,
                    (int)sum->terms);
    return end == ARROW ? read_out(p) : imply_out(p);
}

/* Gives the dimensions of "..." characters that the equation does not use. */
static void name_ellipses(const parser *p)
{
    tni_einsum *sum = p->sum;
    uint32_t next = 'A';
    for (int32_t i = 0; i < sum->indices; i++) {
        bool used = sum->symbol[i] & OF_ELLIPSIS;
        if (!used)
            continue;
        while (used) {
            used = false;
            for (int32_t j = 0; j < sum->indices && !used; j++)
                used = sum->symbol[j] == next;
            if (used)
                next = next == 'Z' ? 'a' : next == 'z' ? LEAST_FURTHER : next + 1;
        }
        sum->symbol[i] = next;
    }
}

void tni_einsum_make_sets(tni_einsum *sum)
{
    for (int32_t term = 0; term <= sum->terms; term++) {
        uint64_t *set = tni_einsum_set(sum, term);
        for (int32_t dim = 0; dim < sum->ndim[term]; dim++) {
            const int32_t index = sum->axes[term][dim];
            sum->empty = sum->empty || sum->size[index] == 0;
            set[index / 64] |= UINT64_C(1) << index % 64;
        }
    }
}

/* Removes from each operand's set the indices along which it has one value. */
static void remove_single(const tn_einsum_args *args, tni_einsum *sum)
{
    for (int32_t term = 0; term <= sum->terms; term++) {
        uint64_t *set = tni_einsum_set(sum, term);
        for (int32_t dim = 0; dim < sum->ndim[term]; dim++) {
            const int32_t index = sum->axes[term][dim];
            if (sum->size[index] == 1 ||
                (term < sum->terms && args->operands[term]->shape[dim] == 1))
                set[index / 64] &= ~(UINT64_C(1) << index % 64);
        }
    }
}

/* Finds the indices that one operand alone has. */
static void find_alone(tni_einsum *sum)
{
    const size_t words = (size_t)sum->words;
    uint64_t *alone = tni_einsum_alone(sum, sum->terms), once, twice;
    for (size_t word = 0; word < words; word++) {
        once = twice = 0;
        for (int32_t term = 0; term <= sum->terms; term++) {
            const uint64_t set = tni_einsum_set(sum, term)[word];
            twice |= once & set;
            once |= set;
        }
        alone[word] = once & ~twice & ~tni_einsum_set(sum, sum->terms)[word];
    }
    for (int32_t term = 0; term < sum->terms; term++) {
        for (size_t word = 0; word < words; word++)
            tni_einsum_alone(sum, term)[word] = tni_einsum_set(sum, term)[word] & alone[word];
    }
    memset(alone, 0, words * sizeof *alone);
}

/* Allocates everything of an einsum of at most `most` indices. */
static tn_status alloc_sum(parser *p, size_t most, tn_error *err)
{
    tni_einsum *sum = p->sum;
    const size_t terms = (size_t)sum->terms + 1;
    sum->words = (int32_t)((most + 63) / 64);
    sum->size = tni_alloc_zeroed(most, sizeof *sum->size);
    sum->symbol = tni_alloc_zeroed(most, sizeof *sum->symbol);
    sum->sets = tni_alloc_zeroed(terms * (size_t)sum->words, sizeof *sum->sets);
    sum->alone = tni_alloc_zeroed(terms * (size_t)sum->words, sizeof *sum->alone);
    sum->ndim = tni_alloc_zeroed(terms, sizeof *sum->ndim);
    sum->axes = tni_alloc_zeroed(terms, sizeof *sum->axes);
    p->founder = tni_alloc_zeroed(2 * most, sizeof *p->founder);
    p->occurs = p->founder ? p->founder + most : NULL;
    for (p->table_mask = 15; p->table_mask < 2 * most;)
        p->table_mask = 2 * p->table_mask + 1;
    p->table = tni_alloc_zeroed((size_t)p->table_mask + 1, sizeof *p->table);
    if (!sum->size || !sum->symbol || !sum->sets || !sum->alone || !sum->ndim || !sum->axes ||
        !p->founder || !p->occurs || !p->table)
        return tni_einsum_no_memory(err, "an equation");
    return TN_OK;
}

tn_status tni_einsum_parse(const tn_einsum_args *args, tni_einsum *out, tn_error *err)
{
    size_t most = 1;
    *out = (tni_einsum){.terms = args->count};
    parser p = {.text = args->equation, .at = args->equation, .args = args, .sum = out, .err = err};
    for (int32_t i = 0; i < args->count; i++)
        most += (size_t)args->operands[i]->ndim;
    tn_status status = alloc_sum(&p, most + TN_TENSOR_NDIM_MAX, err);
    if (!status)
        status = read_all(&p);
    if (!status) {
        out->words = out->indices > 64 ? (out->indices + 63) / 64 : 1;
        name_ellipses(&p);
        tni_einsum_make_sets(out);
        remove_single(args, out);
        find_alone(out);
    } else
        tni_einsum_release(out);
    tni_release(p.founder);
    tni_release(p.table);
    return status;
}

void tni_einsum_release(tni_einsum *sum)
{
    tni_release(sum->size);
    tni_release(sum->symbol);
    tni_release(sum->sets);
    tni_release(sum->alone);
    tni_release(sum->ndim);
    tni_release(sum->axes);
    *sum = (tni_einsum){0};
}

static void write_symbol(uint32_t symbol, tni_buffer *to)
{
    char text[4];
    tni_buffer_add_part(to, text, encode(symbol, text));
}

void tni_einsum_write_axes(const tni_einsum *sum, int32_t term, tni_buffer *to)
{
    for (int32_t dim = 0; dim < sum->ndim[term]; dim++)
        write_symbol(sum->symbol[sum->axes[term][dim]], to);
}

void tni_einsum_write_set(const tni_einsum *sum, const uint64_t *set, tni_buffer *to)
{
    uint32_t last = 0;
    for (;;) {
        uint32_t next = UINT32_MAX;
        for (int32_t word = 0; word < sum->words; word++) {
            for (uint64_t bits = set[word]; bits;) {
                const uint32_t symbol = sum->symbol[word * 64 + tni_einsum_take_index(&bits)];
                next = symbol > last && symbol < next ? symbol : next;
            }
        }
        if (next == UINT32_MAX)
            return;
        write_symbol(next, to);
        last = next;
    }
}

double tni_einsum_values(const tni_einsum *sum, const uint64_t *set)
{
    double values = 1;
    for (int32_t word = 0; word < sum->words; word++) {
        for (uint64_t bits = set[word]; bits;)
            values *= (double)sum->size[word * 64 + tni_einsum_take_index(&bits)];
    }
    return values;
}
