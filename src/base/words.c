#include "words.h"

#include "tenon/module/module.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>

bool tni_name_is_legal(const char *name, const char *extra, size_t most)
{
    size_t length = 0;
    for (; name[length]; length++) {
        char c = name[length];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (length >= most)
            return false;
        if (!plain && (length == 0 || (c != '-' && c != '_' && !strchr(extra, c))))
            return false;
    }
    return length > 0;
}

const char *tni_words_of(const tn_error *err)
{
    return err->message[0] ? err->message : "it gave no reason";
}

void tni_text_format_list(char *out, size_t size, const char *format, va_list arguments)
{
    char text[1088]; /* longer than any `out`, so that tn_text_fit shows what is missing */
    if (vsnprintf(text, sizeof text, format, arguments) < 0)
        text[0] = '\0';
    tn_text_fit(out, size, text);
}

void tni_text_format(char *out, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tni_text_format_list(out, size, format, arguments);
    va_end(arguments);
}

/* Control characters of one byte, and U+0080 to U+009F, which some terminals also interpret. */
static bool is_control(const char *character)
{
    unsigned char first = (unsigned char)character[0];
    return first < ' ' || first == 0x7F || (first == 0xC2 && (unsigned char)character[1] < 0xA0);
}

void tni_words_clean(char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        size_t size = tni_utf8_size(text, left);
        if (size == 0) {
            *text = '?';
            size = 1;
        } else if (is_control(text)) {
            memset(text, '?', size);
        }
        text += size;
        left -= size;
    }
}

const char *tni_words_sanitizer(uint64_t sanitizers)
{
    return sanitizers & TN_MODULE_SANITIZER_ADDRESS  ? "the address sanitizer"
           : sanitizers & TN_MODULE_SANITIZER_THREAD ? "the thread sanitizer"
           : sanitizers & TN_MODULE_SANITIZER_MEMORY ? "the memory sanitizer"
                                                     : "no sanitizer";
}

bool tni_words_same(const char *a, const char *b)
{
    while (*a && tni_words_lower(*a) == tni_words_lower(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

enum { LONGEST = 63 };

/* Edit distance of two words: insert, delete, replace, swap neighbours; ignores case. Uses three
 * rows on the stack: of words longer than LONGEST only the beginning is compared. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][LONGEST + 1];
    size_t length_a = least(strlen(a), LONGEST), length_b = least(strlen(b), LONGEST);
    for (size_t j = 0; j <= length_b; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= length_a; i++) {
        size_t *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= length_b; j++) {
            char x = tni_words_lower(a[i - 1]), y = tni_words_lower(b[j - 1]);
            now[j] = least(last[j - 1] + (x != y), least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && x == tni_words_lower(b[j - 2]) && tni_words_lower(a[i - 2]) == y)
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return rows[length_a % 3][length_b];
}

const char *tni_words_nearest(const char *word, const char *const *words, size_t count)
{
    const char *nearest = NULL;
    size_t length = least(strlen(word), LONGEST);
    size_t limit = length < 4 ? 2 : length < 8 ? 3 : 4;
    for (size_t i = 0; i < count; i++) {
        size_t d = distance(word, words[i]);
        if (strcmp(word, words[i]) == 0)
            return words[i];
        if (d < limit) {
            limit = d;
            nearest = words[i];
        }
    }
    return nearest;
}

void tni_words_join(const char *const *words, size_t count, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", words[i]);
    if (used >= size)
        memcpy(out + size - 4, "...", 4);
}

const char *tni_words_hint(const char *nearest, char room[TNI_HINT])
{
    room[0] = '\0';
    if (nearest)
        snprintf(room, TNI_HINT, "; did you mean %.64s?", nearest);
    return room;
}

const char *tni_words_offer(const char *word, const char *const *words, size_t count,
                            char room[TNI_OFFER])
{
    static const char intro[] = "; there are ";
    const char *nearest = tni_words_nearest(word, words, count);
    if (nearest)
        return tni_words_hint(nearest, room);
    memcpy(room, intro, sizeof intro);
    tni_words_join(words, count, room + sizeof intro - 1, TNI_OFFER - sizeof intro + 1);
    return room;
}
