#include "selection.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/words.h"
#include "op/op.h"
#include "os/file.h"
#include "os/sha256.h"
#include "tenon/module/kernel.h"
#include "tenon/version.h"

#include <inttypes.h>
#include <stdlib.h>

static const char where[] = "selections";

/* Describes an entry of a section and its offset in the struct. An optional entry is omitted if it
 * has the value `standard`, and gets that value if it is missing. */
enum { TEXT, NUMBER, MICROSECONDS, NUMERICS };
typedef struct field {
    const char *key;
    int32_t kind;
    bool optional;
    int64_t standard;
    size_t at;
} field;

typedef struct layout {
    const char *section; /* for messages */
    const field *fields;
    size_t count;
} layout;

static const field head_fields[] = {
    {"format", NUMBER, false, 0, SIZE_MAX},
    {"tenon", TEXT, false, 0, offsetof(tni_selections, tenon)},
    {"strict", NUMBER, false, 0, offsetof(tni_selections, strict)},
};
static const field setup_fields[] = {
    {"name", TEXT, true, 0, offsetof(tni_setup, name)},
    {"architecture", TEXT, true, 0, offsetof(tni_setup, architecture)},
    {"driver", TEXT, true, 0, offsetof(tni_setup, driver)},
    {"threads", NUMBER, true, 0, offsetof(tni_setup, threads)},
    {"libraries", TEXT, true, 0, offsetof(tni_setup, libraries)},
};
static const field selection_fields[] = {
    {"problem", TEXT, false, 0, offsetof(tni_selection, problem)},
    {"device", TEXT, false, 0, offsetof(tni_selection, device)},
    {"kernel", TEXT, false, 0, offsetof(tni_selection, kernel)},
    {"version", NUMBER, false, 0, offsetof(tni_selection, version)},
    {"module", TEXT, true, 0, offsetof(tni_selection, module)},
    {"library", TEXT, true, 0, offsetof(tni_selection, library)},
    {"library_version", NUMBER, true, -1, offsetof(tni_selection, library_version)},
    {"numerics", NUMERICS, true, 0, offsetof(tni_selection, numerics)},
    {"settings", TEXT, true, 0, offsetof(tni_selection, settings)},
    {"us", MICROSECONDS, true, 0, offsetof(tni_selection, ns)},
};
#define LAYOUT(name, fields)                               \
    {                                                      \
        name, fields, sizeof(fields) / sizeof((fields)[0]) \
    }
enum { FIELDS_MOST = 10 };
static const layout setup_layout = LAYOUT("[machine]", setup_fields);
static const layout selection_layout = LAYOUT("[selection]", selection_fields);
static const layout head_layout = LAYOUT("the head", head_fields);

static const struct {
    const char *word;
    uint64_t bit;
} numerics_words[] = {
    {"run-to-run", TN_NUM_RUN_TO_RUN},
    {"batch-invariant", TN_NUM_BATCH_INVARIANT},
    {"cross-device", TN_NUM_CROSS_DEVICE},
    {"rounds-f32-to-tf32", TN_NUM_ROUNDS_F32_TF32},
    {"rounds-f32-to-bf16", TN_NUM_ROUNDS_F32_BF16},
    {"reduced-reduction", TN_NUM_REDUCED_REDUCTION},
    {"split-sums", TN_NUM_SPLIT_SUMS},
    {"f16-sums", TN_NUM_F16_SUMS},
    {"rounds-product", TN_NUM_ROUNDS_PRODUCT},
};
enum { NUMERICS_COUNT = sizeof numerics_words / sizeof numerics_words[0] };

void tni_numerics_write(uint64_t numerics, tni_buffer *out)
{
    const char *before = "";
    for (size_t i = 0; i < NUMERICS_COUNT; i++) {
        if (!(numerics & numerics_words[i].bit))
            continue;
        tni_buffer_format(out, "%s%s", before, numerics_words[i].word);
        before = ", ";
    }
}

