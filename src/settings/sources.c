/* Reads the configuration file and the environment, once. Nothing here fails: an invalid value is
 * reported as a problem and ignored, the others are used; a file that cannot be parsed is ignored
 * as a whole. */
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/form.h"
#include "base/words.h"
#include "os/env.h"
#include "os/file.h"
#include "process.h"
#include "views.h"

static const char where[] = "settings", file_variable[] = "TENON_CONFIG";

/* Tenon's variables that are not settings. TENON_LOCK and TENON_LIBRARY are listed by name only. */
static const char *const others[] = {"TENON_PLATFORM", "TENON_MODULE_PATH", "TENON_LOCK",
                                     "TENON_LOG",      "TENON_CACHE",       "TENON_CONFIG",
                                     "TENON_LIBRARY",  "TENON_NO_SETUP"};
enum { OTHERS = sizeof others / sizeof others[0], PREFIX = sizeof "TENON_" - 1 };

/* A problem is dropped if there is no memory for it. */
TN_PRINTF(2, 3)
static void add_problem(tni_sources *sources, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    tni_text_format_list(text, sizeof text, format, arguments);
    va_end(arguments);
    if (sources->problem_count == TNI_PROBLEMS_MOST)
        return;
    tn_text_escape(text, sizeof text);
    bool last = sources->problem_count == TNI_PROBLEMS_MOST - 1;
    char *copy = tni_text_copy(last ? "there are more problems; fix these first" : text);
    if (copy)
        sources->problems[sources->problem_count++] = copy;
    else
        sources->starved = true;
}

void tni_sources_add_problem(tni_sources *sources, const char *problem)
{
    add_problem(sources, "%s", problem);
}

/* Records where the settings of a change got their values from. */
static void note_origins(tni_sources *sources, const tn_change *change, int32_t level,
                         uint32_t line)
{
    tn_change rows[TNI_VIEW_MOST];
    size_t count = tni_change_rows(change, rows);
    for (size_t i = 0; i < count; i++) {
        if (level == TN_LEVEL_FILE)
            sources->line[rows[i].setting] = line;
        else
            sources->variable[rows[i].setting] = change->setting;
    }
}

/* Applies one value of one level; `line` is that in the file. */
static tn_status apply_value(tni_sources *sources, tn_setting setting, const char *value,
                             int32_t level, uint32_t line, tn_error *err)
{
    tn_change change;
    tn_context *made = NULL;
    tn_status status = tni_value_parse(setting, value, &change, where, err);
    if (!status)
        status = tni_context_change(sources->context, &change, 1, level, level, where, &made, err);
    if (!status)
        status = tni_settings_check(made, err);
    if (status) {
        sources->starved = sources->starved || status == TN_OUT_OF_MEMORY;
        tn_context_release(made);
        return status;
    }
    tn_context_release(sources->context);
    sources->context = made;
    note_origins(sources, &change, level, line);
    return TN_OK;
}

const char *tni_sources_key(const char *section, const char *key, char room[TNI_SOURCES_KEY])
{
    snprintf(room, TNI_SOURCES_KEY, "%.120s%s%.120s", section, section[0] ? "." : "", key);
    return room;
}

static void take_entry(tni_sources *sources, const char *section, const tni_form_entry *entry)
{
    char key[TNI_SOURCES_KEY], place[TNI_FORM_PLACE];
    tn_error err;
    (void)tni_sources_key(section, entry->key, key);
    tni_form_place(sources->file, entry->line, place);
    tn_setting setting = tni_setting_find(key);
    tn_status status =
        setting < 0 ? tni_setting_unknown(key, where, &err)
                    : apply_value(sources, setting, entry->value, TN_LEVEL_FILE, entry->line, &err);
    if (status)
        add_problem(sources, "%s: %s", place, err.message);
}

static void take_text(tni_sources *sources, const char *text, size_t size)
{
    tni_form *form = NULL;
    tn_error err;
    tn_status status = tni_form_parse(text, size, sources->file, &form, &err);
    if (status) {
        sources->starved = sources->starved || status == TN_OUT_OF_MEMORY;
        add_problem(sources, "%s; the whole file is ignored", err.message);
        return;
    }
    for (size_t i = 0; i < tni_form_section_count(form); i++) {
        const tni_form_section *section = tni_form_section_get(form, i);
        for (size_t j = 0; j < section->count; j++)
            take_entry(sources, section->name, &section->entries[j]);
    }
    tni_form_release(form);
}

