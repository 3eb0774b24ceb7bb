/* Settings as a manual, as Markdown tables, and as JSON. */
#include "settings.h"

#include "text.h"

#include <stdlib.h>

typedef size_t write_value(const tn_context *context, tn_setting setting, char *out, size_t size);

static char *text_of(const tn_context *context, tn_setting setting, write_value *write)
{
    size_t size = write(context, setting, NULL, 0) + 1;
    char *text = malloc(size);
    if (text)
        (void)write(context, setting, text, size);
    return text;
}

static tn_status gather_row(const tn_context *context, tn_setting setting, found_setting *to,
                            tn_error *err)
{
    to->number = setting;
    to->facts = tn_setting_info(setting);
    to->origin.struct_size = sizeof to->origin;
    to->value = text_of(context, setting, tn_setting_write);
    to->effective = text_of(context, setting, tn_setting_write_resolved);
    if (!to->value || !to->effective)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "settings", "no memory for %s", to->facts->key);
    return tn_setting_origin(context, setting, &to->origin, err);
}

tn_status settings_gather(found_settings *out, tn_error *err)
{
    tn_context *context = NULL;
    memset(out, 0, sizeof *out);
    tn_status status = tn_context_capture(&context, err);
    for (tn_setting i = 0; i < TN_SETTING_COUNT && !status; i++)
        status = gather_row(context, i, &out->rows[i], err);
    tn_context_release(context);
    if (status)
        settings_release(out);
    return status;
}

tn_status settings_gather_uses(found_settings *out, tn_setting one, tn_error *err)
{
    tn_status status = settings_gather(out, err);
    for (tn_setting i = 0; i < TN_SETTING_COUNT && !status; i++) {
        if (one != TN_SETTING_COUNT && i != one)
            continue;
        out->rows[i].use.struct_size = sizeof out->rows[i].use;
        status = tn_setting_use_get(i, &out->rows[i].use, err);
    }
    if (status)
        settings_release(out);
    return status;
}

void settings_release(found_settings *found)
{
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        free(found->rows[i].value);
        free(found->rows[i].effective);
    }
    memset(found, 0, sizeof *found);
}

const char *settings_shown(const char *value)
{
    return value[0] ? value : "(empty)";
}

static const char *key_of(tn_setting setting)
{
    return tn_setting_info(setting)->key;
}

/* Length of a key's first word; 0 for a key of one word: such keys form a group. */
static size_t group_of(const char *key)
{
    size_t length = strcspn(key, ".");
    return key[length] ? length : 0;
}

static bool is_of_group(tn_setting setting, tn_setting first)
{
    size_t length = group_of(key_of(first));
    return group_of(key_of(setting)) == length &&
           strncmp(key_of(setting), key_of(first), length) == 0;
}

static bool begins_group(tn_setting setting)
{
    for (tn_setting i = 0; i < setting; i++) {
        if (is_of_group(i, setting))
            return false;
    }
    return true;
}

/* Returns the group's heading in a static buffer. */
static const char *name_group(tn_setting first)
{
    static char name[64];
    int length = (int)group_of(key_of(first));
    snprintf(name, sizeof name, "%.*s", length, key_of(first));
    return length ? name : "general";
}

/* The longest key of the group that leaves room for a value on the line. */
static int measure_group(tn_setting first)
{
    enum { VALUE_LEAST = 24 };
    int width = 0;
    for (tn_setting i = first; i < TN_SETTING_COUNT; i++) {
        int length = (int)strlen(key_of(i));
        if (is_of_group(i, first) && length > width && length <= text_width() - VALUE_LEAST)
            width = length;
    }
    return width;
}

static void print_value(const found_setting *row, int width)
{
    text_line line = {0};
    bool differs = strcmp(row->value, row->facts->standard) != 0;
    text_add(&line, "%s", settings_shown(row->value));
    if (strcmp(row->value, row->effective) != 0)
        text_add(&line, " (%s holds)", row->effective);
    printf("  %s%-*s%s", paint(PAINT_STRONG), width, row->facts->key, paint(PAINT_NONE));
    if ((int)strlen(row->facts->key) > width)
        printf("\n  %*s", width, "");
    printf("  %s", paint(differs ? PAINT_ODD : PAINT_NONE));
    text_wrapped_on(width + 4, "", 0, line.text);
    printf("%s", paint(PAINT_NONE));
}

/* Returns the i-th reader if it is affected here, else ""; NULL past the end. */
static const char *affected_reader(const found_setting *row, size_t index)
{
    const char *reader = tn_setting_reader(row->number, index);
    return !reader || row->use.readers >> index & 1 ? reader : "";
}

/* Writes "matmul, attention"; "" if nothing is affected. */
static void list_readers(const found_setting *row, text_line *out)
{
    const char *reader;
    for (size_t i = 0; (reader = affected_reader(row, i)); i++) {
        if (reader[0])
            text_add_item(out, "%s", reader);
    }
}

