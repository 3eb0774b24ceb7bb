/* The text form: an input that parses is written, and the result parses to the same; an input that
 * does not parse is refused with one line that names the place. */
#include "base/form.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void require_same(const tni_form *a, const tni_form *b)
{
    require(tni_form_section_count(a) == tni_form_section_count(b));
    for (size_t s = 0; s < tni_form_section_count(a); s++) {
        const tni_form_section *x = tni_form_section_get(a, s), *y = tni_form_section_get(b, s);
        require(strcmp(x->name, y->name) == 0 && x->count == y->count);
        for (size_t e = 0; e < x->count; e++)
            require(strcmp(x->entries[e].key, y->entries[e].key) == 0 &&
                    strcmp(x->entries[e].value, y->entries[e].value) == 0);
    }
}

static void write_all(const tni_form *form, tni_buffer *to)
{
    for (size_t s = 0; s < tni_form_section_count(form); s++) {
        const tni_form_section *in = tni_form_section_get(form, s);
        if (s > 0)
            require(tni_form_write_section(to, in->name, NULL) == TN_OK);
        for (size_t e = 0; e < in->count; e++)
            require(tni_form_write_entry(to, in->entries[e].key, in->entries[e].value, NULL) ==
                    TN_OK);
    }
}

static void require_place(const tn_error *err)
{
    unsigned line = 0, column = 0;
    require(err->status == TN_CORRUPT && !strchr(err->message, '\n'));
    require(sscanf(err->message, "fuzz:%u:%u: expected ", &line, &column) == 2);
    require(line > 0 && column > 0 && strstr(err->message, ", got "));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_form *form = NULL, *again = NULL;
    tni_buffer text = {0};
    tn_error err;
    if (tni_form_parse((const char *)data, size, "fuzz", &form, &err)) {
        require_place(&err);
        return 0;
    }
    write_all(form, &text);
    require(tni_form_parse(tni_buffer_text(&text), text.length, "again", &again, &err) == TN_OK);
    require_same(form, again);
    tni_form_release(form);
    tni_form_release(again);
    tni_buffer_release(&text);
    return 0;
}
