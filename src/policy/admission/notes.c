#include "notes.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/number.h"
#include "base/words.h"
#include "op/op.h"
#include "tenon/module/op/attention_backward.h"

/* The position in a list that is being read. */
typedef struct reading {
    const char *origin;
    const tni_form_entry *entry;
    tni_note *to;
    tn_error *err;
} reading;

TN_PRINTF(2, 3)
static tn_status report_entry(const reading *r, const char *format, ...)
{
    char place[TNI_FORM_PLACE], text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tn_fail(r->err, TN_CORRUPT, 0, "notes", "%s: %s = \"%.60s\": %s",
                   tni_form_place(r->origin, r->entry->line, place), r->entry->key, r->entry->value,
                   text);
}

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

static tn_status read_versions(const reading *r)
{
    char low[24], high[24];
    const char *text = r->entry->value, *dots = strstr(text, "..");
    size_t length = dots ? (size_t)(dots - text) : strlen(text);
    if (length >= sizeof low || (dots && strlen(dots + 2) >= sizeof high))
        return report_entry(r, "expected A or A..B");
    memcpy(low, text, length);
    low[length] = '\0';
    tn_text_fit(high, sizeof high, dots ? dots + 2 : low);
    if (!read_version(low, &r->to->version_low) || !read_version(high, &r->to->version_high) ||
        r->to->version_low > r->to->version_high)
        return report_entry(
            r, "expected A or A..B, each a number or a version such as 1.2.3, the lower "
               "one first");
    return TN_OK;
}

static tn_status read_dtypes(const reading *r)
{
    const char *at = r->entry->value;
    char word[32], hint[TNI_HINT];
    size_t count = 0;
    while (next_word(&at, word, sizeof word)) {
        if (count == TNI_NOTE_WORDS)
            return report_entry(r, "expected at most %d words", TNI_NOTE_WORDS);
        r->to->dtypes[count] = tni_dtype_find(word);
        if (!r->to->dtypes[count++])
            return report_entry(r, "no dtype \"%s\"%s", word,
                                tni_words_hint(tni_dtype_nearest(word), hint));
    }
    return count && !at[strspn(at, " \t,")] ? TN_OK
                                            : report_entry(r, "expected words separated by commas");
}

static tn_status read_architectures(const reading *r)
{
    const char *at = r->entry->value;
    size_t count = 0;
    while (count < TNI_NOTE_WORDS &&
           next_word(&at, r->to->architectures[count], sizeof r->to->architectures[count]))
        count++;
    return count && !at[strspn(at, " \t,")]
               ? TN_OK
               : report_entry(r, "expected 1 to %d words separated by commas", TNI_NOTE_WORDS);
}

static tn_status read_op(const reading *r)
{
    char hint[TNI_HINT];
    const tni_op_class *class = tni_op_class_find(r->entry->value);
    if (!class)
        return report_entry(r, "unknown operator%s",
                            tni_words_hint(tni_op_class_nearest(r->entry->value), hint));
    r->to->op = class->kind;
    return TN_OK;
}

/* Reads the feature names of the op. The op must come before them. */
static tn_status read_uses(const reading *r)
{
    const tni_op_class *class = tni_op_class_of(r->to->op);
    const char *at = r->entry->value;
    char word[32];
    if (!class)
        return report_entry(r, "expected an op before it, whose features these are");
    while (next_word(&at, word, sizeof word)) {
        int32_t bit = 0;
        while (class->uses[bit] && strcmp(class->uses[bit], word) != 0)
            bit++;
        if (!class->uses[bit])
            return report_entry(r, "%s has no feature \"%s\"", class->word, word);
        r->to->uses |= UINT64_C(1) << bit;
    }
    return r->to->uses && !at[strspn(at, " \t,")]
               ? TN_OK
               : report_entry(r, "expected words separated by commas");
}

/* For keys that only attention has. The op must come before them. */
static bool is_of_attention(const reading *r)
{
    return r->to->op == TN_OP_ATTENTION || r->to->op == TN_OP_ATTENTION_BACKWARD;
}

