/* OpenMP: which run-times this process has. Nobody opens one on purpose; compiled code brings them. */
#include "library.h"
#include "os/file.h"
#include "os/loaded.h"

enum { MOST = 4 };

typedef struct runtimes {
    size_t count;
    char paths[MOST][256]; /* of the first ones */
} runtimes;

/* GNU's, Intel's and LLVM's, also as packagers rename them: "libgomp-a34b3233.so.1". */
static bool is_runtime(const char *path)
{
    static const char *const stems[] = {"libgomp", "libiomp5", "libomp5", "libomp"};
    const char *name = tni_path_name(path);
    for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++) {
        size_t length = strlen(stems[i]);
        if (strncmp(name, stems[i], length) == 0 && (name[length] == '.' || name[length] == '-'))
            return true;
    }
    return false;
}

static void see(void *user, const char *path)
{
    runtimes *found = user;
    if (!is_runtime(path))
        return;
    if (found->count < MOST)
        tn_text_fit(found->paths[found->count], sizeof found->paths[0], path);
    found->count++;
}

#define REASON(...) tni_library_say(to->reason, sizeof to->reason, __VA_ARGS__)
#define REMEDY(...) tni_library_say(to->remedy, sizeof to->remedy, __VA_ARGS__)

static void tell_several(const runtimes *found, tn_library_state *to)
{
    REASON("%zu OpenMP run-times are in this process, %s and %s%s: each has threads of its own, so "
           "that loops crowd the cores, and code of one inside a loop of the other can hang or "
           "crash",
           found->count, found->paths[0], found->paths[1], found->count > 2 ? " among them" : "");
    REMEDY("have everything in the process built for one of them; LD_DEBUG=libs shows who brings "
           "each");
}

static void tell_none(const tni_library_known *known, bool looked, tn_library_state *to)
{
    tni_look look = {0};
    const char *none =
        looked ? "no OpenMP run-time is in this process"
               : "which OpenMP run-times are in the process is not asked on this system";
    if (known->files)
        tni_library_look(known->files, &look, to);
    if (look.holds > 0) {
        to->available = TN_AVAILABLE_YES;
        REASON("%s; code that needs one finds %s", none, look.text);
        return;
    }
    REASON("%s%s", none, known->files ? ", and no file of one is found" : "");
    REMEDY("%s", known->remedy);
}

void tni_library_tell_openmp(const tni_library_known *known, tn_library_state *out)
{
    runtimes found = {0};
    bool looked = tni_loaded_each(see, &found);
    if (found.count == 0) {
        tell_none(known, looked, out);
        return;
    }
    out->available = TN_AVAILABLE_YES;
    tn_text_fit(out->path, sizeof out->path, found.paths[0]);
    if (found.count == 1)
        tni_library_say(out->reason, sizeof out->reason, "in this process");
    else
        tell_several(&found, out);
}
