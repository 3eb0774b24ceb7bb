/* `tenon settings`: every setting, a single one, the origin of its value, and the effect of a
 * change. */
#include "settings.h"

#include "document.h"
#include "options.h"
#include "rules.h"
#include "text.h"

typedef struct settings_request {
    option_values words; /* the action and its arguments */
    bool as_json;
    bool as_markdown;
    bool save;
} settings_request;

/* Results of `set` besides the rows. */
typedef struct settings_change {
    const found_settings *before;
    const found_setting *row; /* the named setting, as it would be */
    bool saved;
} settings_change;

static const char who[] = " settings";

static bool has_changed(const found_settings *before, const found_setting *row)
{
    const found_setting *was = &before->rows[row->number];
    return strcmp(was->value, row->value) != 0 || strcmp(was->effective, row->effective) != 0;
}

static void write_change(json *to, const found_settings *before, const found_setting *row)
{
    json_begin_object(to, NULL);
    json_text(to, "key", row->facts->key);
    json_text(to, "now", before->rows[row->number].effective);
    json_text(to, "then", row->effective);
    json_end_object(to);
}

/* Every action's document has the same keys. `only` is NULL for all rows, `change` is NULL if there
 * is no change. */
static void write_document(const command *self, const found_settings *found,
                           const found_setting *only, const settings_change *change)
{
    json to = {0};
    const char *file = tn_settings_file();
    json_begin_document(&to, self->name);
    json_begin_list(&to, "settings");
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        if (!only || only == &found->rows[i])
            settings_write_row(&to, &found->rows[i]);
    }
    json_end_list(&to);
    json_begin_list(&to, "changes");
    for (tn_setting i = 0; change && i < TN_SETTING_COUNT; i++) {
        if (has_changed(change->before, &found->rows[i]))
            write_change(&to, change->before, &found->rows[i]);
    }
    json_end_list(&to);
    json_bool(&to, "saved", change && change->saved);
    json_known_text(&to, "file", file);
    write_problems(&to);
    json_end_document(&to);
}

static int run_list(const command *self, const settings_request *request)
{
    found_settings found;
    tn_error err;
    if (settings_gather_uses(&found, TN_SETTING_COUNT, &err))
        return report_error(&err);
    if (request->as_markdown)
        settings_print_markdown(&found);
    else if (request->as_json)
        write_document(self, &found, NULL, NULL);
    else
        settings_print(&found);
    settings_release(&found);
    return EXIT_DONE;
}

/* Runs `get` and `origin`. */
static int run_one(const command *self, const settings_request *request)
{
    found_settings found;
    tn_setting setting;
    tn_error err;
    if (tn_setting_get(request->words.texts[1], &setting, &err))
        return report_request(who, &err);
    if (request->as_json ? settings_gather_uses(&found, setting, &err)
                         : settings_gather(&found, &err))
        return report_error(&err);
    const found_setting *row = &found.rows[setting];
    if (request->as_json)
        write_document(self, &found, row, NULL);
    else
        printf("%s\n", strcmp(request->words.texts[0], "get") == 0 ? row->value : row->origin.text);
    settings_release(&found);
    return EXIT_DONE;
}

/* Prints other settings affected by the change. */
static void print_others(const found_settings *found, const settings_change *change)
{
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const found_setting *row = &found->rows[i];
        text_line line = {0};
        if (row == change->row || !has_changed(change->before, row))
            continue;
        text_add(&line, "%s would become %s; now %s", row->facts->key,
                 settings_shown(row->effective), settings_shown(change->before->rows[i].effective));
        text_wrapped(2, "", 0, line.text);
    }
}

static void print_fate(const settings_change *change)
{
    const tn_origin *now = &change->before->rows[change->row->number].origin;
    const char *file = tn_settings_file();
    text_line line = {0};
    if (!change->saved)
        text_add(&line, "nothing was saved; --save writes it to %s",
                 file[0] ? file : "the file that TENON_CONFIG names");
    else
        text_add(&line, "written to %s", file);
    if (change->saved && now->level > TN_LEVEL_FILE)
        text_add(&line, "; the %s takes precedence", now->text);
    text_wrapped(0, "", 0, line.text);
}