static void print_row(const found_setting *row, int width)
{
    enum { INDENT = 6 };
    const tn_setting_facts *facts = row->facts;
    text_line effect = {0}, readers = {0}, origin = {0};
    print_value(row, width);
    list_readers(row, &readers);
    text_add(&effect, "%s; %s%s", facts->effect,
             row->use.used ? "read by " : "changes nothing here: ",
             row->use.used ? readers.text : row->use.reason);
    text_wrapped(INDENT, "", 0, effect.text);
    printf("%s", paint(PAINT_SOFT));
    if (strcmp(facts->kind, "bool") != 0)
        text_wrapped(INDENT, "allowed: ", 9, facts->allowed);
    if (strcmp(row->value, facts->standard) != 0)
        text_add(&origin, "default %s; ", settings_shown(facts->standard));
    if (row->origin.level != TN_LEVEL_DEFAULT)
        text_add(&origin, "set by the %s", row->origin.text);
    if (origin.length > 0)
        text_wrapped(INDENT, "", 0, origin.text);
    printf("%s", paint(PAINT_NONE));
}

static void print_introduction(void)
{
    const char *file = tn_settings_file();
    text_line line = {0};
    text_add(&line,
             "A value comes from the first source that sets it: the process (--set KEY=VALUE), "
             "the environment (TENON_ and the key in upper case, _ for a dot), the file (");
    text_add(&line, "%s), the default.", file[0] ? file : "none: neither TENON_CONFIG nor HOME");
    text_wrapped(0, "", 0, line.text);
}

static void print_end(const found_settings *found)
{
    int used = 0;
    text_line line = {0};
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++)
        used += found->rows[i].use.used;
    text_add(&line, "%d of %d settings can change something with the modules that are loaded here.",
             used, TN_SETTING_COUNT);
    putchar('\n');
    text_wrapped(0, "", 0, line.text);
}

void settings_print(const found_settings *found)
{
    print_introduction();
    for (tn_setting first = 0; first < TN_SETTING_COUNT; first++) {
        if (!begins_group(first))
            continue;
        int width = measure_group(first);
        putchar('\n');
        text_heading(name_group(first));
        for (tn_setting i = first; i < TN_SETTING_COUNT; i++) {
            if (is_of_group(i, first))
                print_row(&found->rows[i], width);
        }
    }
    print_end(found);
}

/* Prints a cell's text, or a dash. Cells must not contain '|'. */
static void print_cell(const char *text, const char *around)
{
    if (text[0])
        printf(" %s%s%s |", around, text, around);
    else
        printf(" - |");
}

static void print_markdown_row(const found_setting *row)
{
    const tn_setting_facts *facts = row->facts;
    text_line readers = {0};
    list_readers(row, &readers);
    printf("| `%s`<br>`%s` |", facts->key, facts->environment);
    print_cell(facts->standard, "`");
    print_cell(facts->allowed, "");
    printf(" %s%s |", facts->effect, facts->view ? " (a view)" : "");
    printf(" %s%s |",
           row->use.used ? "" : "nothing: ", row->use.used ? readers.text : row->use.reason);
    printf(" %s |\n", facts->since);
}

void settings_print_markdown(const found_settings *found)
{
    for (tn_setting first = 0; first < TN_SETTING_COUNT; first++) {
        if (!begins_group(first))
            continue;
        printf("%s### %s\n\n| key, variable | default | allowed | effect | read by | since |\n"
               "|---|---|---|---|---|---|\n",
               first ? "\n" : "", name_group(first));
        for (tn_setting i = first; i < TN_SETTING_COUNT; i++) {
            if (is_of_group(i, first))
                print_markdown_row(&found->rows[i]);
        }
    }
}

void settings_write_row(json *to, const found_setting *row)
{
    const tn_setting_facts *facts = row->facts;
    const char *reader;
    json_begin_object(to, NULL);
    json_text(to, "key", facts->key);
    json_text(to, "type", facts->kind);
    json_text(to, "value", row->value);
    json_text(to, "effective", row->effective);
    json_text(to, "default", facts->standard);
    json_text(to, "origin", row->origin.text);
    json_text(to, "level", tn_level_name(row->origin.level));
    json_text(to, "from", key_of(row->origin.from));
    json_text(to, "env", facts->environment);
    json_text(to, "allowed", facts->allowed);
    json_text(to, "effect", facts->effect);
    json_begin_list(to, "readers");
    for (size_t i = 0; (reader = affected_reader(row, i)); i++) {
        if (reader[0])
            json_text(to, NULL, reader);
    }
    json_end_list(to);
    json_bool(to, "used", row->use.used != 0);
    json_known_text(to, "unused_because", row->use.reason);
    json_bool(to, "view", facts->view != 0);
    json_bool(to, "process_only", facts->process_only != 0);
    json_text(to, "since", facts->since);
    json_end_object(to);
}
