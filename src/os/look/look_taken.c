/* Which file of a library a process would have. */
#include "look_read.h"

#include "os/env.h"
#include "os/file.h"
#include "os/loaded.h"

#include <string.h>

/* The first of a name that is in this process, as it is for the loader: a path is what came by it, or what came of the
 * same file by another one. */
typedef struct resident {
    tni_span name;
    bool has_file; /* it is a path, and there is such a file now: */
    tni_file_id file;
    char path[sizeof((tni_look *)0)->text]; /* "" for none */
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

static void see(void *user, const char *path)
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
    (void)tni_loaded_each(see, sought);
}

bool tni_look_taken(const char *files, tni_look *out)
{
    tni_span names = tni_span_of(files);
    resident found = {.path = ""};
    while (!found.path[0] && tni_span_take(&names, '|', &found.name))
        find(&found);
    *out = (tni_look){0};
    if (found.path[0]) {
        out->holds = out->count = 1;
        tn_text_fit(out->text, sizeof out->text, found.path);
    } else
        tni_look_library(NULL, files, tni_env_get("LD_LIBRARY_PATH"), out);
    return found.path[0] != '\0';
}
