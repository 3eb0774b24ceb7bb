#include "selection.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/schema.h"
#include "op/op.h"
#include "os/file.h"
#include "os/sha256.h"
#include "tenon/module/kernel.h"
#include "tenon/version.h"

#include <inttypes.h>
#include <stdlib.h>

static const char where[] = "selections";

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
static bool read_numerics(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    uint64_t bits = 0;
    (void)key;
    for (size_t i = 0; i < NUMERICS_COUNT && *text; i++) {
        size_t length = strlen(numerics_words[i].word);
        if (strncmp(text, numerics_words[i].word, length) != 0)
            continue;
        bool more = strncmp(text + length, ", ", 2) == 0 && text[length + 2];
        if (text[length] && !more)
            break;
        bits |= numerics_words[i].bit;
        text += length + (more ? 2 : 0);
    }
    if (*text)
        return tni_need_set(need, "names of numeric properties");
    memcpy(at, &bits, sizeof bits);
    return true;
}

static bool write_numerics(const tni_schema_key *key, const void *at, tni_buffer *out)
{
    uint64_t bits;
    (void)key;
    memcpy(&bits, at, sizeof bits);
    tni_numerics_write(bits, out);
    return bits != 0;
}

/* "12.345": always three digits after the point, independent of the locale. */
static bool read_microseconds(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    char digits[24];
    const char *point = strchr(text, '.');
    int64_t ns;
    size_t length = strlen(text), whole = point ? (size_t)(point - text) : 0;
    (void)key;
    if (whole > 0 && length == whole + 4 && length < sizeof digits) {
        memcpy(digits, text, whole);
        memcpy(digits + whole, point + 1, 4);
        if (tni_number_parse(digits, false, &ns)) {
            memcpy(at, &ns, sizeof ns);
            return true;
        }
    }
    return tni_need_set(need, "microseconds with three decimals");
}

