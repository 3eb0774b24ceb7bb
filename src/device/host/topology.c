#include "base/alloc.h"
#include "base/words.h"
#include "host.h"

/* More than any machine has; also stops a module that never ends. */
enum { MOST_OBJECTS = 1 << 20 };

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
                       "object %zu: struct_size: expected at least %zu, got %zu", topology->count,
                       TN_UP_TO(tn_topology_object, speed_class), object ? object->struct_size : 0);
    if (object->type < 0 || object->type >= TN_TOPOLOGY_TYPE_COUNT)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "topology",
                       "object %zu: type: expected 0 to %d, got %d", topology->count,
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
