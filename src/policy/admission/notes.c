#include "notes.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/schema.h"
#include "base/words.h"
#include "device/description_values.h"
#include "op/op.h"
#include "tenon/module/op/attention_backward.h"

/* Reads the next word of a comma-separated list; returns false at the end and for a word that is
 * too long. */
static bool next_word(const char **at, char *out, size_t size)
{
    const char *from = *at + strspn(*at, " \t,");
    size_t length = strcspn(from, ","), end = length;
    while (end > 0 && (from[end - 1] == ' ' || from[end - 1] == '\t'))
        end--;
    if (end == 0 || end >= size)
        return false;
    memcpy(out, from, end);
    out[end] = '\0';
    *at = from + length;
    return true;
}

/* Converts 1.2.3 to major * 10000 + minor * 100 + patch; returns a plain number unchanged. */
static bool read_version(const char *text, int64_t *out)
{
    int64_t parts[3] = {0, 0, 0}, value = 0;
    size_t count = 0;
    char part[20];
    if (tni_number_parse(text, false, out))
        return true;
    while (count < 3) {
        size_t length = strcspn(text, ".");
        if (length == 0 || length >= sizeof part)
            return false;
        memcpy(part, text, length);
        part[length] = '\0';
        if (!tni_number_parse(part, false, &parts[count]) || parts[count] > 99999 ||
            (count > 0 && parts[count] > 99))
            return false;
        count++;
        text += length;
        if (!*text)
            break;
        text++;
    }
    value = parts[0] * 10000 + parts[1] * 100 + parts[2];
    if (*text || count < 2)
        return false;
    *out = value;
    return true;
}

/* The types read the whole note. */

static bool read_versions(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    tni_note *note = at;
    char low[24], high[24];
    const char *dots = strstr(text, "..");
    size_t length = dots ? (size_t)(dots - text) : strlen(text);
    (void)key;
    if (length < sizeof low && (!dots || strlen(dots + 2) < sizeof high)) {
        memcpy(low, text, length);
        low[length] = '\0';
        tn_text_fit(high, sizeof high, dots ? dots + 2 : low);
        if (read_version(low, &note->version_low) && read_version(high, &note->version_high) &&
            note->version_low <= note->version_high)
            return true;
    }
    return tni_need_set(need, "A or A..B, each a number or a version such as 1.2.3, the lower one "
                              "first");
}

static bool read_dtypes(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    (void)key;
    return tni_value_dtypes(text, ((tni_note *)at)->dtypes, need);
}

static bool read_words(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    tni_note_words *words = at;
    size_t count = 0;
    (void)key;
    while (count < TNI_NOTE_WORDS &&
           next_word(&text, words->word[count], sizeof words->word[count]))
        count++;
    return (count && !text[strspn(text, " \t,")]) ||
           tni_need_set(need, "1 to %d words of at most 31 characters, separated by commas",
                        TNI_NOTE_WORDS);
}

static bool has_word(const tni_note_words *words, const char *word)
{
    size_t i = 0;
    while (words->word[i][0] && strcmp(words->word[i], word) != 0)
        i++;
    return words->word[i][0];
}

static bool read_op(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    char hint[TNI_HINT];
    const tni_op_class *class = tni_op_class_find(text);
    (void)key;
    if (!class)
        return tni_need_set(need, "an operator%s",
                            tni_words_hint(tni_op_class_nearest(text), hint));
    ((tni_note *)at)->op = class->kind;
    return true;
}

/* Reads the feature names of the op. The op must come before them. */
static bool read_uses(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    tni_note *note = at;
    const tni_op_class *class = tni_op_class_of(note->op);
    char word[32];
    (void)key;
    if (!class)
        return tni_need_set(need, "an op before it, whose features these are");
    while (next_word(&text, word, sizeof word)) {
        int32_t bit = 0;
        while (class->uses[bit] && strcmp(class->uses[bit], word) != 0)
            bit++;
        if (!class->uses[bit])
            return tni_need_set(need, "features of %s, got \"%s\"", class->word, word);
        note->uses |= UINT64_C(1) << bit;
    }
    return (note->uses && !text[strspn(text, " \t,")]) ||
           tni_need_set(need, "words separated by commas");
}

/* For keys that only attention has. The op must come before them. */
static bool needs_attention(const tni_note *note, tni_need *need)
{
    return note->op == TN_OP_ATTENTION || note->op == TN_OP_ATTENTION_BACKWARD ||
           tni_need_set(need, "op = attention or attention-backward before it");
}

static bool read_keys(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    tni_note *note = at;
    (void)key;
    if (!needs_attention(note, need))
        return false;
    return (tni_number_parse(text, false, &note->keys) && note->keys > 0) ||
           tni_need_set(need, "a number above 0");
}

static bool read_causal(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    tni_note *note = at;
    const bool yes = strcmp(text, "yes") == 0;
    (void)key;
    if (!needs_attention(note, need))
        return false;
    if (!yes && strcmp(text, "no") != 0)
        return tni_need_set(need, "yes or no");
    note->causal = yes ? TNI_NOTE_YES : TNI_NOTE_NO;
    return true;
}

#define TYPE(name) static const tni_schema_type name##_type = {read_##name, NULL};
TYPE(versions)
TYPE(dtypes)
TYPE(words)
TYPE(op)
TYPE(uses)
TYPE(keys)
TYPE(causal)

#define TEXT(field)                                                                   \
    {                                                                                 \
        .word = #field, .type = &tni_schema_text, .offset = offsetof(tni_note, field) \
    }
