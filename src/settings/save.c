/* Writing a value into the configuration file; everything else in it is preserved. */
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/form.h"
#include "base/form_text.h"
#include "os/file.h"
#include "os/replace.h"
#include "process.h"
#include "views.h"

static const char where[] = "tn_settings_save";

/* The position of an entry in the file's text. For a new entry `begin` equals `end`. */
typedef struct place {
    const char *key; /* as written in the file */
    const char *begin;
    const char *end;
} place;

static const char *next_line(const char *at)
{
    const char *feed = strchr(at, '\n');
    return feed ? feed + 1 : at + strlen(at);
}

/* The start of a line; lines are numbered from 1. */
static const char *line_at(const char *text, uint32_t line)
{
    static const char mark[] = "\xEF\xBB\xBF";
    if (strncmp(text, mark, strlen(mark)) == 0)
        text += strlen(mark);
    for (; line > 1; line--)
        text = next_line(text);
    return text;
}

static bool opens_block(const char *entry)
{
    const char *value = strchr(entry, '=') + 1;
    return strncmp(value + strspn(value, " \t"), TNI_FORM_BLOCK, strlen(TNI_FORM_BLOCK)) == 0;
}

/* The end of the entry that begins here: one line, or all lines of a block. */
static const char *entry_end(const char *at)
{
    bool inside = opens_block(at);
    at = next_line(at);
    while (inside) {
        inside = strncmp(at + strspn(at, " \t"), TNI_FORM_BLOCK, strlen(TNI_FORM_BLOCK)) != 0;
        at = next_line(at);
    }
    return at;
}

/* The last entry of the key; else the position before the first section, or the end. */
static place find_place(const char *text, const tni_form *form, const char *key)
{
    place found = {.key = key};
    const char *free_place = text + strlen(text);
    for (size_t i = tni_form_section_count(form); i-- > 0;) {
        const tni_form_section *section = tni_form_section_get(form, i);
        char whole[TNI_SOURCES_KEY];
        if (section->line)
            free_place = line_at(text, section->line);
        for (size_t j = section->count; j-- > 0 && !found.begin;) {
            const tni_form_entry *entry = &section->entries[j];
            if (strcmp(tni_sources_key(section->name, entry->key, whole), key) == 0)
                found = (place){entry->key, line_at(text, entry->line), NULL};
        }
    }
    if (found.begin)
        found.end = entry_end(found.begin);
    else
        found.begin = found.end = free_place;
    return found;
}

/* Writes the file's new text; *out_line is the line of the entry in it. */
static tn_status edit_text(const char *text, place at, const char *value, tni_buffer *out,
                           uint32_t *out_line, tn_error *err)
{
    uint32_t line = 1;
    tni_buffer_add_part(out, text, (size_t)(at.begin - text));
    if (out->length > 0 && out->text[out->length - 1] != '\n' && at.begin != line_at(text, 1))
        tni_buffer_add_char(out, '\n');
    for (size_t i = 0; i < out->length; i++)
        line += out->text[i] == '\n';
    tn_status status = tni_form_write_entry(out, at.key, value, err);
    tni_buffer_add(out, at.end);
    *out_line = line;
    return !status && out->failed ? tni_no_memory(err, where, "the file") : status;
}

/* The problem reported for a place; NULL for none. */
static const char *problem_at(const tni_sources *sources, const char *place_of)
{
    size_t length = strlen(place_of);
    for (size_t i = 0; i < sources->problem_count; i++) {
        const char *problem = sources->problems[i];
        if (strncmp(problem, place_of, length) == 0 && problem[length] == ':')
            return problem;
    }
    return NULL;
}

/* Checks that the value is read from `line`. */
static tn_status check_line(const tni_sources *sources, const tn_change *change, uint32_t line,
                            tn_error *err)
{
    tn_change rows[TNI_VIEW_MOST];
    char room[TNI_FORM_PLACE];
    size_t count = tni_change_rows(change, rows);
    if (sources->starved)
        return tni_no_memory(err, where, "the file");
    const char *problem = problem_at(sources, tni_form_place(sources->file, line, room));
    if (problem)
        return tn_fail(err, TN_REFUSED, 0, where, "%s", problem);
    for (size_t i = 0; i < count; i++) {
        uint32_t found = sources->line[rows[i].setting];
        if (found != line)
            return tn_fail(err, TN_REFUSED, 0, where, "%s %s",
                           tni_form_place(sources->file, found ? found : line, room),
                           found ? "has a different value and takes precedence; change that line"
                                 : "would be ignored; fix the problems of the file first");
    }
    return TN_OK;
}

/* Checks that a reader of the new text would take the value from it. */
static tn_status verify_text(const char *path, const tni_buffer *edited, const tn_change *change,
                             uint32_t line, tn_error *err)
{
    tni_sources read;
    tni_sources_of_text(path, edited->text, edited->length, &read);
    tn_status status = check_line(&read, change, line, err);
    tni_sources_release(&read);
    return status;
}

/* Edits the file. Must be called with its file lock held, as it reads the old text first. */
static tn_status save_value(const char *path, const tn_change *change, const char *value,
                            tn_error *err)
{
    char *text = NULL;
    size_t size = 0;
    uint32_t line = 0;
    tni_form *form = NULL;
    tni_buffer edited = {0};
    tn_status status = tni_file_read(path, TNI_SOURCES_LIMIT, &text, &size, err);
    if (status == TN_NOT_FOUND) {
        text = tni_text_copy("");
        if (!text)
            return tni_no_memory(err, where, "the file");
        status = TN_OK;
    }
    if (!status)
        status = tni_form_parse(text, size, path, &form, err);
    if (!status)
        status = edit_text(text, find_place(text, form, tn_setting_info(change->setting)->key),
                           value, &edited, &line, err);
    if (!status && edited.length > TNI_SOURCES_LIMIT)
        status = tn_fail(err, TN_REFUSED, 0, where, "%s would be longer than %d bytes", path,
                         TNI_SOURCES_LIMIT);
    if (!status)
        status = verify_text(path, &edited, change, line, err);
    if (!status)
        status = tni_file_replace_private(path, edited.text, edited.length, err);
    tni_buffer_release(&edited);
    tni_form_release(form);
    tni_release(text);
    return status;
}

/* Copies the value without surrounding blanks; NULL if out of memory. */
static char *value_of(const char *text)
{
    const char *value = strchr(text, '=') + 1, *end = value + strlen(value);
    value += strspn(value, " \t");
    while (end > value && tni_form_is_blank(end[-1]))
        end--;
    return tni_text_copy_part(value, (size_t)(end - value));
}

tn_status tn_settings_save(const char *text, tn_error *err)
{
    tn_change change;
    tn_status status = tn_setting_parse(text, &change, err);
    if (status)
        return status;
    const char *path = tni_settings_sources()->file;
    if (!path)
        return tn_fail(err, TN_UNAVAILABLE, 0, where,
                       "no configuration file: set TENON_CONFIG to a path, or HOME");
    tni_file_lock *lock = NULL;
    char *value = value_of(text);
    status =
        value ? tni_file_lock_acquire(path, &lock, err) : tni_no_memory(err, where, "the value");
    if (!status)
        status = save_value(path, &change, value, err);
    tni_file_lock_release(lock);
    tni_release(value);
    return status;
}
