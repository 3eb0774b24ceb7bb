#include "description_values.h"

#include "base/checked.h"
#include "base/dtype.h"
#include "base/words.h"
#include "os/cpu.h"

#include <inttypes.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

typedef struct unit_row {
    const char *of;   /* the quantity, named by the unit of the result */
    const char *word; /* as written */
    int64_t factor;
} unit_row;

#define BYTE_UNITS(of, per)                                                            \
    {of, "B" per, 1}, {of, "kB" per, INT64_C(1000)}, {of, "MB" per, INT64_C(1000000)}, \
        {of, "GB" per, INT64_C(1000000000)}, {of, "TB" per, INT64_C(1000000000000)},   \
        {of, "KiB" per, INT64_C(1) << 10}, {of, "MiB" per, INT64_C(1) << 20},          \
        {of, "GiB" per, INT64_C(1) << 30},                                             \
    {                                                                                  \
        of, "TiB" per, INT64_C(1) << 40                                                \
    }

static const unit_row units[] = {
    {"", "", 1},
    {"bytes", "", 1},
    BYTE_UNITS("bytes", ""),
    BYTE_UNITS("bytes/s", "/s"),
    {"kHz", "kHz", 1},
    {"kHz", "MHz", INT64_C(1000)},
    {"kHz", "GHz", INT64_C(1000000)},
};

static const unit_row *find_unit(const char *of, const char *word)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(units[i].of, of) == 0 && strcmp(units[i].word, word) == 0)
            return &units[i];
    }
    return NULL;
}

static bool needs_quantity(tni_need *need, const char *of, int64_t least, int64_t most)
{
    if (strcmp(of, "bytes") == 0)
        return tni_need_set(need, "bytes, as in 96 GiB; units are B kB MB GB TB KiB MiB GiB TiB");
    if (strcmp(of, "bytes/s") == 0)
        return tni_need_set(need,
                            "bytes a second, as in 4.8 TB/s; units are those of bytes and \"/s\"");
    if (strcmp(of, "kHz") == 0)
        return tni_need_set(need, "a frequency, as in 1.98 GHz; units are kHz MHz GHz");
    return tni_need_set(need, "a whole number from %" PRId64 " to %" PRId64, least, most);
}

/* digits / scale. */
typedef struct decimal {
    int64_t digits;
    int64_t scale;  /* a power of ten                                   */
    bool too_great; /* the digits before the point alone exceed 64 bits */
    bool too_fine;  /* the digits after it do */
} decimal;

static bool push_digit(int64_t *number, char c)
{
    int64_t next;
    if (!tni_mul_i64(*number, 10, &next) || !tni_add_i64(next, c - '0', &next))
        return false;
    *number = next;
    return true;
}

/* The part after the point, without trailing zeros. */
static void take_fraction(const char *from, const char *end, decimal *out)
{
    while (end > from && end[-1] == '0')
        end--;
    for (; from < end && !out->too_fine; from++) {
        int64_t scale;
        if (!tni_mul_i64(out->scale, 10, &scale) || !push_digit(&out->digits, *from))
            out->too_fine = true;
        else
            out->scale = scale;
    }
}

/* Parses digits, optionally with a point and more digits; *at moves past them. */
static bool take_decimal(const char **at, decimal *out)
{
    decimal read = {.scale = 1};
    if (!is_digit(**at))
        return false;
    for (; is_digit(**at); (*at)++)
        read.too_great = read.too_great || !push_digit(&read.digits, **at);
    if (**at == '.') {
        const char *from = ++*at;
        while (is_digit(**at))
            (*at)++;
        if (*at == from)
            return false;
        if (!read.too_great)
            take_fraction(from, *at, &read);
    }
    *out = read;
    return true;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

bool tni_value_number(const char *text, const char *unit, int64_t least, int64_t most, int64_t *out,
                      tni_need *need)
{
    decimal number;
    int64_t value;
    if (!take_decimal(&text, &number))
        return needs_quantity(need, unit, least, most);
    while (*text == ' ')
        text++;
    const unit_row *written = find_unit(unit, text);
    if (!written)
        return needs_quantity(need, unit, least, most);
    int64_t shared = common_divisor(written->factor, number.scale);
    int64_t divisor = number.scale / shared;
    if (number.too_fine || number.digits % divisor != 0)
        return tni_need_set(need, "a whole number%s%s", *unit ? " of " : "", unit);
    if (number.too_great ||
        !tni_mul_i64(number.digits / divisor, written->factor / shared, &value) || value < least ||
        value > most)
        return tni_need_set(need, "%" PRId64 " to %" PRId64 "%s%s", least, most, *unit ? " " : "",
                            unit);
    *out = value;
    return true;
}

/* Whether `text` matches `pattern`: 'x' is a hexadecimal digit, all else is literal. */
static bool matches_pattern(const char *text, const char *pattern)
{
    for (; *pattern; text++, pattern++) {
        if (*pattern == 'x' ? !is_hex(*text) : *text != *pattern)
            return false;
    }
    return *text == '\0';
}

static bool is_word(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = tni_words_lower(text[i]);
        if (!is_digit(c) && (c < 'a' || c > 'z'))
            return false;
    }
    return length > 0;
}

