/* Selectors: an accepted one has a normal form that parses to itself, and it covers another one
 * exactly if it matches everything that the other matches. The input is lines: two selectors, then
 * a candidate's op, kernel, library, backend, platform and language. */
#include "base/alloc.h"
#include "settings/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { A, B, OP, KERNEL, LIBRARY, BACKEND, PLATFORM, LANGUAGE, LINES };

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static bool same(const tni_selector *a, const tni_selector *b)
{
    return a->kind == b->kind && a->open == b->open && strcmp(a->op, b->op) == 0 &&
           strcmp(a->name, b->name) == 0;
}

static void check_form(const char *text, const tni_selector *selector)
{
    char out[TNI_SELECTOR_MAX], cut[8], room[TNI_SELECTOR_MAX];
    tni_selector again;
    size_t length = tni_selector_write(selector, out, sizeof out);
    require(length == strlen(out) && length <= strlen(text));
    require(tni_selector_parse(out, room, &again, NULL) == TN_OK && same(selector, &again));
    require(tni_selector_write(selector, cut, sizeof cut) == length);
    require(strlen(cut) == (length < sizeof cut ? length : sizeof cut - 1) &&
            strncmp(cut, out, strlen(cut)) == 0);
    require(selector->kind >= TNI_SELECT_ANY && selector->kind < TNI_SELECT_COUNT);
    require(tni_selector_covers(selector, selector));
}

/* Returns false if it is not a selector; then there must be a reason of one line. */
static bool take(const char *text, char room[TNI_SELECTOR_MAX], tni_selector *out)
{
    tn_error err = {0};
    *out = (tni_selector){.kind = -1};
    if (tni_selector_parse(text, room, out, &err) == TN_OK) {
        check_form(text, out);
        return true;
    }
    require(out->kind == -1 && err.status == TN_INVALID_ARGUMENT && err.message[0]);
    for (const char *c = err.message; *c; c++)
        require((unsigned char)*c >= ' ' && *c != '\177');
    return false;
}

/* Makes a candidate that `b` matches and `a` does not, if possible: everything that `b` leaves open
 * is '~', which no selector contains, and its kind is one that `a` does not ask for. */
static void make_witness(const tni_selector *a, const tni_selector *b, char name[TNI_SELECTOR_MAX],
                         tni_candidate *out)
{
    const char *parts[] = {"", "", "", "", "", ""};
    int32_t kind = b->kind != TNI_SELECT_ANY        ? b->kind
                   : a->kind == TNI_SELECT_LANGUAGE ? TNI_SELECT_KERNEL
                                                    : TNI_SELECT_LANGUAGE;
    snprintf(name, TNI_SELECTOR_MAX, "%s%s", b->name, b->open ? "~" : "");
    parts[kind] = name;
    *out = (tni_candidate){
        b->op[0] ? b->op : "~", parts[1], parts[2], parts[3], parts[4], parts[5], "", NULL, NULL};
}

static void check_pair(const tni_selector *a, const tni_selector *b, const tni_candidate *candidate)
{
    char name[TNI_SELECTOR_MAX];
    tni_candidate of_b;
    bool covers = tni_selector_covers(a, b);
    make_witness(a, b, name, &of_b);
    require(tni_selector_matches(b, &of_b) && tni_selector_matches(a, &of_b) == covers);
    if (covers && tni_selector_matches(b, candidate))
        require(tni_selector_matches(a, candidate));
    require(same(a, b) == (covers && tni_selector_covers(b, a)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char rooms[2][TNI_SELECTOR_MAX], none[] = "";
    char *lines[LINES] = {none, none, none, none, none, none, none, none};
    tni_selector a, b;
    char *text = tni_text_copy_part(size > 0 ? (const char *)data : "", size), *rest = text;
    require(text != NULL);
    for (size_t i = 0; i < LINES && rest; i++) {
        lines[i] = rest;
        rest = strchr(rest, '\n');
        if (rest)
            *rest++ = '\0';
    }
    const tni_candidate candidate = {.op = lines[OP],
                                     .kernel = lines[KERNEL],
                                     .library = lines[LIBRARY],
                                     .backend = lines[BACKEND],
                                     .platform = lines[PLATFORM],
                                     .language = lines[LANGUAGE],
                                     .library_other = ""};
    bool is_a = take(lines[A], rooms[0], &a), is_b = take(lines[B], rooms[1], &b);
    if (is_a && is_b) {
        check_pair(&a, &b, &candidate);
        check_pair(&b, &a, &candidate);
    }
    tni_release(text);
    return 0;
}
