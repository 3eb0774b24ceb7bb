#include "findings.h"

#include <stdlib.h>

const tn_platform_verdict findings_verdict_order[TN_PLATFORM_VERDICT_COUNT] = {
    TN_PLATFORM_READY,     TN_PLATFORM_BROKEN,    TN_PLATFORM_HIDDEN,
    TN_PLATFORM_NO_DRIVER, TN_PLATFORM_NO_MODULE, TN_PLATFORM_ABSENT};

static void *make_room(size_t count, size_t size, tn_error *err)
{
    void *room = calloc(count ? count : 1, size);
    if (!room)
        tn_fail(err, TN_OUT_OF_MEMORY, 0, "findings", "no memory for %zu rows", count);
    return room;
}

/* Copies the rows returned by `noun`_count and `noun`_get; if out of memory, the calling function
 * returns. */
#define COPY_ROWS(noun, from, items, item_count)                 \
    do {                                                         \
        size_t n_ = noun##_count(from);                          \
        if (!((items) = make_room(n_, sizeof *(items), err)))    \
            return TN_OUT_OF_MEMORY;                             \
        for (; (item_count) < n_; (item_count)++)                \
            (items)[item_count] = *noun##_get(from, item_count); \
    } while (0)

static tn_status gather_modules(findings *to, tn_error *err)
{
    tn_status status = tn_module_list_create(&to->module_list, err);
    if (status)
        return status;
    COPY_ROWS(tn_module_list, to->module_list, to->modules, to->module_count);
    COPY_ROWS(tn_module_list_place, to->module_list, to->places, to->place_count);
    return TN_OK;
}

static tn_status gather_machine(findings *to, tn_error *err)
{
    tn_status status = tn_machine_create(&to->machine, err);
    if (status)
        return status;
    to->facts = tn_machine_facts_get(to->machine);
    COPY_ROWS(tn_machine_limit, to->machine, to->limits, to->limit_count);
    COPY_ROWS(tn_machine_node, to->machine, to->nodes, to->node_count);
    COPY_ROWS(tn_machine_class, to->machine, to->classes, to->class_count);
    size_t notes = tn_machine_note_count(to->machine);
    if (!(to->notes = make_room(notes, sizeof *to->notes, err)))
        return TN_OUT_OF_MEMORY;
    for (; to->note_count < notes; to->note_count++)
        to->notes[to->note_count] = tn_machine_note_get(to->machine, to->note_count);
    return TN_OK;
}

/* A missing topology is not a failure of the report: its source says why. */
static tn_status gather_topology(uint32_t parts, findings *to, tn_error *err)
{
    const tn_library *used;
    tn_status status = parts & FIND_TOPOLOGY
                           ? tn_topology_create(&to->topology, &to->topology_error)
                           : tn_topology_create_basic(&to->topology, &to->topology_error);
    if (status) {
        to->topology_source = to->topology_error.message;
        return TN_OK;
    }
    to->topology_source = tn_topology_source(to->topology);
    if (strncmp(to->topology_source, "hwloc", 5) == 0 && !tn_library_get("hwloc", &used, NULL))
        (void)tn_library_try(used, NULL); /* so that it is reported as in use */
    COPY_ROWS(tn_topology, to->topology, to->objects, to->object_count);
    return TN_OK;
}

static tn_status gather_libraries(findings *to, tn_error *err)
{
    const tn_library *library;
    size_t count = 0;
    tn_status status = tn_library_count(&count, err);
    if (status)
        return status;
    if (!(to->libraries = make_room(count, sizeof *to->libraries, err)))
        return TN_OUT_OF_MEMORY;
    while (!status && to->library_count < count && (library = tn_library_at(to->library_count))) {
        tn_library_state *row = &to->libraries[to->library_count++];
        row->struct_size = sizeof *row;
        status = tn_library_state_get(library, NULL, row, err);
    }
    return status;
}

static size_t count_evidence(const tn_platform_list *list)
{
    size_t count = 0;
    for (size_t i = 0; i < tn_platform_list_count(list); i++)
        count += tn_platform_list_get(list, i)->evidence_count;
    return count;
}

