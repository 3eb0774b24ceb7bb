#include "machine_linux.h"

#include "base/alloc.h"

#include <stdlib.h>

/* More than any processor has. Also bounds the loop over cache folders. */
enum { MOST_INDICES = 16 };

/* Collects caches. Every processor that uses a cache describes it under the same index, so only the
 * first such processor is read. */
struct finder {
    tni_reading *reading;
    tni_machine_cache *caches;
    size_t count;
    size_t capacity;
    tni_cpus covered[MOST_INDICES];
};

static uint32_t type_of(const char *word)
{
    return strcmp(word, "Data") == 0          ? TNI_CACHE_DATA
           : strcmp(word, "Instruction") == 0 ? TNI_CACHE_INSTRUCTION
           : strcmp(word, "Unified") == 0     ? TNI_CACHE_UNIFIED
                                              : TNI_CACHE_UNKNOWN;
}

static int32_t bounded(int64_t value)
{
    return value <= INT32_MAX ? (int32_t)value : 0;
}

/* Returns false if the processor has no cache with this index. */
static bool read_cache(tni_reading *reading, int32_t cpu, int index, tni_machine_cache *out)
{
    char folder[96];
    int64_t level, line = 0, size = 0;
    const char *type = "";
    snprintf(folder, sizeof folder, "/sys/devices/system/cpu/cpu%d/cache/index%d", (int)cpu, index);
    if (!tni_reading_number(reading, &level, "%s/level", folder))
        return false;
    (void)tni_reading_word(reading, &type, "%s/type", folder);
    (void)tni_reading_bytes(reading, &size, "%s/size", folder);
    (void)tni_reading_number(reading, &line, "%s/coherency_line_size", folder);
    *out = (tni_machine_cache){bounded(level), type_of(type), size, bounded(line), {0}};
    if (tni_reading_cpus(reading, &out->shared, "%s/shared_cpu_list", folder) &&
        tni_cpus_has(&out->shared, cpu))
        return true;
    if (!tni_cpus_make(reading, cpu + 1, &out->shared))
        return false;
    tni_cpus_add(&out->shared, cpu, cpu);
    tni_cpus_count(&out->shared);
    return true;
}

static void add(struct finder *finder, const tni_machine_cache *cache, int index)
{
    tni_cpus *covered = &finder->covered[index];
    if (!tni_array_reserve((void **)&finder->caches, &finder->capacity, finder->count,
                           finder->count + 1, sizeof *cache)) {
        finder->reading->failed = true;
        return;
    }
    finder->caches[finder->count++] = *cache;
    for (int32_t cpu = tni_cpus_next(&cache->shared, 0); cpu >= 0;
         cpu = tni_cpus_next(&cache->shared, cpu + 1))
        tni_cpus_add(covered, cpu, cpu);
}

static void read_caches(struct finder *finder, int32_t cpu)
{
    for (int index = 0; index < MOST_INDICES; index++) {
        tni_machine_cache cache;
        if (tni_cpus_has(&finder->covered[index], cpu))
            continue;
        if (!read_cache(finder->reading, cpu, index, &cache))
            return;
        add(finder, &cache, index);
    }
}

static int by_level(const void *a, const void *b)
{
    const tni_machine_cache *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    return (int)(tni_cpus_next(&x->shared, 0) - tni_cpus_next(&y->shared, 0));
}

void tni_machine_caches_read(tni_reading *reading, tni_machine_topology *out)
{
    static const char origin[] = "/sys/devices/system/cpu/cpu*/cache";
    struct finder finder = {.reading = reading};
    out->caches_known =
        tni_fact_none(TNI_FACT_UNKNOWN, "/sys/devices/system/cpu/cpu*/cache: no caches listed");
    for (int i = 0; i < MOST_INDICES; i++) {
        if (!tni_cpus_make(reading, out->online.room, &finder.covered[i]))
            return;
    }
    for (size_t i = 0; i < out->cpu_count && !reading->failed; i++) {
        if (out->cpus[i].online)
            read_caches(&finder, out->cpus[i].id);
    }
    tni_machine_cache *kept = tni_reading_keep(reading, finder.count, sizeof *kept);
    if (kept && finder.count) {
        memcpy(kept, finder.caches, finder.count * sizeof *kept);
        qsort(kept, finder.count, sizeof *kept, by_level);
        out->caches = kept;
        out->cache_count = finder.count;
        out->caches_known = tni_fact_known((int64_t)finder.count, origin);
    }
    tni_release(finder.caches);
}