/* Accepts only the canonical form: each word at most once, in the table's order. */
static bool read_numerics(const char *text, uint64_t *out)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < NUMERICS_COUNT && *text; i++) {
        size_t length = strlen(numerics_words[i].word);
        if (strncmp(text, numerics_words[i].word, length) != 0)
            continue;
        bool more = strncmp(text + length, ", ", 2) == 0 && text[length + 2];
        if (text[length] && !more)
            return false;
        bits |= numerics_words[i].bit;
        text += length + (more ? 2 : 0);
    }
    *out = bits;
    return !*text;
}

/* Parses "12.345": always three digits after the point, independent of the locale. */
static bool read_microseconds(const char *text, int64_t *out)
{
    char digits[24];
    const char *point = strchr(text, '.');
    size_t length = strlen(text);
    if (!point || point == text || strlen(point + 1) != 3 || length >= sizeof digits)
        return false;
    size_t whole = (size_t)(point - text);
    memcpy(digits, text, whole);
    memcpy(digits + whole, point + 1, 4);
    return tni_number_parse(digits, false, out);
}

/* Reading. */

typedef struct reading {
    const char *origin;
    tn_error *err;
} reading;

TN_PRINTF(3, 4)
static tn_status report_corrupt(const reading *in, uint32_t line, const char *format, ...)
{
    char text[320], place[TNI_FORM_PLACE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tn_fail(in->err, TN_CORRUPT, 0, where, "%s: %s", tni_form_place(in->origin, line, place),
                   text);
}

static tn_status read_value(const reading *in, const field *f, const tni_form_entry *entry,
                            void *to)
{
    static const char *const needs[] = {
        [NUMBER] = "a number",
        [MICROSECONDS] = "microseconds with three decimals",
        [NUMERICS] = "names of numeric properties",
    };
    char *at = (char *)to + f->at;
    bool read = true;
    switch (f->kind) {
    case TEXT: memcpy(at, &entry->value, sizeof entry->value); break;
    case NUMBER: read = tni_number_parse(entry->value, false, (int64_t *)(void *)at); break;
    case MICROSECONDS: read = read_microseconds(entry->value, (int64_t *)(void *)at); break;
    default: read = read_numerics(entry->value, (uint64_t *)(void *)at); break;
    }
    return read ? TN_OK
                : report_corrupt(in, entry->line, "%s: expected %s, got \"%.60s\"", f->key,
                                 needs[f->kind], entry->value);
}

static size_t field_of(const layout *in, const char *key)
{
    size_t i = 0;
    while (i < in->count && strcmp(in->fields[i].key, key) != 0)
        i++;
    return i;
}

static tn_status unknown_key(const reading *in, const layout *of, const tni_form_entry *entry)
{
    const char *keys[FIELDS_MOST];
    char list[160];
    for (size_t i = 0; i < of->count; i++)
        keys[i] = of->fields[i].key;
    tni_words_join(keys, of->count, list, sizeof list);
    return report_corrupt(in, entry->line, "%s: expected one of %s, got \"%.40s\"", of->section,
                          list, entry->key);
}

static void begin_struct(const layout *of, void *to)
{
    static const char nothing[] = "";
    const char *empty = nothing;
    for (size_t i = 0; i < of->count; i++) {
        const field *f = &of->fields[i];
        if (f->at == SIZE_MAX)
            continue;
        if (f->kind == TEXT)
            memcpy((char *)to + f->at, &empty, sizeof empty);
        else
            memcpy((char *)to + f->at, &f->standard, sizeof f->standard);
    }
}

/* Reads the section's entries from index `first` on. */
static tn_status read_section(const reading *in, const layout *of, const tni_form_section *section,
                              size_t first, void *to)
{
    bool seen[FIELDS_MOST] = {false};
    begin_struct(of, to);
    for (size_t i = first; i < section->count; i++) {
        const tni_form_entry *entry = &section->entries[i];
        size_t index = field_of(of, entry->key);
        if (index == of->count)
            return unknown_key(in, of, entry);
        if (seen[index])
            return report_corrupt(in, entry->line, "duplicate key %s", entry->key);
        seen[index] = true;
        tn_status status = of->fields[index].at == SIZE_MAX
                               ? TN_OK
                               : read_value(in, &of->fields[index], entry, to);
        if (status)
            return status;
    }
    for (size_t i = 0; i < of->count; i++) {
        if (!seen[i] && !of->fields[i].optional)
            return report_corrupt(in, section->line + !section->line, "%s has no %s", of->section,
                                  of->fields[i].key);
    }
    return TN_OK;
}

static const char machine_word[] = "machine ";

static tn_status read_setup(const reading *in, const tni_form_section *section, tni_selections *to)
{
    tni_setup *setup = &to->setups[to->setup_count];
    const char *id = section->name + strlen(machine_word);
    if (tni_selections_setup(to, id))
        return report_corrupt(in, section->line, "duplicate machine %.60s", id);
    tn_status status = read_section(in, &setup_layout, section, 0, setup);
    if (status)
        return status;
    setup->id = id;
    setup->line = section->line;
    to->setup_count++;
    return TN_OK;
}

/* Checks that the problem is in canonical form, so that equal problems have equal texts. */
static tn_status check_problem(const reading *in, const tni_selection *selection)
{
    tn_op op;
    char device[8];
    tn_error why;
    tni_buffer text = {0};
    tn_status status = tni_problem_parse(selection->problem, &op, device, sizeof device, &why);
    if (status == TN_OUT_OF_MEMORY)
        return tni_no_memory(in->err, where, "a problem");
    if (status)
        return report_corrupt(in, selection->line, "%s", why.message);
    tni_problem_write(&op, device, &text);
    if (text.failed)
        status = tni_no_memory(in->err, where, "a problem");
    else if (device[0] || strcmp(text.text, selection->problem) != 0)
        status = report_corrupt(in, selection->line, "expected problem %.120s, got %.120s",
                                text.text, selection->problem);
    tni_buffer_release(&text);
    return status;
}

static tn_status read_selection(const reading *in, const tni_form_section *section,
                                tni_selections *to)
{
    tni_selection *one = &to->selections[to->count];
    tn_status status = read_section(in, &selection_layout, section, 0, one);
    if (status)
        return status;
    one->line = section->line;
    if (!one->kernel[0])
        return report_corrupt(in, one->line, "expected a kernel name, got none");
    if (!tni_selections_setup(to, one->device))
        return report_corrupt(in, one->line,
                              "expected a device with a [machine] section above, got \"%.60s\"",
                              one->device);
    to->count++;
    return check_problem(in, one);
}

static int compare_selections(const void *a, const void *b)
{
    const tni_selection *x = *(const tni_selection *const *)a,
                        *y = *(const tni_selection *const *)b;
    int order = strcmp(x->problem, y->problem);
    if (order == 0)
        order = strcmp(x->device, y->device);
    if (order == 0)
        order = strcmp(x->kernel, y->kernel);
    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static bool are_same(const tni_selection *a, const tni_selection *b)
{
    return strcmp(a->problem, b->problem) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->kernel, b->kernel) == 0;
}

static tn_status check_twice(const reading *in, const tni_selections *all)
{
    const tni_selection **sorted = tni_alloc_zeroed(all->count, sizeof *sorted);
    tn_status status = TN_OK;
    if (!sorted)
        return tni_no_memory(in->err, where, "an order of them");
    for (size_t i = 0; i < all->count; i++)
        sorted[i] = &all->selections[i];
    qsort(sorted, all->count, sizeof *sorted, compare_selections);
    for (size_t i = 1; !status && i < all->count; i++) {
        if (are_same(sorted[i - 1], sorted[i]))
            status =
                report_corrupt(in, sorted[i]->line, "%.160s on %.40s: already selected in line %u",
                               sorted[i]->problem, sorted[i]->device, sorted[i - 1]->line);
    }
    tni_release(sorted);
    return status;
}

static tn_status read_head(const reading *in, tni_selections *to)
{
    const tni_form_section *head = tni_form_section_get(to->form, 0);
    const char *format = tni_form_find(to->form, "", "format");
    int64_t number = 0;
    char place[TNI_FORM_PLACE];
    if (format && tni_number_parse(format, false, &number) && number != TNI_SELECTIONS_FORMAT)
        return tn_fail(in->err, TN_INCOMPATIBLE, 0, where, "%s: expected format %d, got %" PRId64,
                       tni_form_place(in->origin, head->entries[0].line, place),
                       TNI_SELECTIONS_FORMAT, number);
    tn_status status = read_section(in, &head_layout, head, 1, to);
    if (!status && number != TNI_SELECTIONS_FORMAT)
        return report_corrupt(in, 1, "format: expected %d, got \"%.40s\"", TNI_SELECTIONS_FORMAT,
                              format);
    if (!status && to->strict > 1)
        return report_corrupt(in, 1, "strict: expected 0 or 1, got %" PRId64, to->strict);
    return status;
}

static tn_status read_sections(const reading *in, tni_selections *to)
{
    tn_status status = TN_OK;
    size_t count = tni_form_section_count(to->form);
    to->setups = tni_alloc_zeroed(count, sizeof *to->setups);
    to->selections = tni_alloc_zeroed(count, sizeof *to->selections);
    if (!to->setups || !to->selections)
        return tni_no_memory(in->err, where, "selections");
    for (size_t i = 1; !status && i < count; i++) {
        const tni_form_section *section = tni_form_section_get(to->form, i);
        if (strcmp(section->name, "selection") == 0)
            status = read_selection(in, section, to);
        else if (strncmp(section->name, machine_word, strlen(machine_word)) == 0)
            status = read_setup(in, section, to);
        else
            status = report_corrupt(in, section->line,
                                    "expected [machine DEVICE] or [selection], got [%.60s]",
                                    section->name);
    }
    return status;
}

/* The checksum. */

static const char checksum_word[] = "checksum = sha256:";
enum { CHECKSUM_LINE = sizeof checksum_word - 1 + TNI_SHA256_HEX - 1 };

/* Covers all bytes except CR, which the form accepts only before LF. */
static void checksum_of(const char *text, size_t length, char out[TNI_SHA256_HEX])
{
    unsigned char digest[TNI_SHA256_SIZE];
    tni_sha256 hash;
    tni_sha256_begin(&hash);
    while (length > 0) {
        const char *end = memchr(text, '\r', length);
        size_t part = end ? (size_t)(end - text) : length;
        tni_sha256_add(&hash, text, part);
        part += end ? 1 : 0;
        text += part;
        length -= part;
    }
    tni_sha256_end(&hash, digest);
    tni_sha256_hex(digest, out);
}

static tn_status check_sum(const reading *in, const char *text, size_t length)
{
    char sum[TNI_SHA256_HEX];
    const char *end = length > CHECKSUM_LINE ? text + CHECKSUM_LINE : NULL;
    if (end && *end == '\r')
        end++;
    if (!end || end == text + length || *end != '\n' ||
        memcmp(text, checksum_word, strlen(checksum_word)) != 0)
        return report_corrupt(in, 1, "expected \"%s\" and %d digits", checksum_word,
                              TNI_SHA256_HEX - 1);
    end++;
    checksum_of(end, length - (size_t)(end - text), sum);
    if (memcmp(text + strlen(checksum_word), sum, TNI_SHA256_HEX - 1) != 0)
        return report_corrupt(
            in, 1,
            "the checksum does not match: the text was changed after it was written; "
            "write it again with `tenon lock write`");
    return TN_OK;
}

tn_status tni_selections_parse(const char *text, size_t length, const char *origin,
                               tni_selections *out, tn_error *err)
{
    const reading in = {origin, err};
    tni_selections made = {0};
    tn_status status = check_sum(&in, text, length);
    if (!status)
        status = tni_form_parse(text, length, origin, &made.form, err);
    if (!status)
        status = read_head(&in, &made);
    if (!status)
        status = read_sections(&in, &made);
    if (!status)
        status = check_twice(&in, &made);
    if (status)
        tni_selections_release(&made);
    else
        *out = made;
    return status;
}

tn_status tni_selections_read(const char *path, tni_selections *out, tn_error *err)
{
    char *text = NULL;
    size_t size = 0;
    tn_status status = tni_file_read(path, TNI_SELECTIONS_LIMIT, &text, &size, err);
    if (!status)
        status = tni_selections_parse(text, size, path, out, err);
    tni_release(text);
    return status;
}

void tni_selections_release(tni_selections *selections)
{
    tni_release(selections->setups);
    tni_release(selections->selections);
    tni_form_release(selections->form);
    *selections = (tni_selections){0};
}

const tni_setup *tni_selections_setup(const tni_selections *selections, const char *id)
{
    for (size_t i = 0; i < selections->setup_count; i++) {
        if (strcmp(selections->setups[i].id, id) == 0)
            return &selections->setups[i];
    }
    return NULL;
}

/* Writing. */

static tn_status write_field(tni_buffer *to, const field *f, const void *from, tn_error *err)
{
    const char *at = (const char *)from + f->at;
    const char *text = NULL;
    char number[32];
    tni_buffer words = {0};
    int64_t value = 0;
    if (f->kind == TEXT)
        memcpy(&text, at, sizeof text);
    else
        memcpy(&value, at, sizeof value);
    if (f->optional && (text ? !text[0] : value == f->standard))
        return TN_OK;
    if (f->kind == NUMERICS) {
        tni_numerics_write((uint64_t)value, &words);
        text = tni_buffer_text(&words);
    } else if (f->kind == MICROSECONDS) {
        snprintf(number, sizeof number, "%" PRId64 ".%03d", value / 1000, (int)(value % 1000));
        text = number;
    } else if (f->kind == NUMBER) {
        snprintf(number, sizeof number, "%" PRId64, value);
        text = number;
    }
    tn_status status = words.failed ? tni_no_memory(err, where, f->key)
                                    : tni_form_write_entry(to, f->key, text, err);
    tni_buffer_release(&words);
    return status;
}

static tn_status write_section(tni_buffer *to, const layout *of, const char *name, const void *from,
                               tn_error *err)
{
    tn_status status = tni_form_write_section(to, name, err);
    for (size_t i = 0; !status && i < of->count; i++)
        status = write_field(to, &of->fields[i], from, err);
    return status;
}

tn_status tni_selections_begin(tni_buffer *to, bool strict, tn_error *err)
{
    tni_buffer_add(to, "# Which kernel computes which problem. Do not edit: the checksum covers "
                       "all lines below it.\n");
    tni_buffer_format(to, "format = %d\ntenon = %s\nstrict = %d\n", TNI_SELECTIONS_FORMAT,
                      tn_version(), strict);
    return to->failed ? tni_no_memory(err, where, "the text") : TN_OK;
}

tn_status tni_selections_add_setup(tni_buffer *to, const tni_setup *setup, tn_error *err)
{
    tni_buffer name = {0};
    tni_buffer_format(&name, "%s%s", machine_word, setup->id);
    tn_status status = name.failed ? tni_no_memory(err, where, "the text")
                                   : write_section(to, &setup_layout, name.text, setup, err);
    tni_buffer_release(&name);
    return status;
}

tn_status tni_selections_add(tni_buffer *to, const tni_selection *selection, tn_error *err)
{
    return write_section(to, &selection_layout, "selection", selection, err);
}

tn_status tni_selections_sign(tni_buffer *to, tn_error *err)
{
    char sum[TNI_SHA256_HEX];
    tni_buffer whole = {0};
    if (!to->failed) {
        checksum_of(tni_buffer_text(to), to->length, sum);
        tni_buffer_format(&whole, "%s%s\n", checksum_word, sum);
        tni_buffer_add_part(&whole, tni_buffer_text(to), to->length);
    }
    if (to->failed || whole.failed) {
        tni_buffer_release(&whole);
        return tni_no_memory(err, where, "the text");
    }
    tni_buffer_release(to);
    *to = whole;
    return TN_OK;
}