static tn_status gather_platforms(findings *to, tn_error *err)
{
    tn_status status = tn_platform_list_create(&to->platform_list, err);
    if (status)
        return status;
    const tn_platform_list *list = to->platform_list;
    size_t count = tn_platform_list_count(list), next = 0;
    if (!(to->platforms = make_room(count, sizeof *to->platforms, err)) ||
        !(to->evidence = make_room(count_evidence(list), sizeof *to->evidence, err)))
        return TN_OUT_OF_MEMORY;
    for (; to->platform_count < count; to->platform_count++) {
        found_platform *row = &to->platforms[to->platform_count];
        row->report = *tn_platform_list_get(list, to->platform_count);
        row->evidence = &to->evidence[next];
        row->device_name = tn_platform_device_name(row->report.platform);
        row->device_type = tn_platform_device_type(row->report.platform);
        row->dispatch_key = tn_platform_dispatch_key(row->report.platform);
        row->visible_variable = tn_platform_visible_variable(row->report.platform);
        for (size_t e = 0; e < row->report.evidence_count; e++)
            to->evidence[next++] = *tn_platform_list_evidence(list, to->platform_count, e);
    }
    to->choice = tn_platform_list_choice(list);
    to->choice_status = tn_platform_list_choice_status(list);
    return TN_OK;
}

static const char *described_where(const char *origin)
{
    static const char words[] = "described in ";
    if (strcmp(origin, "found") == 0)
        return NULL;
    return strncmp(origin, words, sizeof words - 1) == 0 ? origin + sizeof words - 1 : origin;
}

static void fill_device(const findings *from, const tn_device *device, found_device *to)
{
    tn_error err;
    tn_capability capability;
    const tn_platform *platform = tn_device_platform(device);
    const found_platform *current = findings_current(from);
    to->id = tn_device_id(device);
    to->platform = tn_platform_name(platform);
    to->kind = tn_platform_kind(platform);
    to->described = described_where(tn_device_origin(device));
    to->name = tn_device_name(device);
    to->uuid = tn_device_uuid(device);
    to->bus = tn_device_bus(device);
    to->properties = tn_device_properties_get(device);
    to->architecture = to->properties->architecture;
    to->dtypes = tn_device_supported_dtypes(device);
    to->plans_only = tn_device_plans_only(device) != 0;
    to->current = current && !to->plans_only && current->report.platform == platform &&
                  tn_device_index(device) == tn_device_current(platform);
    if (tn_device_capability(device, &capability, &err) == TN_OK)
        (void)tn_capability_as_version_str(capability, to->capability, sizeof to->capability);
    to->memory.struct_size = sizeof to->memory;
    if (tn_device_memory_get(device, &to->memory, &err)) {
        to->memory.total = tn_fact_unknown(err.message);
        to->memory.available = tn_fact_unknown(err.message);
        to->memory.in_use = tn_fact_unknown(err.message);
    }
}

static tn_status gather_devices(findings *to, tn_error *err)
{
    size_t count = 0;
    tn_status status = tn_device_count(&count, err);
    if (status)
        return status;
    if (!(to->devices = make_room(count, sizeof *to->devices, err)))
        return TN_OUT_OF_MEMORY;
    for (; to->device_count < count; to->device_count++)
        fill_device(to, tn_device_at(to->device_count), &to->devices[to->device_count]);
    return TN_OK;
}

static tn_status gather(uint32_t parts, findings *to, tn_error *err)
{
    tn_status status = TN_OK;
    to->version = tn_version();
    to->level = tn_cpu_level();
    to->capability = tn_cpu_capability();
    (void)tn_cpu_features(to->features, sizeof to->features);
    if (parts & FIND_PLATFORMS)
        status = gather_platforms(to, err);
    if (!status && parts & FIND_PLATFORMS)
        status = gather_devices(to, err);
    if (!status && parts & FIND_MACHINE)
        status = gather_machine(to, err);
    if (!status && parts & (FIND_TOPOLOGY | FIND_TOPOLOGY_BASIC))
        status = gather_topology(parts, to, err);
    while (parts & FIND_SETTINGS && tn_settings_problem(to->problem_count))
        to->problem_count++;
    if (!status && parts & FIND_LIBRARIES)
        status = gather_libraries(to, err);
    if (!status && parts & FIND_MODULES) /* last, so that the rows include every probe */
        status = gather_modules(to, err);
    return status;
}

