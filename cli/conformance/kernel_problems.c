#include "kernel_problems.h"

#include <stdlib.h>

bool problem_is_random(const char *template)
{
    return strchr(template, '?') != NULL;
}

bool problem_is_nonfinite(const tn_check_aspect *aspect)
{
    return strcmp(aspect->word, "nonfinite") == 0;
}

/* State of expanding a template to text. */
typedef struct expansion {
    const char *at; /* position in the template */
    tn_dtype dtype;
    problem_draw *draw;
    void *user;
    int64_t numbers[26]; /* by letter; 0: not drawn yet */
    char *out;
    size_t used;
} expansion;

static void put(expansion *e, const char *text)
{
    size_t length = strlen(text);
    if (e->used + length < PROBLEM_TEXT)
        memcpy(e->out + e->used, text, length + 1);
    e->used += length;
}

static void put_number(expansion *e, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    put(e, text);
}

/* Reads a number of the template, `?x`, or `?x<N>`. */
static int64_t read_term(expansion *e)
{
    char *end;
    if (*e->at != '?') {
        int64_t number = strtoll(e->at, &end, 10);
        e->at = end;
        return number;
    }
    int64_t *of = &e->numbers[(e->at[1] - 'a') % 26];
    e->at += 2;
    if (*e->at == '<') {
        size_t most = (size_t)strtoull(e->at + 1, &end, 10);
        e->at = end + 1;
        *of = (int64_t)(e->draw(e->user, most - 1) + 2);
    }
    return *of;
}

static int64_t read_number(expansion *e)
{
    int64_t number = read_term(e);
    while (*e->at == '+' || *e->at == '*') {
        bool adds = *e->at++ == '+';
        int64_t term = read_term(e);
        number = adds ? number + term : number * term;
    }
    return number;
}

static void expand(expansion *e)
{
    const int64_t bytes = (e->dtype >> 8 & 0xFF) / 8;
    while (*e->at) {
        char one[] = {*e->at, '\0'};
        if (*e->at == '?') {
            put_number(e, read_number(e));
            continue;
        }
        if (*e->at == '$')
            put(e, tn_dtype_name(e->dtype));
        else if (*e->at == '&')
            put_number(e, bytes);
        else if (*e->at == '~')
            put_number(e, bytes > 1 ? bytes : 4);
        else
            put(e, one);
        e->at++;
    }
}

bool problem_write(int32_t op, const char *template, tn_dtype dtype, const char *device,
                   problem_draw *draw, void *user, char out[PROBLEM_TEXT])
{
    expansion e = {.at = template, .dtype = dtype, .draw = draw, .user = user, .out = out};
    put(&e, tn_op_name(op));
    put(&e, ":");
    put(&e, tn_dtype_name(dtype));
    put(&e, ":");
    expand(&e);
    put(&e, "@");
    put(&e, device);
    return e.used < PROBLEM_TEXT;
}