/* A file named by TENON_CONFIG must exist; the one in the home folder need not. */
static void read_file(tni_sources *sources)
{
    char *text = NULL;
    size_t size = 0;
    tn_error err;
    tn_status status = tni_file_read(sources->file, TNI_SOURCES_LIMIT, &text, &size, &err);
    if (!status)
        take_text(sources, text, size);
    else if (status != TN_NOT_FOUND)
        add_problem(sources, "%s", err.message);
    else if (tni_env_is_set(file_variable))
        add_problem(sources, "%s: %s", file_variable, err.message);
    tni_release(text);
}

static bool is_other(const char *name)
{
    for (size_t i = 0; i < OTHERS; i++) {
        if (strcmp(name, others[i]) == 0)
            return true;
    }
    return false;
}

/* The value of a variable that is set; reports a problem and returns NULL if the process runs with
 * elevated privileges. */
static const char *read_trusted(tni_sources *sources, const char *name)
{
    const char *value = tni_env_get(name);
    if (!value)
        add_problem(sources, "%s is ignored: the process runs with elevated privileges", name);
    return value;
}

static void apply_variable(tni_sources *sources, tn_setting setting, const char *name)
{
    tn_error err;
    const char *value = read_trusted(sources, name);
    if (value && apply_value(sources, setting, value, TN_LEVEL_ENVIRONMENT, 0, &err) != TN_OK)
        add_problem(sources, "%s: %s", name, err.message);
}

/* In table order, as the order of the environment is arbitrary. */
static void apply_variables(tni_sources *sources, bool views)
{
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const tn_setting_facts *facts = &tni_setting_row_of(i)->facts;
        if (facts->view == views && tni_env_is_set(facts->environment))
            apply_variable(sources, i, facts->environment);
    }
}

/* Compares names without the common prefix, or all short names would look similar. */
static void report_unknown_variable(tni_sources *sources, const char *name)
{
    const char *names[TN_SETTING_COUNT + OTHERS];
    char hint[TNI_HINT];
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++)
        names[i] = tni_setting_row_of(i)->facts.environment + PREFIX;
    for (size_t i = 0; i < OTHERS; i++)
        names[TN_SETTING_COUNT + i] = others[i] + PREFIX;
    const char *nearest = tni_words_nearest(name + PREFIX, names, TN_SETTING_COUNT + OTHERS);
    add_problem(sources, "%.100s: unknown variable%s", name,
                tni_words_hint(nearest ? nearest - PREFIX : NULL, hint));
}

static void report_unknown_variables(tni_sources *sources)
{
    const char *const *all = tni_env_all();
    for (; all && *all; all++) {
        char name[128];
        size_t length = strcspn(*all, "=");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1),
                 *all);
        if (strncmp(name, "TENON_", PREFIX) == 0 && tni_setting_of_variable(name) < 0 &&
            !is_other(name))
            report_unknown_variable(sources, name);
    }
}

/* A setting's own variable takes precedence over that of a view of it. */
static void read_environment(tni_sources *sources)
{
    apply_variables(sources, true);
    apply_variables(sources, false);
    report_unknown_variables(sources);
}

/* Returns NULL if no variable names a file, or if TENON_CONFIG is empty. */
static char *find_file(tni_sources *sources)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"XDG_CONFIG_HOME", "tenon/config"},
                  {"HOME", ".config/tenon/config"},
                  {"APPDATA", "tenon/config"}};
    char *path = NULL;
    if (tni_env_is_set(file_variable)) {
        const char *chosen = read_trusted(sources, file_variable);
        if (chosen && *chosen)
            (void)tni_path_absolute(chosen, &path, NULL);
        return path;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (!tni_env_is_set(places[i].variable))
            continue;
        const char *home = read_trusted(sources, places[i].variable);
        if (!home)
            return NULL;
        if (tni_path_is_absolute(home))
            return tni_path_join(home, places[i].below);
    }
    return NULL;
}

static void init_sources(tni_sources *out, char *file)
{
    *out =
        (tni_sources){.context = tn_context_retain((tn_context *)(uintptr_t)tni_context_defaults()),
                      .file = file};
}

void tni_sources_read(tni_sources *out)
{
    init_sources(out, NULL);
    out->file = find_file(out);
    if (out->file)
        read_file(out);
    read_environment(out);
}

void tni_sources_of_text(const char *file, const char *text, size_t size, tni_sources *out)
{
    init_sources(out, tni_text_copy(file));
    if (out->file)
        take_text(out, text, size);
    else
        out->starved = true;
}

void tni_sources_release(tni_sources *sources)
{
    for (size_t i = 0; i < sources->problem_count; i++)
        tni_release(sources->problems[i]);
    tni_release(sources->file);
    tn_context_release(sources->context);
}
