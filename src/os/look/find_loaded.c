/* Finds the file of a library that this process would use. */
#include "look_read.h"

#include "os/env.h"
#include "os/file.h"
#include "os/loaded.h"

#include <string.h>

/* The first loaded library that matches a name, by the loader's rules: a path matches a library
 * that was loaded by it, or by another path of the same file. */
typedef struct resident {
    tni_span name;
    bool has_file; /* the name is a path of an existing file, `file` */
    tni_file_id file;
    char path[sizeof((tni_look *)0)->text]; /* "" if not found */
} resident;

static bool is_path(tni_span name)
{
    return memchr(name.text, '/', name.length) != NULL;
}

static bool is_of(const resident *sought, const char *path)
{
    tni_file_id file;
    if (!is_path(sought->name))
        return tni_span_is(sought->name, tni_path_name(path));
    if (tni_span_is(sought->name, path))
        return true;
    return sought->has_file && strchr(path, '/') && !tni_file_identify(path, &file, NULL) &&
           file.device == sought->file.device && file.inode == sought->file.inode;
}

static void match_resident(void *user, const char *path)
{
    resident *found = user;
    if (!found->path[0] && is_of(found, path))
        tn_text_fit(found->path, sizeof found->path, path);
}

static void find(resident *sought)
{
    char path[TNI_LOOK_PATH];
    sought->has_file = is_path(sought->name) &&
                       tni_look_path(path, "%.*s", (int)sought->name.length, sought->name.text) &&
                       !tni_file_identify(path, &sought->file, NULL);
    (void)tni_loaded_each(match_resident, sought);
}

bool tni_look_loaded(const char *files, tni_look *out)
{
    tni_span names = tni_span_of(files);
    resident found = {.path = ""};
    while (!found.path[0] && tni_span_next(&names, '|', &found.name))
        find(&found);
    *out = (tni_look){0};
    if (found.path[0]) {
        out->holds = out->count = 1;
        tn_text_fit(out->text, sizeof out->text, found.path);
    } else
        tni_look_library(NULL, files, tni_env_get("LD_LIBRARY_PATH"), out);
    return found.path[0] != '\0';
}
