#include "lists.h"

#include "../options.h"
#include "kernel_cases.h"
#include "suite.h"

#include <errno.h>

bool name_list_has(const name_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->names[i], name) == 0)
            return true;
    }
    return false;
}

static tn_status no_case(const char *name, const char *where, tn_error *err)
{
    const char *names[LIST_MOST];
    size_t count = 0;
    for (; count < suite_count() && count < LIST_MOST; count++)
        names[count] = suite_at(count)->name;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                   "%s: unknown case \"%s\"%s; list them with --list", where, name,
                   suggestion(name, names, count));
}

static bool is_case(const char *name)
{
    for (size_t i = 0; i < suite_count(); i++) {
        if (strcmp(suite_at(i)->name, name) == 0)
            return true;
    }
    return false;
}

static bool begins(const char *name, const char *wanted)
{
    size_t length = strlen(wanted);
    return strncmp(name, wanted, length) == 0 && name[length] == '.';
}

bool name_list_covers(const name_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->names[i], name) == 0 || begins(name, list->names[i]))
            return true;
    }
    return false;
}

const char *name_list_stray(const name_list *list, const char *const *cases, size_t count)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *name = list->names[i];
        bool found = !is_kernel_case(name);
        for (size_t c = 0; c < count && !found; c++)
            found = strcmp(cases[c], name) == 0 || begins(cases[c], name);
        if (!found)
            return name;
    }
    return NULL;
}

static void put(name_list *list, const char *name)
{
    if (list->count < LIST_MOST && !name_list_has(list, name))
        tn_text_fit(list->names[list->count++], LIST_NAME, name);
}

tn_status name_list_add(name_list *list, const char *name, const char *where, tn_error *err)
{
    bool found = is_case(name);
    if (found || is_kernel_case(name)) {
        put(list, name);
        return TN_OK;
    }
    for (size_t i = 0; i < suite_count(); i++) {
        if (!begins(suite_at(i)->name, name))
            continue;
        put(list, suite_at(i)->name);
        found = true;
    }
    return found ? TN_OK : no_case(name, where, err);
}

/* Returns the word on the line, without surrounding blanks, comment and line end. */
static char *word_of(char *line)
{
    line[strcspn(line, "#\r\n")] = '\0';
    line += strspn(line, " \t");
    size_t length = strlen(line);
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t'))
        line[--length] = '\0';
    return line;
}

static tn_status read_lines(FILE *file, const char *path, name_list *out, tn_error *err)
{
    char line[256], where[88];
    tn_status status = TN_OK;
    for (int number = 1; !status && fgets(line, sizeof line, file); number++) {
        const char *word = word_of(line);
        snprintf(where, sizeof where, "%.60s:%d", path, number);
        if (word[0])
            status = name_list_add(out, word, where, err);
    }
    return status;
}

tn_status name_list_read(const char *path, name_list *out, tn_error *err)
{
    name_list list = {0};
    errno = 0;
    FILE *file = fopen(path, "rb");
    tn_status status = file ? read_lines(file, path, &list, err) : TN_OK;
    int code = !file || ferror(file) ? (errno ? errno : EIO) : 0;
    if (file)
        (void)fclose(file);
    if (!status && code)
        status = tn_fail(err, TN_IO, code, "list", "%s: %s", path, strerror(code));
    if (!status)
        *out = list;
    return status;
}
