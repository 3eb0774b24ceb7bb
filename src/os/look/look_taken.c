/* Which file of a library a process would have. */
#include "look.h"
#include "os/env.h"
#include "os/file.h"
#include "os/loaded.h"
#include "os/span.h"

#include <string.h>

/* The first of a name that is in this process, as it is for the loader. */
typedef struct resident {
    tni_span name;
    char path[sizeof((tni_look *)0)->text]; /* "" for none */
} resident;

static void see(void *user, const char *path)
{
    resident *found = user;
    if (!found->path[0] && tni_span_is(found->name, tni_path_name(path)))
        tn_text_fit(found->path, sizeof found->path, path);
}

bool tni_look_taken(const char *files, tni_look *out)
{
    tni_span names = tni_span_of(files);
    resident found = {.path = ""};
    while (!found.path[0] && tni_span_take(&names, '|', &found.name))
        (void)tni_loaded_each(see, &found);
    *out = (tni_look){0};
    if (found.path[0]) {
        out->holds = out->count = 1;
        tn_text_fit(out->text, sizeof out->text, found.path);
    } else
        tni_look_library(NULL, files, tni_env_get("LD_LIBRARY_PATH"), out);
    return found.path[0] != '\0';
}
