#include "tenon/machine.h"

#include "base/alloc.h"
#include "host.h"
#include "tenon/setting.h"

struct tn_machine {
    tni_machine *read; /* owns most texts */
    tn_machine_facts facts;
    tn_machine_limit limits[TNI_LIMIT_COUNT];
    tn_machine_node *nodes;
    tn_machine_class *classes;
    tni_buffer lists; /* processor lists: of nodes, then of classes, each NUL-terminated */
};

static void fill_limits(tn_machine *machine)
{
    const tni_machine_budget *budget = &machine->read->budget;
    for (int32_t i = 0; i < TNI_LIMIT_COUNT; i++) {
        const tni_fact *limit = &budget->limits[i];
        machine->limits[i] = (tn_machine_limit){
            .struct_size = sizeof machine->limits[i],
            .name = tni_limit_name(i),
            .state = tni_fact_word(limit->state),
            .origin = limit->origin,
            .value = limit->value,
            .least = i == budget->least,
        };
    }
}

/* Writes all lists before taking pointers into them, as the buffer moves when it grows. */
static bool write_lists(tn_machine *machine)
{
    const tni_machine_topology *topology = &machine->read->topology;
    for (size_t i = 0; i < topology->node_count; i++) {
        tni_cpus_write(&topology->nodes[i].cpus, &machine->lists);
        tni_buffer_add_char(&machine->lists, '\0');
    }
    for (size_t i = 0; i < topology->class_count; i++) {
        tni_cpus_write(&topology->classes[i].cpus, &machine->lists);
        tni_buffer_add_char(&machine->lists, '\0');
    }
    return !machine->lists.failed;
}

static const char *take_list(const char **at)
{
    const char *list = *at;
    *at += strlen(list) + 1;
    return list;
}

static void fill_nodes(tn_machine *machine, const char **lists)
{
    for (size_t i = 0; i < machine->read->topology.node_count; i++) {
        const tni_machine_node *node = &machine->read->topology.nodes[i];
        machine->nodes[i] = (tn_machine_node){
            .struct_size = sizeof machine->nodes[i],
            .cpus = take_list(lists),
            .total = tni_fact_shown(&node->total),
            .free = tni_fact_shown(&node->free),
            .number = node->id,
            .cpu_count = node->cpus.count,
        };
    }
}

static void fill_classes(tn_machine *machine, const char **lists)
{
    for (size_t i = 0; i < machine->read->topology.class_count; i++) {
        const tni_machine_class *class = &machine->read->topology.classes[i];
        machine->classes[i] = (tn_machine_class){
            .struct_size = sizeof machine->classes[i],
            .name = class->name,
            .cpus = take_list(lists),
            .capacity = class->capacity,
            .max_khz = class->max_khz,
            .cpu_count = class->cpus.count,
        };
    }
}

static bool fill_machine(tn_machine *machine)
{
    const tni_machine_topology *topology = &machine->read->topology;
    machine->nodes = tni_alloc_zeroed(topology->node_count, sizeof *machine->nodes);
    machine->classes = tni_alloc_zeroed(topology->class_count, sizeof *machine->classes);
    if (!machine->nodes || !machine->classes || !write_lists(machine))
        return false;
    const char *lists = tni_buffer_text(&machine->lists);
    machine->facts.struct_size = sizeof machine->facts;
    tni_machine_facts_fill(machine->read, &machine->facts);
    fill_limits(machine);
    fill_nodes(machine, &lists);
    fill_classes(machine, &lists);
    return true;
}

tn_status tni_machine_snapshot(const tni_machine_query *query, tn_machine **out, tn_error *err)
{
    tni_machine_query all = *query;
    all.parts = TNI_MACHINE_ALL;
    tn_machine *machine = tni_alloc_zeroed(1, sizeof *machine);
    if (!machine)
        return tni_no_memory(err, "tn_machine_create", "a machine");
    tn_status status = tni_machine_read(&all, &machine->read, err);
    if (!status && !fill_machine(machine))
        status = tni_no_memory(err, "tn_machine_create", "the facts of the machine");
    if (status) {
        tn_machine_release(machine);
        return status;
    }
    *out = machine;
    return TN_OK;
}

tn_status tn_machine_create(tn_machine **out, tn_error *err)
{
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_machine_create", "out is NULL");
    const tni_machine_query query = {.request = (int32_t)tn_get_cpu_threads(NULL)};
    return tni_machine_snapshot(&query, out, err);
}

void tn_machine_release(tn_machine *machine)
{
    if (!machine)
        return;
    tni_buffer_release(&machine->lists);
    tni_release(machine->classes);
    tni_release(machine->nodes);
    tni_machine_release(machine->read);
    tni_release(machine);
}

const tn_machine_facts *tn_machine_facts_get(const tn_machine *machine)
{
    return machine ? &machine->facts : NULL;
}

size_t tn_machine_limit_count(const tn_machine *machine)
{
    return machine ? TNI_LIMIT_COUNT : 0;
}

const tn_machine_limit *tn_machine_limit_get(const tn_machine *machine, size_t index)
{
    return index < tn_machine_limit_count(machine) ? &machine->limits[index] : NULL;
}

size_t tn_machine_node_count(const tn_machine *machine)
{
    return machine ? machine->read->topology.node_count : 0;
}

const tn_machine_node *tn_machine_node_get(const tn_machine *machine, size_t index)
{
    return index < tn_machine_node_count(machine) ? &machine->nodes[index] : NULL;
}

size_t tn_machine_class_count(const tn_machine *machine)
{
    return machine ? machine->read->topology.class_count : 0;
}

const tn_machine_class *tn_machine_class_get(const tn_machine *machine, size_t index)
{
    return index < tn_machine_class_count(machine) ? &machine->classes[index] : NULL;
}

size_t tn_machine_note_count(const tn_machine *machine)
{
    return machine ? machine->read->note_count : 0;
}

const char *tn_machine_note_get(const tn_machine *machine, size_t index)
{
    return index < tn_machine_note_count(machine) ? machine->read->notes[index] : NULL;
}
