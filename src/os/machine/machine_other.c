#include "machine_read.h"

#include "os/thread.h"

/* Systems that Tenon cannot read yet: reports that, and knows only how many threads may run. */
static const char unread[] = "this system is not read yet";

static void fill_budget(const tni_machine_query *query, tni_machine_budget *out)
{
    for (int i = 0; i < TNI_LIMIT_COUNT; i++)
        out->limits[i] = tni_fact_none(TNI_FACT_UNKNOWN, unread);
    out->limits[TNI_LIMIT_AFFINITY] =
        tni_fact_known(tni_thread_processors(), "the processors that the process may use");
    tni_machine_budget_compute(out, query->request);
}

static void fill_memory(tni_machine_memory *out)
{
    tni_fact unknown = tni_fact_none(TNI_FACT_UNKNOWN, unread);
    *out = (tni_machine_memory){unknown, unknown, unknown, unknown, unknown, unknown, unknown};
}

static void fill_topology(tni_machine_topology *out)
{
    tni_fact unknown = tni_fact_none(TNI_FACT_UNKNOWN, unread);
    tni_fact_text silent = {NULL, unread};
    out->architecture = out->model = out->hypervisor = silent;
    out->packages = out->dies = out->cores = out->threads = out->threads_per_core = unknown;
    out->caches_known = out->nodes_known = out->classes_known = unknown;
}

tn_status tni_machine_read(const tni_machine_query *query, tni_machine **out, tn_error *err)
{
    tni_reading reading;
    if (query->request < 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tni_machine_read",
                       "expected a thread count of at least 0, got %d", (int)query->request);
    tni_reading_init(&reading, query->root);
    tni_machine *machine = tni_reading_keep(&reading, 1, sizeof *machine);
    if (machine) {
        machine->parts = query->parts & TNI_MACHINE_ALL;
        fill_budget(query, &machine->budget);
        fill_memory(&machine->memory);
        fill_topology(&machine->topology);
        tni_machine_uuid("other", tni_span_of(""), machine->identity.uuid);
        machine->identity.source =
            "nothing, so the identity is the same on every machine of this kind";
    }
    return tni_reading_end(&reading, machine, out, err);
}