static bool write_microseconds(const tni_schema_key *key, const void *at, tni_buffer *out)
{
    int64_t ns;
    (void)key;
    memcpy(&ns, at, sizeof ns);
    tni_buffer_format(out, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
    return ns != 0;
}

static const tni_schema_type numerics_type = {read_numerics, write_numerics};
static const tni_schema_type microseconds_type = {read_microseconds, write_microseconds};

#define KEY(struct_of, word_of, field, type_of, ...)                                           \
    {                                                                                          \
        .word = word_of, .type = &(type_of), .offset = offsetof(struct_of, field), __VA_ARGS__ \
    }
#define TEXT(struct_of, field, is_required) \
    KEY(struct_of, #field, field, tni_schema_text, .required = (is_required))
#define NUMBER(struct_of, field, ...) \
    KEY(struct_of, #field, field, tni_schema_number, .most = INT64_MAX, __VA_ARGS__)

static const tni_schema_key head_keys[] = {
    {.word = "checksum", .type = &tni_schema_ignored},
    {.word = "format", .type = &tni_schema_ignored, .required = true},
    TEXT(tni_selections, tenon, true),
    KEY(tni_selections, "strict", strict, tni_schema_number, .most = 1, .required = true),
};
static const tni_schema_key setup_keys[] = {
    TEXT(tni_setup, name, false),      TEXT(tni_setup, architecture, false),
    TEXT(tni_setup, driver, false),    NUMBER(tni_setup, threads, .standard = 0),
    TEXT(tni_setup, libraries, false),
};
static const tni_schema_key selection_keys[] = {
    TEXT(tni_selection, problem, true),
    TEXT(tni_selection, device, true),
    TEXT(tni_selection, kernel, true),
    NUMBER(tni_selection, version, .required = true),
    TEXT(tni_selection, module, false),
    TEXT(tni_selection, library, false),
    NUMBER(tni_selection, library_version, .standard = -1),
    KEY(tni_selection, "numerics", numerics, numerics_type, .required = false),
    TEXT(tni_selection, settings, false),
    KEY(tni_selection, "us", ns, microseconds_type, .required = false),
};
#define SCHEMA(keys_of)                                       \
    {                                                         \
        .keys = (keys_of), .count = TNI_SCHEMA_COUNT(keys_of) \
    }
static const tni_schema head_schema = SCHEMA(head_keys), setup_schema = SCHEMA(setup_keys);
static const tni_schema selection_schema = SCHEMA(selection_keys);

/* Reading. */

static tn_status read_setup(const tni_schema_source *in, const tni_form_section *section,
                            tni_selections *to)
{
    tni_setup *setup = &to->setups[to->setup_count];
    const char *id = tni_section_name(section, "machine");
    if (tni_selections_setup(to, id))
        return tni_schema_reject(in, section->line, "duplicate machine %.60s", id);
    *setup = (tni_setup){id, "", "", "", 0, "", section->line};
    tn_status status = tni_schema_read(in, &setup_schema, section, setup);
    if (status)
        return status;
    to->setup_count++;
    return TN_OK;
}

/* Checks that the problem is in canonical form, so that equal problems have equal texts. */
static tn_status check_problem(const tni_schema_source *in, const tni_selection *selection)
{
    tn_op op;
    char device[8];
    tn_error why;
    tni_buffer text = {0};
    tn_status status = tni_problem_parse(selection->problem, &op, device, sizeof device, &why);
    if (status == TN_OUT_OF_MEMORY)
        return tni_no_memory(in->err, where, "a problem");
    if (status)
        return tni_schema_reject(in, selection->line, "%s", why.message);
    tni_problem_write(&op, device, &text);
    if (text.failed)
        status = tni_no_memory(in->err, where, "a problem");
    else if (device[0] || strcmp(text.text, selection->problem) != 0)
        status = tni_schema_reject(in, selection->line, "expected problem %.120s, got %.120s",
                                   text.text, selection->problem);
    tni_buffer_release(&text);
    return status;
}

static tn_status read_selection(const tni_schema_source *in, const tni_form_section *section,
                                tni_selections *to)
{
    tni_selection *one = &to->selections[to->count];
    *one = (tni_selection){
        .module = "", .library = "", .library_version = -1, .settings = "", .line = section->line};
    tn_status status = tni_schema_read(in, &selection_schema, section, one);
    if (status)
        return status;
    if (!tni_selections_setup(to, one->device))
        return tni_schema_reject(in, one->line,
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

static tn_status check_twice(const tni_schema_source *in, const tni_selections *all)
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
            status = tni_schema_reject(in, sorted[i]->line,
                                       "%.160s on %.40s: already selected in line %u",
                                       sorted[i]->problem, sorted[i]->device, sorted[i - 1]->line);
    }
    tni_release(sorted);
    return status;
}

static tn_status read_head(const tni_schema_source *in, tni_selections *to)
{
    const tni_form_section *head = tni_form_section_get(to->form, 0);
    const char *format = tni_form_find(to->form, "", "format");
    int64_t number = 0;
    char place[TNI_FORM_PLACE];
    if (format && tni_number_parse(format, false, &number) && number != TNI_SELECTIONS_FORMAT)
        return tn_fail(in->err, TN_INCOMPATIBLE, 0, where, "%s: expected format %d, got %" PRId64,
                       tni_form_place(in->origin, head->entries[0].line, place),
                       TNI_SELECTIONS_FORMAT, number);
    tn_status status = tni_schema_read(in, &head_schema, head, to);
    if (!status && number != TNI_SELECTIONS_FORMAT)
        return tni_schema_reject(in, 1, "format: expected %d, got \"%.40s\"", TNI_SELECTIONS_FORMAT,
                                 format);
    return status;
}

static tn_status read_sections(const tni_schema_source *in, tni_selections *to)
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
        else if (tni_section_name(section, "machine") && strcmp(section->name, "machine") != 0)
            status = read_setup(in, section, to);
        else
            status = tni_schema_reject(in, section->line,
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

static tn_status check_sum(const tni_schema_source *in, const char *text, size_t length)
{
    char sum[TNI_SHA256_HEX];
    const char *end = length > CHECKSUM_LINE ? text + CHECKSUM_LINE : NULL;
    if (end && *end == '\r')
        end++;
    if (!end || end == text + length || *end != '\n' ||
        memcmp(text, checksum_word, strlen(checksum_word)) != 0)
        return tni_schema_reject(in, 1, "expected \"%s\" and %d digits", checksum_word,
                                 TNI_SHA256_HEX - 1);
    end++;
    checksum_of(end, length - (size_t)(end - text), sum);
    if (memcmp(text + strlen(checksum_word), sum, TNI_SHA256_HEX - 1) != 0)
        return tni_schema_reject(
            in, 1,
            "the checksum does not match: the text was changed after it was written; "
            "write it again with `tenon lock write`");
    return TN_OK;
}

tn_status tni_selections_parse(const char *text, size_t length, const char *origin,
                               tni_selections *out, tn_error *err)
{
    const tni_schema_source in = {origin, where, TN_CORRUPT, err};
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
    return tni_schema_write_section(&setup_schema, "machine", setup->id, setup, to, err);
}

tn_status tni_selections_add(tni_buffer *to, const tni_selection *selection, tn_error *err)
{
    return tni_schema_write_section(&selection_schema, "selection", "", selection, to, err);
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
