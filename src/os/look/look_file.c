#include "look_read.h"

#include "base/alloc.h"
#include "os/file.h"

/* The files that a path matches. */
typedef struct sight {
    int32_t count;
    int32_t denied;
    char first[128]; /* first name, relative to the root, truncated to fit */
} sight;

/* Whether the process needs to open the file for use: files outside of /dev only need to exist. */
static bool is_for_use(const char *path, const tni_file_id *file)
{
    bool special = !file->is_folder && !file->is_regular;
    return special || (file->is_regular && strncmp(path, "/dev/", 5) == 0);
}

/* Counts the file at `path` if it exists. */
static tn_status count_file(const char *root, const char *path, sight *to, tn_error *err)
{
    char whole[TNI_LOOK_PATH];
    tni_file_id file;
    tn_status status = tni_look_path(whole, "%s%s", root, path)
                           ? tni_file_identify(whole, &file, err)
                           : TN_NOT_FOUND;
    if (status)
        return status == TN_NOT_FOUND ? TN_OK : status;
    if (to->count == 0)
        tn_text_fit(to->first, sizeof to->first, path);
    to->count++;
    to->denied += is_for_use(path, &file) && !tni_look_may_open(whole);
    return TN_OK;
}

static bool is_folder_itself(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Visits every entry of the folder of `path` whose name begins with the last component of `path`
 * and is longer than it. */
static tn_status count_longer_names(const char *root, const char *path, sight *to, tn_error *err)
{
    char whole[TNI_LOOK_PATH];
    const char *prefix = tni_path_name(path);
    int length = (int)(prefix - path);
    tni_names *names = NULL;
    if (!tni_look_path(whole, "%s%.*s", root, length, path))
        return TN_OK;
    tn_status status = tni_folder_list(whole, prefix, "", &names, err);
    for (size_t i = 0; !status && i < names->count; i++) {
        if (!is_folder_itself(names->names[i]) &&
            tni_look_path(whole, "%.*s%s", length, path, names->names[i]))
            status = count_file(root, whole, to, err);
    }
    tni_release(names);
    return status == TN_NOT_FOUND ? TN_OK : status;
}

/* Visits every file whose path begins with `path`. */
static tn_status count_matches(const char *root, const char *path, sight *to, tn_error *err)
{
    const char *prefix = tni_path_name(path);
    tn_status status = TN_OK;
    if (prefix[0] && !is_folder_itself(prefix))
        status = count_file(root, path, to, err);
    return status ? status : count_longer_names(root, path, to, err);
}

static void report_files(const sight *seen, tni_look *out)
{
    char denied[64] = "";
    if (seen->denied == 1 && seen->count == 1)
        snprintf(denied, sizeof denied, ", which this process cannot open");
    else if (seen->denied == seen->count)
        snprintf(denied, sizeof denied, ", none of which this process can open");
    else if (seen->denied)
        snprintf(denied, sizeof denied, "; this process cannot open %d of them", (int)seen->denied);
    if (seen->count == 1)
        tni_look_report(out, 1, 1, "%s%s", seen->first, denied);
    else
        tni_look_report(out, 1, seen->count, "%d entries, the first %s%s", (int)seen->count,
                        seen->first, denied);
}

void tni_look_file(const char *root, const char *path, tni_look *out)
{
    char plain[TNI_LOOK_PATH];
    sight seen = {.count = 0};
    tn_error err = {0};
    size_t length = strlen(path);
    bool several = length && path[length - 1] == '*';
    root = tni_look_root(root);
    if (path[0] != '/' && !tni_path_is_absolute(path)) {
        tni_look_report(out, -1, 0, "\"%s\" is not an absolute path", path);
        return;
    }
    bool fits = tni_look_path(plain, "%.*s", (int)(length - several), path);
    tn_status status = !fits     ? TN_OK
                       : several ? count_matches(root, plain, &seen, &err)
                                 : count_file(root, plain, &seen, &err);
    if (status)
        tni_look_report(out, -1, 0, "%s", tni_look_why(root, &err));
    else if (seen.count == 0)
        tni_look_report(out, 0, 0, "absent");
    else if (several)
        report_files(&seen, out);
    else
        tni_look_report(out, 1, 1, "present%s",
                        seen.denied ? ", but this process cannot open it" : "");
    out->denied = !status && seen.count && seen.denied == seen.count;
}
