#include "visible.h"

static const char numerals[] = "0123456789";
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
static const char uuid_characters[] =
    "0123456789-/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* Parses a number as C's atoi does: characters after the digits are ignored. */
static bool take_number(const char *text, size_t length, int32_t *out)
{
    size_t at = length > 0 && (text[0] == '+' || text[0] == '-');
    size_t digits = at + strspn(text + at, numerals);
    int64_t number = 0;
    if (digits == at || digits > length)
        return false;
    for (; at < digits; at++)
        number = number > INT32_MAX ? number : number * 10 + (text[at] - '0');
    if (text[0] == '-' && number > 0)
        return false;
    *out = number > INT32_MAX ? INT32_MAX : (int32_t)number;
    return true;
}

/* "GPU-...", "MIG-...", "MIG-GPU-...": starts with letters and a dash. */
static bool take_uuid(const char *text, size_t length, char out[TNI_VISIBLE_UUID])
{
    size_t kind = strspn(text, letters);
    bool sound = kind > 0 && length < TNI_VISIBLE_UUID && length > kind + 1 && text[kind] == '-' &&
                 kind + strspn(text + kind, uuid_characters) >= length;
    if (sound) {
        memcpy(out, text, length);
        out[length] = '\0';
    }
    return sound;
}

static bool is_twice(const tni_visible *visible, const tni_visible_entry *entry)
{
    for (size_t i = 0; i < visible->count; i++) {
        const tni_visible_entry *other = &visible->entries[i];
        if (other->number == entry->number &&
            (entry->number >= 0 || strcmp(other->uuid, entry->uuid) == 0))
            return true;
    }
    return false;
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
        if (is_twice(out, entry)) {
            out->count = 0;
            break;
        }
        out->count++;
        value = value[whole] == ',' ? value + whole + 1 : NULL;
    }
}
