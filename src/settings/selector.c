#include "base/utf8.h"
#include "base/words.h"
#include "library.h"
#include "rules.h"

static const char where[] = "selector";
static const char form[] = "the form is [op/][kind:]name";

static const char *const kinds[TNI_SELECT_COUNT] = {
    [TNI_SELECT_ANY] = "",
    [TNI_SELECT_KERNEL] = "kernel",
    [TNI_SELECT_LIBRARY] = "library",
    [TNI_SELECT_BACKEND] = "backend",
    [TNI_SELECT_PLATFORM] = "platform",
    [TNI_SELECT_LANGUAGE] = "language",
};

/* `text` as quoted in messages. Byte positions are preserved in a text that fits a selector. */
static const char *quote_text(const char *text, char room[TNI_SELECTOR_MAX])
{
    tn_text_fit(room, TNI_SELECTOR_MAX, text);
    return room;
}

static tn_status no_part(const char *text, const char *part, tn_error *err)
{
    char room[TNI_SELECTOR_MAX];
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "\"%s\" has no %s; %s",
                   quote_text(text, room), part, form);
}

static tn_status no_kind(const char *text, size_t at, const char *word, tn_error *err)
{
    char room[TNI_SELECTOR_MAX], hint[TNI_HINT];
    const char *whole = quote_text(text, room);
    const char *nearest = tni_words_nearest(word, kinds + 1, TNI_SELECT_COUNT - 1);
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "\"%s\": unknown kind \"%.*s\": expected kernel, library, backend, platform or "
                   "language%s",
                   whole, (int)strlen(word), whole + at, tni_words_hint(nearest, hint));
}

static tn_status bad_character(const char *text, size_t at, bool is_op, tn_error *err)
{
    char room[TNI_SELECTOR_MAX];
    const char *whole = quote_text(text, room);
    const size_t size = tni_utf8_size(whole + at, strlen(whole + at));
    return tn_fail(
        err, TN_INVALID_ARGUMENT, 0, where,
        "\"%s\": invalid character %zu, '%.*s': %s begins with a letter or digit and consists of "
        "letters, digits and %s; %s",
        whole, at + 1, size > 0 ? (int)size : 1, whole + at, is_op ? "an op" : "a name",
        is_op ? "- _" : "- _ ., and may end in *", form);
}

/* `at` is the position of the word in `text`. */
static tn_status check_word(const char *text, size_t at, const char *word, bool is_op,
                            tn_error *err)
{
    for (size_t i = 0; word[i]; i++) {
        char c = word[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!plain && (i == 0 || !strchr(is_op ? "-_" : "-_.", c)))
            return bad_character(text, at + i, is_op, err);
    }
    return TN_OK;
}

/* Returns TNI_SELECT_COUNT for an unknown word. */
static int32_t kind_of(const char *word)
{
    int32_t kind = TNI_SELECT_KERNEL;
    while (kind < TNI_SELECT_COUNT && strcmp(word, kinds[kind]) != 0)
        kind++;
    return kind;
}

/* The parts of a selector as written, not validated; op and kind are NULL if absent. */
typedef struct parts {
    char *op, *kind, *name;
    bool open;
} parts;

static void split_selector(char *text, parts *out)
{
    char *mark = strchr(text, '/');
    *out = (parts){.op = mark ? text : NULL, .name = mark ? mark + 1 : text};
    if (mark)
        *mark = '\0';
    mark = strchr(out->name, ':');
    if (mark) {
        *mark = '\0';
        out->kind = out->name;
        out->name = mark + 1;
    }
    size_t length = strlen(out->name);
    if (length > 0 && out->name[length - 1] == '*') {
        out->name[length - 1] = '\0';
        out->open = true;
    }
}

static tn_status check_parts(const char *text, const char *room, const parts *p, tn_error *err)
{
    if (p->op && !p->op[0])
        return no_part(text, "op before its /", err);
    if (p->kind && !p->kind[0])
        return no_part(text, "kind before its :", err);
    if (!p->name[0] && !p->open)
        return no_part(text, "name", err);
    tn_status status = p->op ? check_word(text, 0, p->op, true, err) : TN_OK;
    if (status)
        return status;
    if (p->kind && kind_of(p->kind) == TNI_SELECT_COUNT)
        return no_kind(text, (size_t)(p->kind - room), p->kind, err);
    return check_word(text, (size_t)(p->name - room), p->name, false, err);
}