static void print_change(const found_settings *found, const settings_change *change)
{
    const found_setting *row = change->row, *now = &change->before->rows[row->number];
    text_line head = {0}, unused = {0}, line = {0};
    text_add(&unused, "changes nothing here: %s", row->use.reason);
    text_add(&head, "%s = %s", row->facts->key, settings_shown(row->value));
    text_add(&line, "now %s, by the %s", settings_shown(now->value), now->origin.text);
    text_wrapped(0, "", 0, head.text);
    text_wrapped(2, "", 0, row->facts->effect);
    if (!row->use.used)
        text_wrapped(2, "", 0, unused.text);
    text_wrapped(2, "", 0, line.text);
    print_others(found, change);
    print_fate(change);
}

/* If the file cannot be parsed, the user can correct a line (wrong use). If the file cannot be
 * written or is being written, the request itself was correct (unavailable). */
static int report_unsaved(const tn_error *err)
{
    int code = report_request(who, err);
    switch (err->status) {
    case TN_CORRUPT: return EXIT_WRONG_USE;
    case TN_NOT_FOUND:
    case TN_NOT_PERMITTED:
    case TN_IO:
    case TN_BUSY: return EXIT_UNAVAILABLE;
    default: return code;
    }
}

/* Applies the setting to this process, which ends soon, and compares. */
static int run_set(const command *self, const settings_request *request)
{
    found_settings before, after;
    settings_change change = {.before = &before};
    const char *text = request->words.texts[1];
    tn_change parsed;
    tn_error err;
    if (settings_gather(&before, &err))
        return report_error(&err);
    tn_status status = tn_setting_parse(text, &parsed, &err);
    if (!status)
        status = tn_settings_change(&parsed, 1, &err);
    bool unsaved = !status && request->save && (status = tn_settings_save(text, &err)) != TN_OK;
    if (!status)
        status = settings_gather_uses(&after, parsed.setting, &err);
    if (status) {
        settings_release(&before);
        return unsaved ? report_unsaved(&err) : report_request(who, &err);
    }
    change.row = &after.rows[parsed.setting];
    change.saved = request->save;
    if (request->as_json)
        write_document(self, &after, change.row, &change);
    else
        print_change(&after, &change);
    settings_release(&after);
    settings_release(&before);
    return EXIT_DONE;
}

enum { LIST, GET, ORIGIN, SET, ACTIONS };
static const option_action actions[ACTIONS] = {
    [LIST] = {"list", "", 1, 1},
    [GET] = {"get", "KEY", 2, 2},
    [ORIGIN] = {"origin", "KEY", 2, 2},
    [SET] = {"set", "KEY=VALUE", 2, 2},
};

/* Whether the options fit the action; reports an error otherwise. */
static bool is_sound(int action, const settings_request *request)
{
    const char *fault = NULL;
    if (request->save && action != SET)
        fault = "--save is only for set";
    else if (request->as_markdown && (action != LIST || request->as_json))
        fault = "--markdown is only for list, without --json";
    if (fault)
        fprintf(stderr, "tenon%s: %s\n", who, fault);
    return !fault;
}

int run_settings(const command *self, int count, char **arguments)
{
    settings_request request = {0};
    const option_row rows[] = {
        {"ACTION", NULL, "list, get, origin or set; default list", NULL, &request.words, 2},
        {"--save", NULL, "set: also write the value to the configuration file", &request.save, NULL,
         0},
        {"--json", NULL, "print JSON", &request.as_json, NULL, 0},
        {"--markdown", NULL, "list: write the tables of docs/settings.md", &request.as_markdown,
         NULL, 0},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN)
        return code;
    int action = options_action(self, actions, ACTIONS, &request.words);
    if (action < 0 || !is_sound(action, &request))
        return EXIT_WRONG_USE;
    code = (action == LIST ? run_list : action == SET ? run_set : run_one)(self, &request);
    if (code == EXIT_DONE)
        rules_say_unknown();
    return code;
}
