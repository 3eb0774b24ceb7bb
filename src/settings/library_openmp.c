/* OpenMP: which runtimes this process has, and whether a library would load another one. Nobody
 * opens a runtime explicitly; compiled code brings it in as a dependency. */
#include "base/alloc.h"
#include "base/words.h"
#include "library.h"
#include "os/dl.h"
#include "os/env.h"
#include "os/file.h"
#include "os/loaded.h"
#include "os/openmp.h"

enum { MOST = 4 };

typedef struct runtimes {
    size_t count;
    char paths[MOST][256]; /* of the first MOST only */
} runtimes;

static void add_runtime(void *user, const char *path)
{
    runtimes *found = user;
    if (!tni_openmp_is_runtime(path))
        return;
    if (found->count < MOST)
        tn_text_fit(found->paths[found->count], sizeof found->paths[0], path);
    found->count++;
}

#define REASON(...) tni_text_format(to->reason, sizeof to->reason, __VA_ARGS__)
#define REMEDY(...) tni_text_format(to->remedy, sizeof to->remedy, __VA_ARGS__)

static void describe_several(const runtimes *found, tn_library_state *to)
{
    REASON("%zu OpenMP runtimes are loaded in this process, %s and %s%s: each has its own threads, "
           "so loops oversubscribe the cores, and code of one inside a loop of the other can hang "
           "or crash",
           found->count, found->paths[0], found->paths[1], found->count > 2 ? " among them" : "");
    REMEDY("build everything in the process for one of them; LD_DEBUG=libs shows what loads "
           "each");
}

static void describe_none(const tni_library_known *known, bool looked, tn_library_state *to)
{
    tni_look look = {0};
    const char *none = looked
                           ? "no OpenMP runtime is loaded in this process"
                           : "the OpenMP runtimes of the process are not detected on this system";
    if (known->files)
        (void)tni_library_look(known->files, &look, to);
    to->path[0] = '\0'; /* a file that no code of this process loaded */
    if (look.holds > 0) {
        to->available = TN_AVAILABLE_YES;
        REASON("%s; code that needs one loads %s", none, look.text);
        return;
    }
    REASON("%s%s", none, known->files ? ", and no file of one was found" : "");
    REMEDY("%s", known->remedy);
}

void tni_library_describe_openmp(const tni_library_known *known, tn_library_state *out)
{
    runtimes found = {0};
    bool looked = tni_loaded_each(add_runtime, &found);
    if (found.count == 0) {
        describe_none(known, looked, out);
        return;
    }
    out->available = TN_AVAILABLE_YES;
    tn_text_fit(out->path, sizeof out->path, found.paths[0]);
    if (found.count == 1)
        tni_text_format(out->reason, sizeof out->reason, "in this process");
    else
        describe_several(&found, out);
}

/* Whether the loader would use the loaded runtime for the needed one: the names are equal, or both
 * are the same file. */
static bool is_same(const char *loaded, const char *needed)
{
    tni_look look = {0};
    char *here = NULL, *there = NULL;
    if (strcmp(tni_path_name(loaded), tni_path_name(needed)) == 0)
        return true;
    tni_look_library(NULL, needed, tni_env_get("LD_LIBRARY_PATH"), &look);
    bool same = look.holds > 0 && !tni_path_real(loaded, &here, NULL) &&
                !tni_path_real(look.text, &there, NULL) && strcmp(here, there) == 0;
    tni_release(here);
    tni_release(there);
    return same;
}

/* If the file cannot be read, its dependencies are found out by opening it. */
static bool needs_runtime(const char *files, tn_library_state *where, tni_elf_facts *out)
{
    tni_look look;
    (void)tni_library_look(files, &look, where);
    return where->path[0] && !tni_dl_inspect(where->path, out, NULL) && out->openmp[0];
}

tn_status tni_library_openmp_check(const char *files, tn_error *err)
{
    runtimes found = {0};
    tn_library_state where = {.struct_size = sizeof where};
    tni_elf_facts facts = {0};
    if (!tni_loaded_each(add_runtime, &found) || found.count == 0 ||
        !needs_runtime(files, &where, &facts))
        return TN_OK;
    for (size_t i = 0; i < found.count && i < MOST; i++) {
        if (!is_same(found.paths[i], facts.openmp))
            return tn_fail(
                err, TN_INCOMPATIBLE, 0, "openmp",
                "%s needs the OpenMP runtime %s, but %s is loaded in "
                "this process: two runtimes oversubscribe the cores and can hang or crash the "
                "process; build everything in it for one",
                where.path, facts.openmp, found.paths[i]);
    }
    return TN_OK;
}
