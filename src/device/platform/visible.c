#include "visible.h"

#include "base/words.h"

static const char digits[] = "0123456789";
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
static const char uuid_characters[] = "0123456789abcdefABCDEF-/";

static bool take_number(const char *text, size_t length, int32_t *out)
{
    size_t whole = strspn(text, digits), used = whole;
    int64_t number = 0;
    if (whole > 0 && text[whole] == '.')
        used = whole + 1 + strspn(text + whole + 1, digits);
    if (whole == 0 || whole > 9 || used != length)
        return false;
    for (size_t i = 0; i < whole; i++)
        number = number * 10 + (text[i] - '0');
    *out = (int32_t)number;
    return true;
}

/* "GPU-...", "MIG-...", or bare: letters, a dash and hexadecimal digits; or the digits alone, with
 * a dash among them. */
static bool take_uuid(const char *text, size_t length, char out[TNI_VISIBLE_UUID])
{
    size_t kind = strspn(text, letters);
    size_t rest = kind < length && text[kind] == '-' ? kind : 0;
    bool sound = length < TNI_VISIBLE_UUID && text[0] != '-' &&
                 rest + strspn(text + rest, uuid_characters) == length &&
                 memchr(text, '-', length) && length > rest + 1;
    if (sound) {
        memcpy(out, text, length);
        out[length] = '\0';
    }
    return sound;
}

void tni_visible_parse(const char *value, tni_visible *out)
{
    memset(out, 0, sizeof *out);
    out->is_set = value != NULL;
    while (value && out->count < TNI_VISIBLE_MAX) {
        value += strspn(value, " \t");
        size_t whole = strcspn(value, ","), length = whole;
        while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t'))
            length--;
        tni_visible_entry *entry = &out->entries[out->count];
        bool numbered = take_number(value, length, &entry->number);
        if (!numbered)
            entry->number = -1;
        if (!numbered && !take_uuid(value, length, entry->uuid))
            break;
        out->count++;
        value = value[whole] == ',' ? value + whole + 1 : NULL;
    }
}