static const tni_schema_key note_keys[] = {
    TEXT(library),
    TEXT(kernel),
    TEXT(platform),
    TEXT(reason),
    TEXT(source),
    {.word = "versions", .type = &versions_type},
    {.word = "dtypes", .type = &dtypes_type},
    {.word = "architectures", .type = &words_type, .offset = offsetof(tni_note, architectures)},
    {.word = "without", .type = &words_type, .offset = offsetof(tni_note, without)},
    {.word = "op", .type = &op_type},
    {.word = "uses", .type = &uses_type},
    {.word = "keys", .type = &keys_type},
    {.word = "causal", .type = &causal_type},
};
static const tni_schema note_schema = {.keys = note_keys, .count = TNI_SCHEMA_COUNT(note_keys)};

static tn_status read_section(const tni_schema_source *source, const tni_form_section *section,
                              tni_note *out)
{
    *out = (tni_note){.name = section->name, .version_low = -1, .version_high = -1};
    tn_status status = tni_schema_read(source, &note_schema, section, out);
    if (!status && !out->library == !out->kernel)
        status = tni_schema_reject(source, section->line, "[%s]: expected a library or a kernel",
                                   tni_show(section->name).text);
    return status;
}

static tn_status read_sections(const tni_schema_source *source, tni_notes *io)
{
    const tni_form_section *outside = tni_form_section_get(io->form, 0);
    size_t sections = tni_form_section_count(io->form) - 1;
    tn_status status = TN_OK;
    if (outside->count > 0)
        return tni_schema_reject(source, outside->entries[0].line, "expected a section before it");
    io->notes = tni_alloc_zeroed(sections, sizeof *io->notes);
    if (!io->notes)
        return tni_no_memory(source->err, source->where, "a list of kernels");
    for (; io->count < sections && !status; io->count++)
        status = read_section(source, tni_form_section_get(io->form, io->count + 1),
                              &io->notes[io->count]);
    return status;
}

tn_status tni_notes_parse(const char *text, size_t length, const char *origin, tni_notes *out,
                          tn_error *err)
{
    const tni_schema_source source = {origin, "notes", TN_CORRUPT, err};
    tni_notes made = {0};
    tn_status status = tni_form_parse(text, length, origin, &made.form, err);
    if (!status)
        status = read_sections(&source, &made);
    if (status)
        tni_notes_release(&made);
    else
        *out = made;
    return status;
}

void tni_notes_release(tni_notes *notes)
{
    tni_form_release(notes->form);
    tni_release(notes->notes);
    *notes = (tni_notes){0};
}

static bool is_of_library(const tni_note *note, const tni_kernel *kernel)
{
    if (strcmp(note->library, "none") == 0)
        return !kernel->row->library;
    return tni_words_same(note->library, kernel->names.library) ||
           (kernel->names.library_other[0] &&
            tni_words_same(note->library, kernel->names.library_other));
}

/* Whether the last part of the kernel's name, its instruction set, is one that the note leaves
 * out. */
static bool is_left_out(const tni_note *note, const tni_kernel *kernel)
{
    const char *last = strrchr(kernel->row->name, '.');
    return last && has_word(&note->without, last + 1);
}

/* Whether no query sees a key after its position, for sequences that have all their keys. A single
 * query at the end sees all keys under any bound; kernels get it without the bound. */
static bool is_causal(const tn_op *op)
{
    const uint64_t others =
        TN_ATTENTION_USES_LENGTHS | TN_ATTENTION_USES_PACKED | TN_ATTENTION_USES_OFFSET;
    return TN_PARAMS(op, attention)->right == 0 && TN_PARAMS(op, attention)->queries > 1 &&
           !(op->uses & others);
}

static bool is_of_bounds(const tni_note *note, const tn_op *op)
{
    const tn_attention_op *at = tn_op_attention(op);
    if (!at || (!note->keys && !note->causal))
        return true;
    return at->keys >= note->keys &&
           (note->causal == TNI_NOTE_EITHER || (note->causal == TNI_NOTE_YES) == is_causal(op));
}

static bool is_of_op(const tni_note *note, const tn_op *op)
{
    const tn_layout *first = &op->operand[0];
    size_t i = 0;
    if (note->op && note->op != op->kind)
        return false;
    if ((note->uses && !(note->uses & op->uses)) || !is_of_bounds(note, op))
        return false;
    if (!first->dtype)
        first = &op->operand[tni_op_class_of(op->kind)->output];
    while (note->dtypes[i] && note->dtypes[i] != first->dtype)
        i++;
    return !note->dtypes[0] || note->dtypes[i];
}

static bool is_of_architecture(const tni_note *note, const char *architecture)
{
    return !note->architectures.word[0][0] || has_word(&note->architectures, architecture);
}

const tni_note *tni_notes_find(const tni_notes *notes, const tni_kernel *kernel, const tn_op *op,
                               const char *platform, const char *architecture,
                               int64_t library_version)
{
    for (size_t i = 0; i < notes->count; i++) {
        const tni_note *note = &notes->notes[i];
        bool version = note->version_low < 0 || (library_version >= note->version_low &&
                                                 library_version <= note->version_high);
        bool name = note->kernel ? strcmp(note->kernel, kernel->row->name) == 0
                                 : is_of_library(note, kernel);
        if (version && name && !is_left_out(note, kernel) && (!op || is_of_op(note, op)) &&
            (!note->platform || strcmp(note->platform, platform) == 0) &&
            is_of_architecture(note, architecture))
            return note;
    }
    return NULL;
}
