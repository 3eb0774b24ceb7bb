/* Questions that tests ask of a topology: what is above a thread, how many there are of a kind,
 * what the whole looks like. */
#ifndef TENON_TEST_TOPOLOGY_SHAPE_H
#define TENON_TEST_TOPOLOGY_SHAPE_H

#include "test.h"

#include "device/host/host.h"

static inline const tn_topology_object *shape_get(const tn_topology *topology, int index)
{
    const tn_topology_object *object = tn_topology_get(topology, (size_t)index);
    assert_non_null(object);
    return object;
}

/* The thread of a number; -1 when there is none. */
static inline int shape_thread(const tn_topology *topology, int number)
{
    for (int i = 0; i < (int)tn_topology_count(topology); i++) {
        const tn_topology_object *object = shape_get(topology, i);
        if (object->type == TN_TOPOLOGY_THREAD && object->number == number)
            return i;
    }
    return -1;
}

/* The nearest of a kind that holds the object; -1 when none does. */
static inline int shape_above(const tn_topology *topology, int index, int type, int level)
{
    while (index >= 0 &&
           (shape_get(topology, index)->type != type || shape_get(topology, index)->level != level))
        index = shape_get(topology, index)->parent;
    return index;
}

/* How many there are; a level of -1 is any. */
static inline int shape_count(const tn_topology *topology, int type, int level)
{
    int count = 0;
    for (int i = 0; i < (int)tn_topology_count(topology); i++) {
        const tn_topology_object *object = shape_get(topology, i);
        count += object->type == type && (level < 0 || object->level == level);
    }
    return count;
}

/* Each comes after its parent, and what an object holds comes right after it. */
static inline void shape_check(const tn_topology *topology)
{
    assert_true(tn_topology_count(topology) >= 1);
    assert_int_equal(shape_get(topology, 0)->type, TN_TOPOLOGY_MACHINE);
    assert_int_equal(shape_get(topology, 0)->parent, -1);
    for (int i = 1; i < (int)tn_topology_count(topology); i++) {
        int parent = shape_get(topology, i)->parent, at = i - 1;
        assert_true(parent >= 0 && parent < i);
        while (at > parent)
            at = shape_get(topology, at)->parent;
        assert_int_equal(at, parent);
        assert_int_equal(shape_get(topology, i)->struct_size, sizeof(tn_topology_object));
    }
}

static inline void shape_add_(char *out, size_t size, const char *text)
{
    size_t length = strlen(out);
    assert_true(length + strlen(text) < size);
    memcpy(out + length, text, strlen(text) + 1);
}

static inline void shape_write_(const tn_topology *topology, int index, char *out, size_t size)
{
    const tn_topology_object *object = shape_get(topology, index);
    char word[64];
    int children = 0;
    if (object->type == TN_TOPOLOGY_CACHE)
        snprintf(word, sizeof word, "L%d", (int)object->level);
    else
        snprintf(word, sizeof word, "%s", tn_topology_type_name(object->type));
    shape_add_(out, size, word);
    snprintf(word, sizeof word, " %d", (int)object->number);
    shape_add_(out, size, object->number >= 0 ? word : "");
    for (int i = index + 1; i < (int)tn_topology_count(topology); i++) {
        if (shape_get(topology, i)->parent != index)
            continue;
        shape_add_(out, size, children++ ? "" : "(");
        shape_write_(topology, i, out, size);
    }
    shape_add_(out, size, children ? ")" : "");
}

/* "machine(node 0(core(thread 0)))". Lent until the next call. */
static inline const char *shape_write(const tn_topology *topology)
{
    static char text[16384];
    text[0] = '\0';
    shape_write_(topology, 0, text, sizeof text);
    return text;
}

#endif
