#include "cpu_process.h"

#include <stdatomic.h>
#include <stdlib.h>

#if defined(__linux__)
#include <dlfcn.h>
#include <unistd.h>
#endif

bool tni_cpu_variable_is_set(const char *name)
{
    return getenv(name) != NULL;
}

int32_t tni_cpu_variable_level(const char *name)
{
    const char *value = getenv(name);
    if (!value || !value[0])
        return 0;
    bool is_number = value[0] >= '0' && value[0] <= '9';
    return is_number ? (int32_t)strtol(value, NULL, 10) : 1;
}

#if defined(__linux__)

static bool is_loaded(const char *name)
{
    void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle)
        (void)dlclose(handle);
    return handle != NULL;
}

bool tni_cpu_process_has(const char *files)
{
    char name[256];
    for (const char *at = files; *at;) {
        size_t length = strcspn(at, "|");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (is_loaded(name))
            return true;
        at += length + (at[length] == '|');
    }
    return false;
}

/* A list of environment variables. None is freed: a reader may be anywhere in it. It belongs to the
 * process, so the module does not account for it. */
typedef struct variables {
    struct variables *before;
    char *entries[]; /* NULL-ended */
} variables;

static variables *_Atomic made;

static variables *copy_with(char **list, const char *entry)
{
    size_t count = 0;
    while (list && list[count])
        count++;
    variables *copy = malloc(sizeof *copy + (count + 2) * sizeof copy->entries[0]);
    if (!copy)
        return NULL;
    for (size_t i = 0; i < count; i++)
        copy->entries[i] = list[i];
    copy->entries[count] = (char *)(uintptr_t)entry;
    copy->entries[count + 1] = NULL;
    return copy;
}

static void keep(variables *list)
{
    list->before = atomic_load(&made);
    while (!atomic_compare_exchange_weak(&made, &list->before, list))
        ;
}

/* Removes the entry from the current list, which may be another one if someone added to it: changes
 * by others are kept. The last entry moves to the free place, so that a reader misses none. */
static void take_out(const char *entry)
{
    char **list = __atomic_load_n(&environ, __ATOMIC_ACQUIRE);
    size_t count = 0, place = SIZE_MAX;
    for (; list && list[count]; count++)
        place = list[count] == entry ? count : place;
    if (place == SIZE_MAX)
        return;
    __atomic_store_n(&list[place], list[count - 1], __ATOMIC_RELEASE);
    __atomic_store_n(&list[count - 1], NULL, __ATOMIC_RELEASE);
}

bool tni_cpu_call_with(const char *entry, void (*call)(void *user), void *user)
{
    char **before = __atomic_load_n(&environ, __ATOMIC_ACQUIRE);
    variables *list = copy_with(before, entry);
    if (!list)
        return false;
    if (!__atomic_compare_exchange_n(&environ, &before, list->entries, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        free(list);
        return false;
    }
    keep(list);
    call(user);
    take_out(entry);
    return true;
}

#else

bool tni_cpu_process_has(const char *files)
{
    (void)files;
    return true;
}

bool tni_cpu_call_with(const char *entry, void (*call)(void *user), void *user)
{
    (void)entry, (void)call, (void)user;
    return false;
}

#endif

static bool has_word(const char *list, const char *word, size_t length)
{
    for (const char *at = list; *at;) {
        size_t here = strcspn(at, ",");
        if (here == length && memcmp(at, word, length) == 0)
            return true;
        at += here + (at[here] == ',');
    }
    return false;
}

bool tni_cpu_machine_has(const tn_machine_facts *facts, const char *features)
{
    for (const char *at = features; *at;) {
        size_t length = strcspn(at, ",");
        if (!has_word(facts->features, at, length))
            return false;
        at += length + (at[length] == ',');
    }
    return true;
}

bool tni_cpu_machine_read(const tn_host *host, tn_machine_facts *out)
{
    *out = (tn_machine_facts){.struct_size = sizeof *out};
    return host->machine && !host->machine(host->self, out, NULL);
}