tn_status tni_selector_parse(const char *text, char room[TNI_SELECTOR_MAX], tni_selector *out,
                             tn_error *err)
{
    parts p;
    size_t length = strlen(text);
    if (length >= TNI_SELECTOR_MAX)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "\"%s\": a selector has at most %d bytes", quote_text(text, room),
                       TNI_SELECTOR_MAX - 1);
    for (size_t i = 0; i <= length; i++)
        room[i] = tni_words_lower(text[i]);
    split_selector(room, &p);
    tn_status status = check_parts(text, room, &p, err);
    if (status)
        return status;
    *out = (tni_selector){.kind = p.kind                ? kind_of(p.kind)
                                  : strchr(p.name, '.') ? TNI_SELECT_KERNEL
                                                        : TNI_SELECT_ANY,
                          .op = p.op ? p.op : "",
                          .name = p.name,
                          .open = p.open};
    return TN_OK;
}

/* Writes `word` at `at`, truncated to `size`; returns the position after the whole word. */
static size_t put_word(char *out, size_t size, size_t at, const char *word)
{
    size_t length = strlen(word);
    if (at < size) {
        size_t part = length < size - at - 1 ? length : size - at - 1;
        memcpy(out + at, word, part);
        out[at + part] = '\0';
    }
    return at + length;
}

size_t tni_selector_write(const tni_selector *selector, char *out, size_t size)
{
    bool says_kind = selector->kind != TNI_SELECT_ANY &&
                     (selector->kind != TNI_SELECT_KERNEL || !strchr(selector->name, '.'));
    size_t at = 0;
    if (selector->op[0]) {
        at = put_word(out, size, at, selector->op);
        at = put_word(out, size, at, "/");
    }
    if (says_kind) {
        at = put_word(out, size, at, kinds[selector->kind]);
        at = put_word(out, size, at, ":");
    }
    at = put_word(out, size, at, selector->name);
    return put_word(out, size, at, selector->open ? "*" : "");
}

static bool covers_name(const tni_selector *a, const tni_selector *b, const char *name)
{
    if (a->open)
        return strncmp(a->name, name, strlen(a->name)) == 0;
    return !b->open && strcmp(a->name, name) == 0;
}

bool tni_selector_covers(const tni_selector *a, const tni_selector *b)
{
    const char *other = b->kind == TNI_SELECT_LIBRARY ? tni_library_other_name(b->name) : NULL;
    if (a->op[0] && strcmp(a->op, b->op) != 0)
        return false;
    if (a->kind != TNI_SELECT_ANY && a->kind != b->kind)
        return false;
    return covers_name(a, b, b->name) || (other && !b->open && covers_name(a, b, other));
}

/* A selector is lower case; a candidate's names have the case that its module gave them. */
static bool matches_name(const tni_selector *selector, const char *name)
{
    const char *wanted = selector->name;
    if (!name[0])
        return false;
    while (*wanted && (*wanted == *name || *wanted == tni_words_lower(*name))) {
        wanted++;
        name++;
    }
    return !*wanted && (selector->open || !*name);
}

static bool fits_library(const tni_selector *selector, const tni_candidate *candidate)
{
    return matches_name(selector, candidate->library) ||
           matches_name(selector, candidate->library_other);
}

static bool fits_backend(const tni_selector *selector, const tni_candidate *candidate)
{
    bool found = matches_name(selector, candidate->backend);
    for (const char *const *it = candidate->backend_others; !found && it && *it; it++)
        found = matches_name(selector, *it);
    return found;
}

bool tni_selector_speaks_of(const tni_selector *selector, const tni_candidate *candidate)
{
    return !selector->op[0] || strcmp(selector->op, candidate->op) == 0 ||
           (candidate->op_other && strcmp(selector->op, candidate->op_other) == 0);
}

bool tni_selector_matches(const tni_selector *selector, const tni_candidate *candidate)
{
    if (!tni_selector_speaks_of(selector, candidate))
        return false;
    switch (selector->kind) {
    case TNI_SELECT_KERNEL: return matches_name(selector, candidate->kernel);
    case TNI_SELECT_LIBRARY: return fits_library(selector, candidate);
    case TNI_SELECT_BACKEND: return fits_backend(selector, candidate);
    case TNI_SELECT_PLATFORM: return matches_name(selector, candidate->platform);
    case TNI_SELECT_LANGUAGE: return matches_name(selector, candidate->language);
    default:
        return matches_name(selector, candidate->kernel) || fits_library(selector, candidate) ||
               fits_backend(selector, candidate) || matches_name(selector, candidate->platform) ||
               matches_name(selector, candidate->language);
    }
}
