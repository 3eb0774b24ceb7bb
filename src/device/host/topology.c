#include "base/alloc.h"
#include "base/words.h"
#include "host.h"

/* More than any machine has; also stops a module that never ends. */
enum { MOST_OBJECTS = 1 << 20 };

struct tn_topology {
    tn_topology_object *objects;
    size_t count;
    size_t capacity;
    char *source;
};

static const char *const type_words[] = {"machine", "package", "die",   "node",
                                         "cache",   "core",    "thread"};
TN_STATIC_ASSERT(sizeof type_words / sizeof type_words[0] == TN_TOPOLOGY_TYPE_COUNT,
                 "every type has a word");

const char *tn_topology_type_name(int32_t type)
{
    return type >= 0 && type < TN_TOPOLOGY_TYPE_COUNT ? type_words[type] : "unknown";
}

size_t tn_topology_count(const tn_topology *topology)
{
    return topology ? topology->count : 0;
}

const tn_topology_object *tn_topology_get(const tn_topology *topology, size_t index)
{
    return index < tn_topology_count(topology) ? &topology->objects[index] : NULL;
}

const char *tn_topology_source(const tn_topology *topology)
{
    return topology && topology->source ? topology->source : "";
}

void tn_topology_release(tn_topology *topology)
{
    if (!topology)
        return;
    tni_release(topology->source);
    tni_release(topology->objects);
    tni_release(topology);
}

tn_status tni_topology_create_empty(tn_topology **out, tn_error *err)
{
    tn_topology *topology = tni_alloc_zeroed(1, sizeof *topology);
    if (!topology)
        return tni_no_memory(err, "topology", "a topology");
    *out = topology;
    return TN_OK;
}

/* Describes what is wrong with the object's position; NULL if it is valid. */
static const char *find_misplaced(const tn_topology *topology, const tn_topology_object *object)
{
    if (topology->count == 0)
        return object->type != TN_TOPOLOGY_MACHINE ? "the first object must be the machine"
               : object->parent != -1              ? "the machine has no parent"
                                                   : NULL;
    if (object->type == TN_TOPOLOGY_MACHINE)
        return "only the first object can be the machine";
    if (object->parent < 0 || (size_t)object->parent >= topology->count)
        return "its parent must come before it";
    if (topology->objects[object->parent].type == TN_TOPOLOGY_THREAD)
        return "its parent is a thread, which cannot have children";
    return NULL;
}

/* Describes what is wrong with the object's own values; NULL if they are valid. */
static const char *find_invalid(const tn_topology_object *object)
{
    bool cache = object->type == TN_TOPOLOGY_CACHE;
    if (cache ? object->level < 1 || object->level > TNI_TOPOLOGY_LEVELS : object->level != 0)
        return "a cache needs a level from 1 to 16, other objects need 0";
    if (object->bytes < 0)
        return "its size is negative";
    if (object->number < -1)
        return "its number is below -1";
    if (object->usable < 0 || object->usable > 1)
        return "usable is neither 0 nor 1";
    return object->speed_class < -1 ? "its speed class is below -1" : NULL;
}

static tn_status reject_object(const tn_topology *topology, const tn_topology_object *object,
                               const char *what, tn_error *err)
{
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, "topology",
                   "object %zu (%s %d, parent %d, level %d): %s", topology->count,
                   tn_topology_type_name(object->type), (int)object->number, (int)object->parent,
                   (int)object->level, what);
}

tn_status tni_topology_add(tn_topology *topology, const tn_topology_object *object, tn_error *err)
{
    if (!object || !TN_HAS(object, tn_topology_object, speed_class))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "topology",
                       "object %zu: struct_size needs at least %zu, found %zu", topology->count,
                       TN_UP_TO(tn_topology_object, speed_class), object ? object->struct_size : 0);
    if (object->type < 0 || object->type >= TN_TOPOLOGY_TYPE_COUNT)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "topology",
                       "object %zu: type needs 0 to %d, found %d", topology->count,
                       TN_TOPOLOGY_TYPE_COUNT - 1, (int)object->type);
    if (topology->count == MOST_OBJECTS)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "topology", "expected at most %d objects",
                       MOST_OBJECTS);
    const char *what = find_misplaced(topology, object);
    if (!what)
        what = find_invalid(object);
    if (what)
        return reject_object(topology, object, what, err);
    if (!tni_array_reserve((void **)&topology->objects, &topology->capacity, topology->count,
                           topology->count + 1, sizeof *object))
        return tni_no_memory(err, "topology", "the parts of the machine");
    tn_topology_object *added = &topology->objects[topology->count++];
    memcpy(added, object, sizeof *added);
    added->struct_size = sizeof *added;
    return TN_OK;
}

tn_status tni_topology_set_source(tn_topology *topology, const char *source, tn_error *err)
{
    char *copy = tni_text_copy(source ? source : "");
    if (!copy)
        return tni_no_memory(err, "topology", "its origin");
    tni_words_clean(copy);
    tni_release(topology->source);
    topology->source = copy;
    return TN_OK;
}

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
