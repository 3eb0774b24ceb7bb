#include "visible.h"

static const char numerals[] = "0123456789";
static const char blanks[] = " \t";

/* One entry of the list, without surrounding blanks. */
typedef struct entry {
    const char *text;
    size_t length;
} entry;

static entry parse_entry(const char **at)
{
    *at += strspn(*at, blanks);
    entry e = {*at, strcspn(*at, ",")};
    *at += e.length;
    *at += **at == ',';
    while (e.length > 0 && strchr(blanks, e.text[e.length - 1]))
        e.length--;
    return e;
}

static int begins_with(const entry *e, const char *word)
{
    size_t length = strlen(word);
    return e->length >= length && strncmp(e->text, word, length) == 0;
}

/* Parses like C's atoi: ignores text after the digits. */
static int read_number(const entry *e, int32_t *out)
{
    size_t at = e->length > 0 && e->text[0] == '+', digits = at;
    int64_t number = 0;
    while (digits < e->length && strchr(numerals, e->text[digits])) {
        number = number > INT32_MAX ? number : number * 10 + (e->text[digits] - '0');
        digits++;
    }
    *out = number > INT32_MAX ? INT32_MAX : (int32_t)number;
    return digits > at;
}

/* Returns the only device whose UUID has this prefix; -1 for none or several. */
static int32_t find_uuid(const cuda_found *all, int32_t count, const entry *e)
{
    int32_t found = -1;
    for (int32_t i = 0; i < count; i++) {
        if (strncmp(all[i].uuid, e->text, e->length) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

/* Identical devices are always in bus order, whatever CUDA_DEVICE_ORDER is. */
static int is_in_bus_order(const cuda_found *all, int32_t count, const char *order)
{
    int same = 1;
    for (int32_t i = 1; i < count; i++)
        same = same && strcmp(all[i].name, all[0].name) == 0;
    return same || (order && strcmp(order, "PCI_BUS_ID") == 0);
}

static int holds(const int32_t *list, int32_t count, int32_t what)
{
    for (int32_t i = 0; i < count; i++) {
        if (list[i] == what)
            return 1;
    }
    return 0;
}

static void select_all(int32_t count, int32_t out[CUDA_MOST], int32_t *out_count)
{
    for (int32_t i = 0; i < count; i++)
        out[i] = i;
    *out_count = count;
}

int cuda_visible(const cuda_found *all, int32_t count, const char *value, const char *order,
                 int32_t out[CUDA_MOST], int32_t *out_count)
{
    int by_bus = is_in_bus_order(all, count, order);
    *out_count = 0;
    for (int32_t i = 0; i < count; i++) {
        if (all[i].is_split)
            return 0;
    }
    if (!value) {
        select_all(count, out, out_count);
        return by_bus;
    }
    while (*value && *out_count < CUDA_MOST) {
        entry e = parse_entry(&value);
        int32_t index = -1;
        int numbered = read_number(&e, &index);
        if (begins_with(&e, "MIG-") || (numbered && !by_bus))
            return 0;
        if (!numbered)
            index = begins_with(&e, "GPU-") ? find_uuid(all, count, &e) : -1;
        if (index < 0 || index >= count)
            break;
        if (holds(out, *out_count, index)) {
            *out_count = 0;
            break;
        }
        out[(*out_count)++] = index;
    }
    return 1;
}
