/* The topology of the machine: from the cpu platform, or a basic reading of the system. */
#include "base/words.h"
#include "device/host/host.h"
#include "device/platform/platforms.h"

/* The topology that a platform reports, and the first error in it, in case the platform
 * continues. */
struct listener {
    tn_topology *topology;
    tn_status status;
    tn_error error;
};

static tn_status record_status(struct listener *listener, tn_status status, tn_error *err)
{
    listener->status = status;
    if (status && err)
        *err = listener->error;
    return status;
}

static tn_status hear_object(void *self, const tn_topology_object *object, tn_error *err)
{
    struct listener *listener = self;
    return record_status(listener,
                         listener->status
                             ? listener->status
                             : tni_topology_add(listener->topology, object, &listener->error),
                         err);
}

static tn_status hear_source(void *self, const char *text, tn_error *err)
{
    struct listener *listener = self;
    return record_status(listener,
                         listener->status
                             ? listener->status
                             : tni_topology_set_source(listener->topology, text, &listener->error),
                         err);
}

/* After the platform has reported: checks that there is an object, and sets the source if the
 * platform did not. */
static tn_status finish_topology(const tn_platform_row *row, tn_topology *topology, tn_error *err)
{
    if (topology->count == 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "topology",
                       "platform %s returned no objects, not even the machine", row->name);
    if (topology->source)
        return TN_OK;
    char text[96];
    snprintf(text, sizeof text, "platform %.60s", row->name);
    return tni_topology_set_source(topology, text, err);
}

static tn_status query_topology(const tn_platform_row *row, void *self, tn_topology **out,
                                tn_error *err)
{
    struct listener listener = {.status = TN_OK};
    tn_topology_sink sink = {sizeof sink, &listener, hear_object, hear_source};
    if (!row)
        return tn_fail(err, TN_UNAVAILABLE, 0, "topology", "no module offers the platform cpu");
    if (!TN_HAS(row, tn_platform_row, topology) || !row->topology)
        return tn_fail(err, TN_UNAVAILABLE, 0, "topology", "platform %s does not report it",
                       row->name);
    tn_status status = tni_topology_create_empty(&listener.topology, err);
    if (status)
        return status;
    status = row->topology(self, &sink, err);
    if (listener.status) {
        status = listener.status;
        *err = listener.error;
    }
    if (!status)
        status = finish_topology(row, listener.topology, err);
    if (status)
        tn_topology_release(listener.topology);
    else
        *out = listener.topology;
    return status;
}

tn_status tni_topology_read_basic(const char *why, tn_topology **out, tn_error *err)
{
    const tni_machine_query query = {.parts = TNI_MACHINE_BUDGET | TNI_MACHINE_TOPOLOGY};
    tni_machine *machine;
    tn_status status = tni_machine_read(&query, &machine, err);
    if (status)
        return status;
    status = tni_topology_basic(machine, why, out, err);
    tni_machine_release(machine);
    return status;
}

tn_status tni_topology_collect(const tn_platform_row *row, void *self, tn_topology **out,
                               tn_error *err)
{
    tn_error why = {.status = TN_OK};
    tn_status status = query_topology(row, self, out, &why);
    if (status == TN_UNAVAILABLE)
        return tni_topology_read_basic(tni_words_of(&why), out, err);
    if (status && err)
        *err = why;
    return status;
}

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
