/* `tenon cache`: lists and removes the data kept between processes. */
#include "json.h"
#include "options.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>

typedef struct cache_request {
    option_values words;
    option_values limit;
    bool as_json;
} cache_request;

static const char who[] = " cache";

static void sum_up(const tn_cache_list *list, uint64_t *out_entries, uint64_t *out_bytes)
{
    *out_entries = *out_bytes = 0;
    for (size_t i = 0; i < tn_cache_list_count(list); i++) {
        *out_entries += tn_cache_list_get(list, i)->entries;
        *out_bytes += tn_cache_list_get(list, i)->bytes;
    }
}

static const char *show_bytes(uint64_t bytes, char room[TEXT_BYTES])
{
    return text_bytes(bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX, room);
}

static void print_row(const char *kind, uint64_t entries, uint64_t bytes)
{
    char room[TEXT_BYTES];
    printf("  ");
    text_cell(kind, 16);
    printf(" %8llu %s  %12s\n", (unsigned long long)entries, entries == 1 ? "entry  " : "entries",
           show_bytes(bytes, room));
}

static void print_list(const tn_cache_list *list)
{
    uint64_t entries, bytes;
    const char *folder = tn_cache_list_folder(list), *reason = tn_cache_list_reason(list);
    sum_up(list, &entries, &bytes);
    text_wrapped(0, "folder: ", 8, folder[0] ? folder : "none");
    if (reason[0])
        text_wrapped(0, "stored in memory only: ", 21, reason);
    for (size_t i = 0; i < tn_cache_list_count(list); i++) {
        const tn_cache_kind *kind = tn_cache_list_get(list, i);
        print_row(kind->kind, kind->entries, kind->bytes);
    }
    print_row("all", entries, bytes);
}

/* `removed` is the difference from before. */
static void write_list(const command *self, const tn_cache_list *list, uint64_t removed)
{
    json to = {0};
    uint64_t entries, bytes;
    sum_up(list, &entries, &bytes);
    json_begin_document(&to, self->name);
    json_known_text(&to, "folder", tn_cache_list_folder(list));
    json_text(&to, "reason", tn_cache_list_reason(list));
    json_integer(&to, "limit", (int64_t)TN_CACHE_LIMIT);
    json_integer(&to, "entries", (int64_t)entries);
    json_integer(&to, "bytes", (int64_t)bytes);
    json_integer(&to, "removed", (int64_t)removed);
    json_begin_list(&to, "kinds");
    for (size_t i = 0; i < tn_cache_list_count(list); i++) {
        const tn_cache_kind *kind = tn_cache_list_get(list, i);
        json_begin_object(&to, NULL);
        json_text(&to, "kind", kind->kind);
        json_integer(&to, "entries", (int64_t)kind->entries);
        json_integer(&to, "bytes", (int64_t)kind->bytes);
        json_end_object(&to);
    }
    json_end_list(&to);
    json_end_document(&to);
}

/* Reads a number with an optional unit k, m or g (powers of 1024). */
static bool read_bytes(const char *text, uint64_t *out)
{
    static const char units[] = "kmg";
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno || end == text || text[0] < '0' || text[0] > '9')
        return false;
    const char *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if ((*end && !unit) || (unit && end[1]) || number > UINT64_MAX >> shift)
        return false;
    *out = number << shift;
    return true;
}

/* `limit` is UINT64_MAX to only list. */
static int run_with(const command *self, const cache_request *request, uint64_t limit)
{
    tn_cache_list *before = NULL, *after = NULL;
    uint64_t had = 0, has = 0, bytes;
    tn_error err;
    int code = EXIT_DONE;
    tn_status status = tn_cache_list_create(&before, &err);
    if (!status && limit != UINT64_MAX)
        status = tn_cache_prune(limit, &err);
    if (!status)
        status = tn_cache_list_create(&after, &err);
    sum_up(before, &had, &bytes);
    sum_up(after, &has, &bytes);
    uint64_t removed = had > has ? had - has : 0;
    if (status) {
        code = report_request(who, &err);
    } else if (request->as_json) {
        write_list(self, after, removed);
    } else {
        print_list(after);
        if (limit != UINT64_MAX)
            printf("%llu removed\n", (unsigned long long)removed);
    }
    tn_cache_list_release(before);
    tn_cache_list_release(after);
    return code;
}

/* Whether --limit is valid for the action and is a number; reports an error otherwise. */
static bool limit_is_sound(const cache_request *request, bool prunes, uint64_t *out)
{
    tn_error err;
    const char *text = request->limit.count ? request->limit.texts[0] : NULL;
    if (!text || (prunes && read_bytes(text, out)))
        return true;
    if (!prunes)
        tn_fail(&err, TN_INVALID_ARGUMENT, 0, "", "--limit is only for prune");
    else
        tn_fail(&err, TN_INVALID_ARGUMENT, 0, "",
                "--limit: expected bytes such as 1048576, 512k, 64m or 1g; got \"%.80s\"", text);
    (void)report_request(who, &err);
    return false;
}

int run_cache(const command *self, int count, char **arguments)
{
    enum { LIST, PRUNE, CLEAR, ACTIONS };
    static const option_action actions[ACTIONS] = {
        [LIST] = {"list", "", 1, 1}, [PRUNE] = {"prune", "", 1, 1}, [CLEAR] = {"clear", "", 1, 1}};
    cache_request request = {0};
    uint64_t limit = TN_CACHE_LIMIT;
    const option_row rows[] = {
        {"ACTION", NULL, "list, prune or clear; default list", NULL, &request.words, 1},
        {"--limit", "BYTES", "maximum size after prune, such as 64m; default 256m", NULL,
         &request.limit, 1},
        {"--json", NULL, "print JSON", &request.as_json, NULL, 0},
    };
    int code = options_read(self, rows, sizeof rows / sizeof rows[0], count, arguments);
    if (code != OPTIONS_RUN)
        return code;
    int action = options_action(self, actions, ACTIONS, &request.words);
    if (action < 0 || !limit_is_sound(&request, action == PRUNE, &limit))
        return EXIT_WRONG_USE;
    return run_with(self, &request, action == PRUNE ? limit : action == CLEAR ? 0 : UINT64_MAX);
}
