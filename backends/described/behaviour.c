/* Behaviour that a description requests besides properties: keys, values, and suggestions for
 * misspelled ones. */
#include "described.h"

#define PREFIX "behaviour."

typedef struct word {
    const char *text;
    int64_t value;
} word;

static const word byte_units[] = {
    {"", 1},
    {"B", 1},
    {"kB", INT64_C(1000)},
    {"MB", INT64_C(1000000)},
    {"GB", INT64_C(1000000000)},
    {"TB", INT64_C(1000000000000)},
    {"KiB", INT64_C(1) << 10},
    {"MiB", INT64_C(1) << 20},
    {"GiB", INT64_C(1) << 30},
    {"TiB", INT64_C(1) << 40},
    {NULL, 0},
};
static const word time_units[] = {
    {"ns", 1}, {"us", INT64_C(1000)}, {"ms", INT64_C(1000000)}, {"s", INT64_C(1000000000)},
    {NULL, 0},
};
static const word no_units[] = {{"", 1}, {NULL, 0}};
static const word links[] = {
    {"staged", TN_LINK_STAGED},
    {"bus", TN_LINK_BUS},
    {"fabric", TN_LINK_FABRIC},
    {NULL, 0},
};

static const word *find_word(const word *words, const char *text)
{
    for (; words->text; words++) {
        if (strcmp(words->text, text) == 0)
            return words;
    }
    return NULL;
}

/* Reads a whole number, then blanks and one of `units`. */
static bool read_quantity(const char *text, const word *units, int64_t *out)
{
    int64_t number = 0;
    if (*text < '0' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        int64_t digit = *text - '0';
        if (number > (INT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    while (*text == ' ')
        text++;
    const word *unit = find_word(units, text);
    if (!unit || number > INT64_MAX / unit->value)
        return false;
    *out = number * unit->value;
    return true;
}

static bool read_number(const char *text, int64_t *out)
{
    int64_t number;
    if (!read_quantity(text, no_units, &number) || number == 0)
        return false;
    *out = number;
    return true;
}

static bool read_bytes(const char *text, int64_t *out)
{
    return read_quantity(text, byte_units, out);
}

static bool read_time(const char *text, int64_t *out)
{
    const int64_t hour = INT64_C(3600000000000);
    int64_t time;
    if (!read_quantity(text, time_units, &time) || time > hour)
        return false;
    *out = time;
    return true;
}

static bool read_link(const char *text, int64_t *out)
{
    const word *link = find_word(links, text);
    if (link)
        *out = link->value;
    return link != NULL;
}

typedef struct kind {
    bool (*read)(const char *text, int64_t *out);
    const char *needs;
} kind;

static const kind numbers = {read_number, "a whole number from 1"};
static const kind bytes = {read_bytes, "a whole number with B kB MB GB TB KiB MiB GiB TiB"};
static const kind times = {read_time, "a whole number with ns us ms s, at most 3600 s"};
static const kind ways = {read_link, "staged, bus or fabric"};

static const struct {
    const char *key;
    const kind *kind;
    size_t offset;
} rows[] = {
    {PREFIX "fail_alloc", &numbers, offsetof(described_behaviour, fail_alloc)},
    {PREFIX "fail_copy", &numbers, offsetof(described_behaviour, fail_copy)},
    {PREFIX "lose_after", &numbers, offsetof(described_behaviour, lose_after)},
    {PREFIX "lie_copy", &numbers, offsetof(described_behaviour, lie_copy)},
    {PREFIX "fail_run", &numbers, offsetof(described_behaviour, fail_run)},
    {PREFIX "lie_every", &numbers, offsetof(described_behaviour, lie_every)},
    {PREFIX "stall_copy", &times, offsetof(described_behaviour, stall_copy)},
    {PREFIX "lie_memory", &bytes, offsetof(described_behaviour, lie_memory)},
    {PREFIX "link", &ways, offsetof(described_behaviour, link)},
};
enum { ROWS = sizeof rows / sizeof rows[0], LONGEST = 40, NEAR = 4 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edit distance: insertions, deletions and replacements. Words longer than LONGEST count as LONGEST
 * apart. */
static size_t distance(const char *a, const char *b)
{
    size_t row[LONGEST + 1], length = strlen(b);
    if (strlen(a) > LONGEST || length > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t before = row[0];
        row[0] = i + 1;
        for (size_t j = 1; j <= length; j++) {
            size_t replaced = before + (a[i] != b[j - 1]);
            before = row[j];
            row[j] = least(replaced, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[length];
}

static const char *nearest(const char *key)
{
    const char *found = NULL;
    size_t limit = NEAR;
    for (size_t i = 0; i < ROWS; i++) {
        size_t d = distance(key, rows[i].key);
        if (d < limit) {
            limit = d;
            found = rows[i].key;
        }
    }
    return found;
}

/* Text of a description, made fit for one line of a message: control characters become '?'. */
typedef struct shown {
    char text[48];
} shown;

static shown show(const char *text)
{
    shown out;
    tn_text_fit(out.text, sizeof out.text, text);
    for (char *c = out.text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == '\177')
            *c = '?';
    }
    return out;
}

static tn_status refuse_key(const tn_description_entry *entry, tn_error *err)
{
    const char *like = nearest(entry->key);
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, "described: describe",
                   "%s: unknown key \"%s\" (= \"%s\"); %s%s%s", entry->origin,
                   show(entry->key).text, show(entry->value).text,
                   like ? "did you mean " : "known keys: " PREFIX,
                   like ? like
                        : "fail_alloc fail_copy fail_run lose_after lie_copy lie_every stall_copy "
                          "lie_memory link",
                   like ? "?" : "");
}

static tn_status read_entry(const tn_description_entry *entry, described_behaviour *out,
                            tn_error *err)
{
    for (size_t i = 0; i < ROWS; i++) {
        int64_t value;
        if (strcmp(rows[i].key, entry->key) != 0)
            continue;
        if (!rows[i].kind->read(entry->value, &value))
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, "described: describe",
                           "%s: %s: expected %s, got \"%s\"", entry->origin, entry->key,
                           rows[i].kind->needs, show(entry->value).text);
        memcpy((char *)out + rows[i].offset, &value, sizeof value);
        return TN_OK;
    }
    return refuse_key(entry, err);
}

tn_status described_behaviour_read(const tn_description *description, described_behaviour *out,
                                   tn_error *err)
{
    described_behaviour read = {.lie_memory = -1, .link = TN_LINK_STAGED};
    tn_status status = TN_OK;
    for (size_t i = 0; i < description->entry_count && !status; i++)
        status = read_entry(&description->entries[i], &read, err);
    if (!status)
        *out = read;
    return status;
}