bool tni_value_uuid(const char *text, char *out, size_t size, tni_need *need)
{
    static const char pattern[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    size_t length = strlen(text), bare = sizeof pattern - 1;
    size_t before = length > bare ? length - bare : 0;
    bool sound = length < size && matches_pattern(text + before, pattern) &&
                 (before == 0 || (text[before - 1] == '-' && is_word(text, before - 1)));
    if (!sound)
        return tni_need_set(need, "8-4-4-4-12 hexadecimal digits, or those after \"GPU-\"");
    memcpy(out, text, before);
    for (size_t i = before; i <= length; i++)
        out[i] = tni_words_lower(text[i]);
    return true;
}

bool tni_value_bus(const char *text, char *out, size_t size, tni_need *need)
{
    const char *colon = strchr(text, ':');
    size_t domain = colon ? (size_t)(colon - text) : 0, length = strlen(text);
    bool sound = domain >= 4 && domain <= 8 && length < size && matches_pattern(colon, ":xx:xx.x");
    for (size_t i = 0; sound && i < domain; i++)
        sound = is_hex(text[i]);
    if (!sound)
        return tni_need_set(need, "domain, bus, device and function, as in 0000:3b:00.0");
    for (size_t i = 0; i <= length; i++)
        out[i] = tni_words_lower(text[i]);
    return true;
}

#define ONE(name, word, code, bits) +1
enum { DTYPES = 0 TN_DTYPE_LIST(ONE), LONGEST_WORD = 24 };
#undef ONE

TN_STATIC_ASSERT(DTYPES < TN_DEVICE_DTYPES_MAX, "a list of every dtype has room for its end");

static bool needs_dtype(tni_need *need, const char *word)
{
    const char *nearest = tni_dtype_nearest(word);
    if (nearest)
        return tni_need_set(need, "dtypes separated by commas; did you mean %s?", nearest);
    return tni_need_set(need, "dtypes separated by commas, as in bf16, f16, f32");
}

/* Takes the word up to a comma or the end, without surrounding blanks. *at moves past it and the
 * comma, or becomes NULL. A longer word is truncated: no dtype or feature is that long. */
static void take_word(const char **at, char word[LONGEST_WORD])
{
    size_t length = strcspn(*at, ","), begin = 0, end = length;
    while (begin < end && (*at)[begin] == ' ')
        begin++;
    while (end > begin && (*at)[end - 1] == ' ')
        end--;
    size_t size = end - begin < LONGEST_WORD ? end - begin : LONGEST_WORD - 1;
    memcpy(word, *at + begin, size);
    word[size] = '\0';
    *at = (*at)[length] ? *at + length + 1 : NULL;
}

bool tni_value_dtypes(const char *text, tn_dtype out[TN_DEVICE_DTYPES_MAX], tni_need *need)
{
    tn_dtype read[TN_DEVICE_DTYPES_MAX] = {0};
    size_t count = 0;
    while (text) {
        char word[LONGEST_WORD];
        take_word(&text, word);
        tn_dtype dtype = tni_dtype_find(word);
        if (!dtype)
            return needs_dtype(need, word);
        for (size_t i = 0; i < count; i++) {
            if (read[i] == dtype)
                return tni_need_set(need, "each dtype once; duplicate %s", word);
        }
        read[count++] = dtype;
    }
    memcpy(out, read, sizeof read);
    return true;
}

static bool needs_feature(tni_need *need, const char *word)
{
    const char *names[TN_CPU_FEATURE_COUNT];
    for (int i = 0; i < TN_CPU_FEATURE_COUNT; i++)
        names[i] = tni_cpu_feature_name(i);
    const char *nearest = tni_words_nearest(word, names, TN_CPU_FEATURE_COUNT);
    if (nearest)
        return tni_need_set(need, "features of a processor separated by commas; did you mean %s?",
                            nearest);
    return tni_need_set(need, "features of a processor separated by commas, as in fma, avx2");
}

bool tni_value_features(const char *text, uint64_t *out, tni_need *need)
{
    uint64_t read = 0;
    while (text) {
        char word[LONGEST_WORD];
        int i = 0;
        take_word(&text, word);
        while (i < TN_CPU_FEATURE_COUNT && strcmp(tni_cpu_feature_name(i), word) != 0)
            i++;
        if (i == TN_CPU_FEATURE_COUNT)
            return needs_feature(need, word);
        read |= UINT64_C(1) << i;
    }
    *out = read;
    return true;
}
