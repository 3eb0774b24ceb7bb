/* Selections of locks and of tuning: a refused input gives a place; an accepted one survives being
 * written and read again. Inputs are signed first, because otherwise none would pass the
 * checksum. */
#include "base/alloc.h"
#include "policy/tuning/selection.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void require_same(const tni_selections *a, const tni_selections *b)
{
    require(a->setup_count == b->setup_count && a->count == b->count && a->strict == b->strict);
    for (size_t i = 0; i < a->setup_count; i++) {
        const tni_setup *x = &a->setups[i], *y = &b->setups[i];
        require(strcmp(x->id, y->id) == 0 && strcmp(x->name, y->name) == 0 &&
                strcmp(x->architecture, y->architecture) == 0 &&
                strcmp(x->driver, y->driver) == 0 && x->threads == y->threads &&
                strcmp(x->libraries, y->libraries) == 0);
    }
    for (size_t i = 0; i < a->count; i++) {
        const tni_selection *x = &a->selections[i], *y = &b->selections[i];
        require(strcmp(x->problem, y->problem) == 0 && strcmp(x->device, y->device) == 0 &&
                strcmp(x->kernel, y->kernel) == 0 && x->version == y->version &&
                strcmp(x->module, y->module) == 0 && strcmp(x->library, y->library) == 0 &&
                x->library_version == y->library_version && x->numerics == y->numerics &&
                strcmp(x->settings, y->settings) == 0 && x->ns == y->ns);
    }
}

static void write_all(const tni_selections *from, tni_buffer *to)
{
    require(tni_selections_begin(to, from->strict == 1, NULL) == TN_OK);
    for (size_t i = 0; i < from->setup_count; i++)
        require(tni_selections_add_setup(to, &from->setups[i], NULL) == TN_OK);
    for (size_t i = 0; i < from->count; i++)
        require(tni_selections_add(to, &from->selections[i], NULL) == TN_OK);
    require(tni_selections_sign(to, NULL) == TN_OK);
}

static void read_and_write(const tni_buffer *text)
{
    tni_selections read = {0}, again = {0};
    tni_buffer written = {0};
    tn_error err = {0};
    if (tni_selections_parse(text->text, text->length, "fuzz", &read, &err)) {
        require(err.status == TN_CORRUPT || err.status == TN_INCOMPATIBLE);
        require(strncmp(err.message, "fuzz:", 5) == 0);
        return;
    }
    write_all(&read, &written);
    require(tni_selections_parse(written.text, written.length, "again", &again, &err) == TN_OK);
    require_same(&read, &again);
    tni_selections_release(&read);
    tni_selections_release(&again);
    tni_buffer_release(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_selections read = {0};
    tni_buffer text = {0};
    tn_error err = {0};
    require(tni_selections_parse((const char *)data, size, "fuzz", &read, &err) != TN_OK ||
            read.form); /* a raw input hardly ever has a valid signature */
    tni_selections_release(&read);
    tni_buffer_add_part(&text, (const char *)data, size);
    require(tni_selections_sign(&text, NULL) == TN_OK);
    read_and_write(&text);
    tni_buffer_release(&text);
    require(tn_allocator_blocks() == 0);
    return 0;
}
