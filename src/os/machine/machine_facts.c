#include "machine.h"

#include "os/cpu.h"

#include <stdatomic.h>

tn_fact tni_fact_shown(const tni_fact *fact)
{
    const char *origin = fact->origin ? fact->origin : "it was not read";
    return fact->state == TNI_FACT_KNOWN ? tn_fact_of(fact->value, origin)
                                         : tn_fact_unknown(origin);
}

static void fit(char *to, size_t size, const char *text)
{
    tn_text_fit(to, size, text ? text : "");
}

/* The greatest cache of the level: that of the fastest cores if cores differ. */
static tn_fact cache_of(const tni_machine_topology *topology, int32_t level)
{
    char none[64];
    int64_t greatest = 0;
    for (size_t i = 0; i < topology->cache_count; i++) {
        const tni_machine_cache *cache = &topology->caches[i];
        if (cache->level == level && cache->type != TNI_CACHE_INSTRUCTION && cache->size > greatest)
            greatest = cache->size;
    }
    if (topology->cache_count == 0)
        return tni_fact_shown(&topology->caches_known);
    if (greatest > 0)
        return tn_fact_of(greatest, topology->caches_known.origin);
    snprintf(none, sizeof none, "the system reports no size for the level %d cache", (int)level);
    return tn_fact_unknown(none);
}

static tn_fact max_khz_of(const tni_machine_topology *topology)
{
    int64_t greatest = 0;
    for (size_t i = 0; i < topology->class_count; i++) {
        if (topology->classes[i].max_khz > greatest)
            greatest = topology->classes[i].max_khz;
    }
    return greatest > 0
               ? tn_fact_of(greatest, "/sys/devices/system/cpu/cpu*/cpufreq/cpuinfo_max_freq")
               : tn_fact_unknown("the system reports no maximum frequency");
}

static void fill_topology(const tni_machine_topology *topology, tn_machine_facts *out)
{
    fit(out->model, sizeof out->model, topology->model.text);
    fit(out->architecture, sizeof out->architecture, topology->architecture.text);
    fit(out->hypervisor, sizeof out->hypervisor, topology->hypervisor.text);
    out->packages = tni_fact_shown(&topology->packages);
    out->cores = tni_fact_shown(&topology->cores);
    out->hardware_threads = tni_fact_shown(&topology->threads);
    out->nodes = tni_fact_shown(&topology->nodes_known);
    out->max_khz = max_khz_of(topology);
    out->l2_cache = cache_of(topology, 2);
    out->l3_cache = cache_of(topology, 3);
}

/* Facts that do not change while the process lives, except when processors go online or offline. */
static void fill_standing(const tni_machine *machine, tn_machine_facts *out)
{
    fill_topology(&machine->topology, out);
    fit(out->uuid, sizeof out->uuid, machine->identity.uuid);
    fit(out->uuid_source, sizeof out->uuid_source, machine->identity.source);
}

static void fill_moving(const tni_machine *machine, tn_machine_facts *out)
{
    (void)tni_cpu_features_write(tni_cpu_features(), out->features, sizeof out->features);
    out->threads = machine->budget.threads;
    out->memory_total = tni_fact_shown(&machine->memory.total);
    out->memory_available = tni_fact_shown(&machine->memory.available);
    out->memory_in_use = tni_fact_shown(&machine->memory.resident);
}

static void copy_facts(const tn_machine_facts *facts, tn_machine_facts *out)
{
    size_t size = out->struct_size < sizeof *facts ? out->struct_size : sizeof *facts;
    memcpy(out, facts, size);
    out->struct_size = size;
}

void tni_machine_facts_fill(const tni_machine *machine, tn_machine_facts *out)
{
    tn_machine_facts facts = {.struct_size = sizeof facts};
    fill_standing(machine, &facts);
    fill_moving(machine, &facts);
    copy_facts(&facts, out);
}

/* The constant facts of the running system, read once: reading them for hundreds of processors is
 * slow. */
enum { NOT_KEPT, BEING_KEPT, KEPT };
static tn_machine_facts kept;
static _Atomic int kept_state = NOT_KEPT;

static void store_facts(const tn_machine_facts *facts)
{
    int none = NOT_KEPT;
    if (!atomic_compare_exchange_strong(&kept_state, &none, BEING_KEPT))
        return;
    kept = *facts;
    atomic_store_explicit(&kept_state, KEPT, memory_order_release);
}

tn_status tni_machine_facts_read(tn_machine_facts *out, tn_error *err)
{
    tn_machine_facts facts = {.struct_size = sizeof facts};
    bool known = atomic_load_explicit(&kept_state, memory_order_acquire) == KEPT;
    const tni_machine_query query = {.parts = known ? TNI_MACHINE_BUDGET | TNI_MACHINE_MEMORY
                                                    : TNI_MACHINE_ALL};
    tni_machine *machine;
    if (out->struct_size < TN_UP_TO(tn_machine_facts, model))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "machine facts",
                       "struct_size: expected at least %zu, got %zu",
                       TN_UP_TO(tn_machine_facts, model), out->struct_size);
    tn_status status = tni_machine_read(&query, &machine, err);
    if (status)
        return status;
    if (known) {
        facts = kept;
    } else {
        fill_standing(machine, &facts);
        store_facts(&facts);
    }
    fill_moving(machine, &facts);
    tni_machine_release(machine);
    copy_facts(&facts, out);
    return TN_OK;
}
