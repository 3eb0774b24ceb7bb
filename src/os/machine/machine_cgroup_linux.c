#include "machine_linux.h"

#include "base/alloc.h"
#include "os/file.h"

void tni_cgroups_read(tni_reading *reading, tni_cgroups *out)
{
    *out = (tni_cgroups){.why = ""};
    if (!tni_reading_file(reading, &out->groups, &out->groups_text, "/proc/self/cgroup") ||
        !tni_reading_file(reading, &out->mounts, &out->mounts_text, "/proc/self/mountinfo"))
        out->why = tni_reading_format(reading, "%s", tni_reading_why(reading));
}

void tni_cgroups_release(tni_cgroups *cgroups)
{
    tni_release(cgroups->groups);
    tni_release(cgroups->mounts);
    *cgroups = (tni_cgroups){0};
}

/* Finds in /proc/self/cgroup ("4:memory:/a/b" or "0::/a/b") the path of the hierarchy that has the
 * controller. A controller that no line names belongs to version 2. Returns the version, 0 if not
 * found. */
static int find_group(tni_span text, const char *controller, tni_span *out_path)
{
    int version = 0;
    tni_span line, id, controllers;
    while (tni_span_next(&text, '\n', &line)) {
        if (!tni_span_next(&line, ':', &id) || !tni_span_next(&line, ':', &controllers) ||
            !line.text || !tni_span_begins(line, "/"))
            continue;
        bool first = tni_span_lists(controllers, controller);
        if (!first && !(tni_span_is(id, "0") && controllers.length == 0))
            continue;
        *out_path = line;
        version = first ? 1 : 2;
        if (first)
            break;
    }
    return version;
}

/* The relevant fields of one line of /proc/self/mountinfo. */
struct mount {
    tni_span root;
    tni_span point;
    tni_span type;
    tni_span options;
};

/* 36 35 98:0 ROOT POINT OPTIONS [FIELD...] - TYPE SOURCE SUPER-OPTIONS */
static bool parse_mount(tni_span line, struct mount *out)
{
    enum { ROOT = 3, POINT = 4, BEFORE_DASH = 6 };
    tni_span word, source;
    int index = 0;
    for (; tni_span_next(&line, ' ', &word); index++) {
        if (index == ROOT)
            out->root = word;
        else if (index == POINT)
            out->point = word;
        else if (index >= BEFORE_DASH && tni_span_is(word, "-"))
            break;
    }
    return index >= BEFORE_DASH && tni_span_next(&line, ' ', &out->type) &&
           tni_span_next(&line, ' ', &source) && tni_span_next(&line, ' ', &out->options);
}

static bool serves(const struct mount *mount, int version, const char *controller)
{
    return version == 2
               ? tni_span_is(mount->type, "cgroup2")
               : tni_span_is(mount->type, "cgroup") && tni_span_lists(mount->options, controller);
}

static bool goes_up(const char *path)
{
    for (const char *at = strstr(path, "/.."); at; at = strstr(at + 1, "/..")) {
        if (at[3] == '\0' || at[3] == '/')
            return true;
    }
    return false;
}

/* Returns the part of `group` below `root`, or NULL. Both are paths in the same namespace, so they
 * can be compared as text even if they begin with "/..", as for a mount from outside the
 * container. */
static const char *below(const char *group, const char *root)
{
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(group, root, length) != 0 || (group[length] != '/' && group[length] != '\0'))
        return NULL;
    const char *rest = strcmp(group + length, "/") == 0 ? "" : group + length;
    return goes_up(rest) ? NULL : rest;
}

/* Finds the mount that shows the process's group and the most of its ancestors. If none exists,
 * takes any mount of the hierarchy: a container may see its group under another name, or only an
 * ancestor. Takes none if the process is outside of what is mounted. */
static void find_mount(tni_reading *reading, tni_span mounts, const char *controller,
                       const char *path, tni_cgroup *out)
{
    size_t best = SIZE_MAX;
    tni_span line;
    struct mount mount;
    while (tni_span_next(&mounts, '\n', &line)) {
        if (!parse_mount(line, &mount) || !serves(&mount, out->version, controller))
            continue;
        char *root = tni_reading_keep(reading, mount.root.length + 1, 1);
        char *point = tni_reading_keep(reading, mount.point.length + 1, 1);
        if (!root || !point)
            return;
        tni_span_unescape(mount.root, root);
        tni_span_unescape(mount.point, point);
        const char *rest = below(path, root);
        size_t rank = rest ? strlen(root) : SIZE_MAX - 1;
        if (rank > best || (!rest && goes_up(path)))
            continue;
        best = rank;
        out->mount = point;
        snprintf(out->group, sizeof out->group, "%s", rest ? rest : "");
        out->why = rest ? "" : tni_reading_format(reading, " (%s is not visible below it)", path);
    }
}

void tni_cgroup_find(tni_reading *reading, const tni_cgroups *cgroups, const char *controller,
                     tni_cgroup *out)
{
    tni_span path;
    *out = (tni_cgroup){.why = cgroups->why};
    if (!cgroups->groups || !cgroups->mounts)
        return;
    out->version = find_group(cgroups->groups_text, controller, &path);
    out->why = "";
    if (out->version && path.length < sizeof out->group) {
        char copy[sizeof out->group] = {0};
        memcpy(copy, path.text, path.length);
        find_mount(reading, cgroups->mounts_text, controller, copy, out);
        if (out->mount)
            return;
        out->why = tni_reading_format(reading, "cgroup v%d %.*s is not mounted", out->version,
                                      (int)path.length, path.text);
    }
    if (!out->why[0])
        out->why =
            tni_reading_format(reading, "/proc/self/cgroup: no usable line for %s", controller);
    out->version = 0;
}

bool tni_cgroup_rise(tni_cgroup *cgroup)
{
    char *last = strrchr(cgroup->group, '/');
    if (!last)
        return false;
    *last = '\0';
    return true;
}

const char *tni_cgroup_name(tni_reading *reading, const tni_cgroup *cgroup)
{
    return tni_reading_format(reading, "cgroup v%d %s%s%s", cgroup->version, cgroup->mount,
                              cgroup->group, cgroup->why);
}

static bool is_seen(tni_reading *reading, const tni_cgroup *cgroup)
{
    tni_file_id id;
    int length =
        snprintf(reading->path, sizeof reading->path, "%s%s", reading->root, cgroup->mount);
    return length >= 0 && (size_t)length < sizeof reading->path &&
           tni_file_identify(reading->path, &id, NULL) == TN_OK && id.is_folder;
}

static tni_fact without_file(tni_reading *reading, const tni_cgroup *own, const char *file)
{
    if (!own->version)
        return tni_fact_none(TNI_FACT_UNKNOWN, own->why);
    const char *name = tni_cgroup_name(reading, own);
    return is_seen(reading, own)
               ? tni_fact_none(TNI_FACT_UNLIMITED,
                               tni_reading_format(reading, "%s: no %s here or above", name, file))
               : tni_fact_none(TNI_FACT_UNKNOWN,
                               tni_reading_format(reading, "%s is not visible", name));
}

void tni_cgroup_limit_resolve(tni_reading *reading, const tni_cgroup *own, const char *file,
                              tni_fact *fact)
{
    if (!fact->origin)
        *fact = without_file(reading, own, file);
    if (fact->state == TNI_FACT_UNLIMITED && own->why[0])
        fact->state = TNI_FACT_UNKNOWN;
}