static tn_status read_keys(const reading *r)
{
    if (!is_of_attention(r))
        return report_entry(r, "expected op = attention or attention-backward before it");
    return tni_number_parse(r->entry->value, false, &r->to->keys) && r->to->keys > 0
               ? TN_OK
               : report_entry(r, "expected a number above 0");
}

static tn_status read_causal(const reading *r)
{
    const bool yes = strcmp(r->entry->value, "yes") == 0;
    if (!is_of_attention(r))
        return report_entry(r, "expected op = attention or attention-backward before it");
    if (!yes && strcmp(r->entry->value, "no") != 0)
        return report_entry(r, "expected yes or no");
    r->to->causal = yes ? TNI_NOTE_YES : TNI_NOTE_NO;
    return TN_OK;
}

/* Returns the note's text field for a key. */
static const char **text_of(tni_note *note, const char *key)
{
    const struct {
        const char *key;
        const char **to;
    } texts[] = {{"library", &note->library},
                 {"kernel", &note->kernel},
                 {"platform", &note->platform},
                 {"reason", &note->reason},
                 {"source", &note->source}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(texts[i].key, key) == 0)
            return texts[i].to;
    }
    return NULL;
}

static tn_status read_entry(const reading *r)
{
    static const struct {
        const char *key;
        tn_status (*take)(const reading *r);
    } keys[] = {{"versions", read_versions},
                {"dtypes", read_dtypes},
                {"architectures", read_architectures},
                {"op", read_op},
                {"uses", read_uses},
                {"keys", read_keys},
                {"causal", read_causal}};
    const char **text = text_of(r->to, r->entry->key);
    if (text) {
        *text = r->entry->value;
        return r->entry->value[0] ? TN_OK : report_entry(r, "expected a word");
    }
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(keys[i].key, r->entry->key) == 0)
            return keys[i].take(r);
    }
    return report_entry(r, "unknown key; valid keys: library kernel versions op dtypes uses keys "
                           "causal platform architectures reason source");
}

static tn_status read_section(const tni_form_section *section, const char *origin, tni_note *out,
                              tn_error *err)
{
    char place[TNI_FORM_PLACE];
    tn_status status = TN_OK;
    *out = (tni_note){.name = section->name, .version_low = -1, .version_high = -1};
    for (size_t i = 0; i < section->count && !status; i++)
        status = read_entry(&(reading){origin, &section->entries[i], out, err});
    if (!status && !out->library == !out->kernel)
        status = tn_fail(err, TN_CORRUPT, 0, "notes", "%s: [%.60s]: expected a library or a kernel",
                         tni_form_place(origin, section->line, place), section->name);
    return status;
}

static tn_status read_sections(tni_notes *io, const char *origin, tn_error *err)
{
    const tni_form_section *outside = tni_form_section_get(io->form, 0);
    size_t sections = tni_form_section_count(io->form) - 1;
    char place[TNI_FORM_PLACE];
    tn_status status = TN_OK;
    if (outside->count > 0)
        return tn_fail(err, TN_CORRUPT, 0, "notes", "%s: expected a section before it",
                       tni_form_place(origin, outside->entries[0].line, place));
    io->notes = tni_alloc_zeroed(sections, sizeof *io->notes);
    if (!io->notes)
        return tni_no_memory(err, "notes", "a list of kernels");
    for (; io->count < sections && !status; io->count++)
        status = read_section(tni_form_section_get(io->form, io->count + 1), origin,
                              &io->notes[io->count], err);
    return status;
}

tn_status tni_notes_parse(const char *text, size_t length, const char *origin, tni_notes *out,
                          tn_error *err)
{
    tni_notes made = {0};
    tn_status status = tni_form_parse(text, length, origin, &made.form, err);
    if (!status)
        status = read_sections(&made, origin, err);
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
    size_t i = 0;
    while (note->architectures[i][0] && strcmp(note->architectures[i], architecture) != 0)
        i++;
    return !note->architectures[0][0] || note->architectures[i][0];
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
        if (version && name && (!op || is_of_op(note, op)) &&
            (!note->platform || strcmp(note->platform, platform) == 0) &&
            is_of_architecture(note, architecture))
            return note;
    }
    return NULL;
}
