#include "proc.h"

#if defined(__linux__)
#include "verdict.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define FOLDER "/proc/driver/nvidia"

enum { ROOM = 512, TEXT = 4096 };

/* The needed part of a device's information file. */
typedef struct entry {
    cuda_found found;
    uint64_t place; /* bus address, for sorting */
} entry;

typedef struct entries {
    entry all[CUDA_MOST];
    int32_t count;
} entries;

static bool path_of(const char *root, const char *path, const char *more, char out[ROOM])
{
    return snprintf(out, ROOM, "%s%s%s", root, path, more) < ROOM;
}

/* Checks access rights, whatever restricts them: the file's mode, or a cgroup set by a scheduler or container. */
static bool may_use(const char *root, const char *path)
{
    char whole[ROOM];
    return path_of(root, path, "", whole) &&
           faccessat(AT_FDCWD, whole, R_OK | W_OK, AT_EACCESS) == 0;
}

static bool exists(const char *root, const char *path)
{
    char whole[ROOM];
    return path_of(root, path, "", whole) && access(whole, F_OK) == 0;
}

static bool read_text(const char *path, char out[TEXT])
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    size_t size = fread(out, 1, TEXT - 1, file);
    out[size] = '\0';
    fclose(file);
    return size > 0;
}

/* Copies the value after "key:" at the beginning of a line, without surrounding blanks. */
static bool value_of(const char *text, const char *key, char *out, size_t size)
{
    const size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, key, length) != 0 || line[length] != ':')
            continue;
        line += length + 1;
        line += strspn(line, " \t");
        size_t used = strcspn(line, "\n");
        while (used > 0 && strchr(" \t\r", line[used - 1]))
            used--;
        if (used == 0 || used >= size)
            return false;
        memcpy(out, line, used);
        out[used] = '\0';
        return true;
    }
    return false;
}

/* Returns whether the library file has the version that the kernel module reports:
 * "…/libcuda.so.580.159.04". */
static bool is_of_version(const char *root, const char *library)
{
    char path[ROOM], text[TEXT], real[PATH_MAX], says[ROOM];
    static const char before[] = "libcuda.so.";
    if (!path_of(root, FOLDER, "/version", path) || !read_text(path, text) ||
        !value_of(text, "NVRM version", says, sizeof says) || !realpath(library, real))
        return false;
    const char *name = strrchr(real, '/') ? strrchr(real, '/') + 1 : real;
    if (strncmp(name, before, sizeof before - 1) != 0)
        return false;
    const char *version = name + sizeof before - 1;
    for (char *rest = NULL, *word = strtok_r(says, " \t", &rest); word;
         word = strtok_r(NULL, " \t", &rest)) {
        if (strchr(version, '.') && strcmp(word, version) == 0)
            return true;
    }
    return false;
}

/* Parses "0000:3b:00.0". The function must be 0, as it is for compute devices. */
static bool read_place(const char *text, entry *out)
{
    unsigned long part[4];
    static const char behind[] = {':', ':', '.', '\0'};
    for (int i = 0; i < 4; i++) {
        char *end = NULL;
        part[i] = strtoul(text, &end, 16);
        if (end == text || *end != behind[i] || part[i] > UINT32_MAX)
            return false;
        text = end + 1;
    }
    if (part[1] > 0xFF || part[2] > 0xFF || part[3] != 0)
        return false;
    out->place = (uint64_t)part[0] << 16 | part[1] << 8 | part[2];
    return snprintf(out->found.bus, sizeof out->found.bus, "%04lx:%02lx:%02lx.0", part[0], part[1],
                    part[2]) < (int)sizeof out->found.bus;
}

/* Reads a device's identity; returns false if it is incomplete. */
static bool read_entry(const char *text, entry *out)
{
    char place[64];
    memset(out, 0, sizeof *out);
    return value_of(text, "Bus Location", place, sizeof place) && read_place(place, out) &&
           value_of(text, "Model", out->found.name, sizeof out->found.name) &&
           strcmp(out->found.name, "Unknown") != 0 &&
           value_of(text, "GPU UUID", out->found.uuid, sizeof out->found.uuid) &&
           strncmp(out->found.uuid, "GPU-", 4) == 0 && !strchr(out->found.uuid, '?');
}

/* Returns whether the device has MIG instances; each has a folder. A device in MIG mode without instances is not
 * detected here. */
static bool is_split(const char *root, unsigned minor)
{
    char below[64], path[ROOM];
    bool split = false;
    snprintf(below, sizeof below, "/capabilities/gpu%u/mig", minor);
    DIR *folder = path_of(root, FOLDER, below, path) ? opendir(path) : NULL;
    for (struct dirent *one; folder && (one = readdir(folder));)
        split = split || strncmp(one->d_name, "gi", 2) == 0;
    if (folder)
        closedir(folder);
    return split;
}

/* Inserts a device, sorted by bus address. */
static void insert(const entry *one, entries *to)
{
    int32_t at = to->count++;
    for (; at > 0 && to->all[at - 1].place > one->place; at--)
        to->all[at] = to->all[at - 1];
    to->all[at] = *one;
}

/* Adds the device if this process may use it. Returns false if that cannot be determined here. */
static bool add_device(const char *root, const char *text, entries *to)
{
    char word[64], node[32], *end = NULL;
    entry one;
    if (!value_of(text, "GPU Excluded", word, sizeof word))
        return false;
    if (strcmp(word, "No") != 0)
        return true;
    if (!value_of(text, "Device Minor", word, sizeof word))
        return false;
    unsigned minor = (unsigned)strtoul(word, &end, 10);
    if (*end)
        return false;
    snprintf(node, sizeof node, "/dev/nvidia%u", minor);
    if (!may_use(root, node))
        return exists(root, node) || !exists(root, "/usr/bin/nvidia-modprobe");
    if (is_split(root, minor) || to->count == CUDA_MOST || !read_entry(text, &one))
        return false;
    insert(&one, to);
    return true;
}

static bool read_all(const char *root, DIR *folder, entries *to)
{
    char name[ROOM], path[ROOM], text[TEXT];
    bool well = true;
    for (struct dirent *file; well && (file = readdir(folder));) {
        if (file->d_name[0] == '.')
            continue;
        well = snprintf(name, sizeof name, "/gpus/%s/information", file->d_name) < ROOM &&
               path_of(root, FOLDER, name, path) && read_text(path, text) &&
               add_device(root, text, to);
    }
    return well;
}

int cuda_proc_list(const char *root, const char *library, cuda_listing *out)
{
    cuda_surroundings around;
    entries found = {.count = 0};
    char path[ROOM];
    out->count = 0;
    DIR *folder = path_of(root, FOLDER, "/gpus", path) ? opendir(path) : NULL;
    if (!folder)
        return 0;
    cuda_look_around(root, &around);
    bool well = !around.is_wsl && !around.is_jetson && may_use(root, "/dev/nvidiactl") &&
                is_of_version(root, library) && read_all(root, folder, &found);
    closedir(folder);
    for (int32_t i = 0; well && i < found.count; i++) {
        out->all[i] = found.all[i].found;
        out->all[i].physical = i;
        out->count = i + 1;
    }
    return out->count > 0;
}

#else

int cuda_proc_list(const char *root, const char *library, cuda_listing *out)
{
    (void)root, (void)library;
    out->count = 0;
    return 0;
}

#endif
