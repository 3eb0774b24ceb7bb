#include "phrases.h"

#include <inttypes.h>

void phrase_processor(const findings *found, text_line *out)
{
    const tn_machine_facts *facts = found->facts;
    text_add(out, "%s", facts->model[0] ? facts->model : "unknown processor");
    text_add_item(out, "%s", facts->architecture[0] ? facts->architecture : "unknown architecture");
    if (facts->hypervisor[0])
        text_add_item(out, "under %s", facts->hypervisor);
}

void phrase_level(const findings *found, text_line *out)
{
    const char *why, *withheld = tn_cpu_withheld(&why);
    text_add(out, "%s (PyTorch's word: %s)", found->level, found->capability);
    if (withheld[0])
        text_add(out, "; %s is present but not used: %s", withheld, why);
}

static void add_count(text_line *out, const tn_fact *fact, const char *noun)
{
    if (fact->known)
        text_add_item(out, "%" PRId64 " %s%s", fact->value, noun, plural(fact->value));
    else
        text_add_item(out, "an unknown number of %ss", noun);
}

void phrase_structure(const findings *found, text_line *out)
{
    const tn_machine_facts *facts = found->facts;
    add_count(out, &facts->packages, "package");
    add_count(out, &facts->cores, "core");
    add_count(out, &facts->hardware_threads, "thread");
    add_count(out, &facts->nodes, "NUMA node");
}

static bool is_cache(const tn_topology_object *object, const tn_topology_object *like)
{
    return object->type == TN_TOPOLOGY_CACHE && object->level == like->level &&
           object->bytes == like->bytes;
}

static int64_t count_caches(const findings *found, size_t from, size_t to,
                            const tn_topology_object *like)
{
    int64_t count = 0;
    for (size_t i = from; i < to; i++)
        count += is_cache(&found->objects[i], like);
    return count;
}

static void add_caches(const findings *found, int32_t level, text_line *out)
{
    char room[TEXT_BYTES];
    for (size_t i = 0; i < found->object_count; i++) {
        const tn_topology_object *cache = &found->objects[i];
        if (cache->type != TN_TOPOLOGY_CACHE || cache->level != level || cache->bytes <= 0 ||
            count_caches(found, 0, i, cache) > 0)
            continue;
        int64_t count = count_caches(found, i, found->object_count, cache);
        text_add_item(out, "L%d ", (int)level);
        if (count > 1)
            text_add(out, "%" PRId64 " x ", count);
        text_add(out, "%s", text_bytes(cache->bytes, room));
    }
}

void phrase_caches(const findings *found, text_line *out)
{
    enum { LEVELS = 5 };
    char room[TEXT_BYTES];
    for (int32_t level = 1; level <= LEVELS; level++)
        add_caches(found, level, out);
    if (out->length > 0)
        return;
    if (found->facts->l2_cache.known)
        text_add_item(out, "L2 %s", text_bytes(found->facts->l2_cache.value, room));
    if (found->facts->l3_cache.known)
        text_add_item(out, "L3 %s", text_bytes(found->facts->l3_cache.value, room));
}

void phrase_clock(const findings *found, text_line *out)
{
    if (found->facts->max_khz.known)
        text_add(out, "up to %.2f GHz", (double)found->facts->max_khz.value / 1e6);
}

void phrase_class(const tn_machine_class *class, text_line *out)
{
    text_add(out, "%s: %d thread%s", class->name, (int)class->cpu_count, plural(class->cpu_count));
    if (class->cpus[0])
        text_add(out, " (%s)", class->cpus);
    if (class->max_khz > 0)
        text_add_item(out, "up to %.2f GHz", (double)class->max_khz / 1e6);
    if (class->capacity > 0)
        text_add_item(out, "speed %" PRId64 " of 1024", class->capacity);
}

const char *limit_source(const tn_machine_limit *limit)
{
    return strcmp(limit->name, "requested") == 0 ? "the setting cpu.threads" : limit->name;
}

void phrase_budget(const findings *found, text_line *out)
{
    const tn_machine_limit *least = findings_least_limit(found);
    int threads = (int)found->facts->threads;
    text_add(out, "%d thread%s", threads, plural(threads));
    if (least)
        text_add(out, " (by %s)", limit_source(least));
}

static void add_number(text_line *out, const tn_device_properties *properties, uint64_t bit,
                       int64_t value, const char *noun)
{
    if (properties->known & bit)
        text_add_item(out, "%" PRId64 " %s%s", value, noun, plural(value));
}

void phrase_device(const findings *found, const found_device *device, text_line *out)
{
    const tn_device_properties *p = device->properties;
    bool is_cpu = device->kind == TN_PLATFORM_CPU;
    if (device->architecture[0])
        text_add_item(out, "%s", device->architecture);
    if (is_cpu && !device->described)
        text_add_item(out, "level %s", found->level);
    add_number(out, p, TN_DEVICE_KNOWS(multi_processor_count), p->multi_processor_count,
               is_cpu ? "core" : "multiprocessor");
    if (p->known & TN_DEVICE_KNOWS(numa_node))
        text_add_item(out, "NUMA node %" PRId64, p->numa_node);
    if (device->bus[0])
        text_add_item(out, "bus %s", device->bus);
    if (is_cpu && !device->described && found->facts) {
        text_add_item(out, "budget ");
        phrase_budget(found, out);
    }
    if (device->plans_only)
        text_add_item(out, "plans only");
    if (device->described)
        text_add_item(out, "described in %s", device->described);
}

void phrase_not_ready(const findings *found, text_line *out)
{
    for (size_t i = 0; i < found->platform_count; i++) {
        const tn_platform_report *report = &found->platforms[i].report;
        if (report->verdict != TN_PLATFORM_READY)
            text_add_item(out, "%s (%s)", report->name, tn_platform_verdict_name(report->verdict));
    }
}

void phrase_verdict(const findings *found, text_line *out)
{
    int broken = findings_count_broken(found);
    if (broken == 0)
        text_add(out, "nothing is broken");
    else
        text_add(out, "%d thing%s broken", broken, broken == 1 ? " is" : "s are");
    if (found->choice_status != TN_OK)
        text_add_item(out, "%s no platform is current", broken ? "and" : "but");
}

void phrase_counts(const findings *found, text_line *out)
{
    text_add(out, "%zu of %zu platforms ready", findings_count_ready_platforms(found),
             findings_count_platforms(found));
    text_add_item(out, "%zu device%s", found->device_count, plural((int64_t)found->device_count));
    text_add_item(out, "%zu of %zu modules ready", findings_count_ready_modules(found),
                  found->module_count);
}

void phrase_limit(const tn_machine_limit *limit, text_line *out)
{
    if (strcmp(limit->state, "known") == 0)
        text_add(out, "%" PRId64, limit->value);
    else
        text_add(out, "%s", limit->state);
}