tn_status findings_gather(uint32_t parts, findings *out, tn_error *err)
{
    memset(out, 0, sizeof *out);
    tn_status status = gather(parts, out, err);
    if (status)
        findings_release(out);
    return status;
}

void findings_release(findings *found)
{
    free(found->platforms);
    free(found->evidence);
    free(found->devices);
    free(found->limits);
    free(found->nodes);
    free(found->classes);
    free(found->notes);
    free(found->objects);
    free(found->modules);
    free(found->places);
    free(found->libraries);
    kernels_release(&found->kernels);
    tn_platform_list_release(found->platform_list);
    tn_machine_release(found->machine);
    tn_topology_release(found->topology);
    tn_module_list_release(found->module_list);
    memset(found, 0, sizeof *found);
}

bool module_is_broken(const tn_module_report *module)
{
    return module->status != TN_OK && module->status != TN_UNAVAILABLE &&
           module->status != TN_ALREADY_EXISTS;
}

bool place_is_broken(const tn_module_place *place)
{
    return place->status == TN_IO || place->status == TN_NOT_PERMITTED;
}

bool platform_is_broken(const tn_platform_report *platform)
{
    return platform->verdict == TN_PLATFORM_BROKEN;
}

bool library_is_broken(const tn_library_state *library)
{
    return library->module[0] && library->available == TN_AVAILABLE_NO && library->path[0];
}

bool library_is_used(const tn_library_state *library)
{
    return library->built || library->available == TN_AVAILABLE_YES;
}

bool library_is_here(const tn_library_state *library)
{
    return library_is_used(library) || library->path[0];
}

const char *library_rule(const tn_library_state *library)
{
    return library->enabled ? "" : "a rule of the settings forbids it";
}

const char *library_file(const tn_library_state *library)
{
    return strstr(library->reason, library->path) ? "" : library->path;
}

int findings_count_broken(const findings *found)
{
    int broken = (int)found->problem_count + kernels_count_broken(&found->kernels);
    for (size_t i = 0; i < found->module_count; i++)
        broken += module_is_broken(&found->modules[i]);
    for (size_t i = 0; i < found->place_count; i++)
        broken += place_is_broken(&found->places[i]);
    for (size_t i = 0; i < found->platform_count; i++)
        broken += platform_is_broken(&found->platforms[i].report);
    for (size_t i = 0; i < found->library_count; i++)
        broken += library_is_broken(&found->libraries[i]);
    return broken;
}

size_t findings_count_ready_modules(const findings *found)
{
    size_t ready = 0;
    for (size_t i = 0; i < found->module_count; i++)
        ready += found->modules[i].stage == TN_STAGE_READY;
    return ready;
}

static bool is_hardware(const tn_platform_report *report)
{
    return strcmp(report->name, "described") != 0;
}

size_t findings_count_platforms(const findings *found)
{
    size_t count = 0;
    for (size_t i = 0; i < found->platform_count; i++)
        count += is_hardware(&found->platforms[i].report);
    return count;
}

size_t findings_count_ready_platforms(const findings *found)
{
    size_t ready = 0;
    for (size_t i = 0; i < found->platform_count; i++) {
        const tn_platform_report *report = &found->platforms[i].report;
        ready += is_hardware(report) && report->verdict == TN_PLATFORM_READY;
    }
    return ready;
}

const found_platform *findings_current(const findings *found)
{
    for (size_t i = 0; i < found->platform_count; i++) {
        if (found->platforms[i].report.current)
            return &found->platforms[i];
    }
    return NULL;
}

const tn_machine_limit *findings_least_limit(const findings *found)
{
    for (size_t i = 0; i < found->limit_count; i++) {
        if (found->limits[i].least)
            return &found->limits[i];
    }
    return NULL;
}

const char *dtype_word(tn_dtype dtype)
{
    const char *name = tn_dtype_name(dtype);
    return name ? name : "?";
}
