/* The topology of the machine, from the process's cpu platform. */
#include "device/host/host.h"
#include "device/platform/platforms.h"

tn_status tn_topology_create(tn_topology **out, tn_error *err)
{
    tni_platforms *set;
    tn_platform *cpu = NULL;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_topology_create", "out is NULL");
    tn_status status = tni_platforms_process(&set, err);
    if (!status)
        status = tni_platforms_sync(set, err);
    if (!status)
        status = tni_platforms_find(set, "cpu", &cpu, err);
    if (status)
        return status;
    const tni_offer *offer = atomic_load_explicit(&cpu->served, memory_order_acquire);
    bool ready = tni_platform_is_ready(cpu) && tni_offer_is_of_this_process(offer);
    return tni_topology_collect(ready ? offer->platform->row : NULL,
                                ready ? offer->platform->self : NULL, out, err);
}

tn_status tn_topology_create_basic(tn_topology **out, tn_error *err)
{
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_topology_create_basic", "out is NULL");
    return tni_topology_read_basic("opening libraries was not requested", out, err);
}
