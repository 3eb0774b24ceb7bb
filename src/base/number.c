#include "number.h"

#include "checked.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char letters[] = "kmgt";
enum { LETTERS = sizeof letters - 1 };

/* Returns 0 for an unknown letter. */
static int64_t scale_of(char letter)
{
    const char *at = letter ? strchr(letters, letter | 0x20) : NULL;
    return at ? INT64_C(1) << (10 * (at - letters + 1)) : 0;
}

bool tni_number_parse(const char *text, bool units, int64_t *out)
{
    int64_t number = 0, scale = 1;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0)
        return false;
    for (size_t i = 0; i < digits; i++) {
        if (!tni_mul_i64(number, 10, &number) || !tni_add_i64(number, text[i] - '0', &number))
            return false;
    }
    if (text[digits]) {
        scale = units ? scale_of(text[digits]) : 0;
        if (scale == 0 || text[digits + 1])
            return false;
    }
    return tni_mul_i64(number, scale, out);
}

void tni_number_write_units(int64_t value, char out[24])
{
    int unit = 0;
    while (unit < LETTERS && value != 0 && value % 1024 == 0) {
        value /= 1024;
        unit++;
    }
    const char letter[] = {unit ? letters[unit - 1] : '\0', '\0'};
    snprintf(out, 24, "%" PRId64 "%s", value, letter);
}
