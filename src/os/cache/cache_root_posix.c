#include "cache.h"
#include "cache_folder.h"
#include "os/env.h"
#include "os/sys.h"

#include <errno.h>
#include <unistd.h>

#define REMEDY "; set TENON_CACHE to a writable folder that you own"

static const char tag_name[] = "CACHEDIR.TAG";

static void explain(tni_buffer *reason, const char *what, const char *path)
{
    char text[128];
    const char *why = strerror_r(errno, text, sizeof text);
    tni_buffer_format(reason, "\"%s\" cannot be %s: %s" REMEDY, path, what, why);
}

/* Creates the folder and its missing parents; *out_made says whether the last one is new. Continues
 * after a failed mkdir, since that folder may exist anyway; errno is then that of the first
 * failure. */
static bool make_folders(char *path, bool *out_made)
{
    int code = 0;
    char *slash = path;
    while (slash) {
        slash = *slash ? strchr(slash + 1, '/') : NULL;
        if (slash)
            *slash = '\0';
        *out_made = tni_sys_mkdir(path, 0700) == 0;
        if (*out_made || errno == EEXIST)
            code = 0;
        else if (code == 0)
            code = errno;
        if (slash)
            *slash = '/';
    }
    errno = code;
    return code == 0;
}

static int open_folder(char *path, bool *out_made, tni_buffer *reason)
{
    struct stat facts;
    int root = tni_sys_open(path, TNI_CACHE_FOLDER_FLAGS, 0);
    if (root >= 0)
        return root;
    if (errno == ENOENT) {
        if (make_folders(path, out_made))
            root = tni_sys_open(path, TNI_CACHE_FOLDER_FLAGS, 0);
        if (root < 0)
            explain(reason, "made", path);
        return root;
    }
    int saved = errno;
    if (tni_sys_fstatat(AT_FDCWD, path, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(facts.st_mode)) {
        tni_buffer_format(reason, "\"%s\" is a symbolic link; set TENON_CACHE to the folder itself",
                          path);
        return -1;
    }
    errno = saved;
    explain(reason, "opened", path);
    return -1;
}

/* Suggests chmod only for a folder with the tag: without it the folder may serve other purposes. */
static void explain_open(int root, const char *path, unsigned mode, tni_buffer *reason)
{
    struct stat facts;
    tni_buffer_format(reason, "\"%s\" is accessible to other users (mode %04o)", path, mode);
    if (tni_sys_fstatat(root, tag_name, &facts, AT_SYMLINK_NOFOLLOW) == 0)
        tni_buffer_format(reason, "; chmod 700 \"%s\"", path);
    else
        tni_buffer_add(reason, REMEDY);
}

static bool is_private(int root, const char *path, tni_buffer *reason)
{
    struct stat facts;
    if (tni_sys_fstat(root, &facts) != 0) {
        explain(reason, "examined", path);
        return false;
    }
    unsigned mode = (unsigned)facts.st_mode & 07777;
    if (facts.st_uid != geteuid()) {
        tni_buffer_format(reason, "\"%s\" belongs to user %lld, not to user %lld" REMEDY, path,
                          (long long)facts.st_uid, (long long)geteuid());
        return false;
    }
    if (mode & 077) {
        explain_open(root, path, mode, reason);
        return false;
    }
    return true;
}

/* Only for a new folder: a folder that existed before may hold more than a cache. Writing the tag
 * also tests whether the folder is writable. The text follows the Cache Directory Tagging
 * Specification. */
static bool write_tag(int root)
{
    static const char tag[] = "Signature: 8a477f597d28d172789f06886806bc55\n"
                              "# Tenon stores data here that it can recompute; this folder may be "
                              "removed.\n";
    int file = tni_sys_openat(root, tag_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file < 0)
        return false;
    ssize_t count = tni_sys_write(file, tag, sizeof tag - 1);
    tni_cache_close(file);
    return count >= 0;
}

static bool can_write(int root)
{
    return tni_sys_faccessat(root, ".", W_OK | X_OK, AT_EACCESS) == 0;
}

int tni_cache_root_open(char *path, tni_buffer *out_reason)
{
    bool made = false;
    int root = open_folder(path, &made, out_reason);
    if (root < 0)
        return -1;
    if (!is_private(root, path, out_reason))
        goto fail;
    if (!(made ? write_tag(root) : can_write(root))) {
        explain(out_reason, "written", path);
        goto fail;
    }
    return root;
fail:
    tni_cache_close(root);
    return -1;
}

/* Returns the variable's value if it is an absolute path, else NULL. */
static const char *absolute(const char *name)
{
    const char *value = tni_env_get(name);
    return value && value[0] == '/' ? value : NULL;
}

/* A missing home is not created: such a HOME means that the user has none. */
static bool is_folder(const char *path)
{
    struct stat facts;
    return path && tni_sys_stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool tni_cache_default_folder(tni_buffer *out_folder, const char **out_reason)
{
    const char *chosen = tni_env_get("TENON_CACHE"), *base = absolute("XDG_CACHE_HOME");
    const char *home = absolute("HOME"), *reason = NULL;
    if (tni_env_privileged())
        reason = "the process runs with elevated privileges, so the "
                 "environment is ignored";
    else if (chosen && !*chosen)
        reason = "TENON_CACHE is empty, which means memory only";
    else if (chosen && chosen[0] != '/')
        reason = "TENON_CACHE is not an absolute path";
    else if (!chosen && !base && !home)
        reason = "HOME and XDG_CACHE_HOME name no absolute path; set TENON_CACHE to a folder";
    else if (!chosen && !base && !is_folder(home))
        reason = "HOME is not an existing folder; set TENON_CACHE to a folder";
    else if (chosen)
        tni_buffer_add(out_folder, chosen);
    else
        tni_buffer_format(out_folder, base ? "%s/tenon" : "%s/.cache/tenon", base ? base : home);
    if (!reason && out_folder->failed)
        reason = "no memory for the folder's name";
    if (reason)
        *out_reason = reason;
    return !reason;
}
