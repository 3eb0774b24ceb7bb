#include "document.h"

#include "candidates.h"
#include "rules.h"

#include <math.h>

static void write_numbers(json *to, const tn_device_properties *properties)
{
    json_begin_object(to, "numbers");
#define WRITE_(field, word, unit, meaning)          \
    if (properties->known & TN_DEVICE_KNOWS(field)) \
        json_integer(to, word, properties->field);
    TN_DEVICE_NUMBER_LIST(WRITE_)
#undef WRITE_
    json_end_object(to);
}

static void write_known(json *to, const char *key, const tn_fact *fact)
{
    json_known_integer(to, key, fact->known != 0, fact->value);
}

static void write_device(json *to, const found_device *device)
{
    json_begin_object(to, NULL);
    json_text(to, "id", device->id);
    json_text(to, "platform", device->platform);
    json_text(to, "kind", tn_platform_kind_name(device->kind));
    json_known_text(to, "name", device->name);
    json_known_text(to, "uuid", device->uuid);
    json_known_text(to, "bus", device->bus);
    json_known_text(to, "architecture", device->architecture);
    json_known_text(to, "capability", device->capability);
    json_begin_object(to, "memory");
    write_known(to, "total", &device->memory.total);
    write_known(to, "available", &device->memory.available);
    write_known(to, "in_use", &device->memory.in_use);
    json_text(to, "origin", device->memory.total.origin);
    json_text(to, "available_origin", device->memory.available.origin);
    json_end_object(to);
    json_begin_list(to, "dtypes");
    for (const tn_dtype *dtype = device->dtypes; *dtype; dtype++)
        json_text(to, NULL, dtype_word(*dtype));
    json_end_list(to);
    write_numbers(to, device->properties);
    json_known_text(to, "described", device->described);
    json_bool(to, "plans_only", device->plans_only);
    json_bool(to, "current", device->current);
    json_end_object(to);
}

void write_devices(json *to, const findings *found)
{
    json_begin_list(to, "devices");
    for (size_t i = 0; i < found->device_count; i++)
        write_device(to, &found->devices[i]);
    json_end_list(to);
}

static void write_evidence(json *to, const tn_platform_evidence *evidence)
{
    json_begin_object(to, NULL);
    json_text(to, "what", evidence->what);
    json_text(to, "found", evidence->found);
    json_text(to, "shows", evidence->shows);
    if (evidence->holds < 0)
        json_null(to, "holds");
    else
        json_bool(to, "holds", evidence->holds != 0);
    json_end_object(to);
}

static void write_platform(json *to, const found_platform *platform)
{
    const tn_platform_report *report = &platform->report;
    json_begin_object(to, NULL);
    json_text(to, "name", report->name);
    json_text(to, "kind", tn_platform_kind_name(report->kind));
    json_text(to, "verdict", tn_platform_verdict_name(report->verdict));
    json_known_text(to, "module", report->module);
    json_text(to, "reason", report->reason);
    json_text(to, "remedy", report->remedy);
    json_integer(to, "devices", report->devices);
    json_bool(to, "current", report->current != 0);
    json_known_text(to, "device_type", platform->device_type);
    json_known_text(to, "dispatch_key", platform->dispatch_key);
    json_known_text(to, "visible_variable", platform->visible_variable);
    json_begin_list(to, "evidence");
    for (size_t i = 0; i < report->evidence_count; i++)
        write_evidence(to, &platform->evidence[i]);
    json_end_list(to);
    json_end_object(to);
}

void write_platforms(json *to, const findings *found)
{
    json_begin_list(to, "platforms");
    for (size_t i = 0; i < found->platform_count; i++)
        write_platform(to, &found->platforms[i]);
    json_end_list(to);
    json_begin_object(to, "choice");
    json_text(to, "status", tn_status_name(found->choice_status));
    json_text(to, "text", found->choice);
    json_end_object(to);
}

static void write_fact(json *to, const char *key, const tn_fact *fact)
{
    json_begin_object(to, key);
    write_known(to, "value", fact);
    json_text(to, "origin", fact->origin);
    json_end_object(to);
}

static void write_limits(json *to, const findings *found)
{
    json_begin_list(to, "limits");
    for (size_t i = 0; i < found->limit_count; i++) {
        const tn_machine_limit *limit = &found->limits[i];
        json_begin_object(to, NULL);
        json_text(to, "name", limit->name);
        json_text(to, "state", limit->state);
        json_known_integer(to, "value", limit->value > 0, limit->value);
        json_text(to, "origin", limit->origin);
        json_bool(to, "least", limit->least != 0);
        json_end_object(to);
    }
    json_end_list(to);
}

static void write_nodes(json *to, const findings *found)
{
    json_begin_list(to, "nodes");
    for (size_t i = 0; i < found->node_count; i++) {
        const tn_machine_node *node = &found->nodes[i];
        json_begin_object(to, NULL);
        json_integer(to, "number", node->number);
        json_text(to, "cpus", node->cpus);
        json_integer(to, "cpu_count", node->cpu_count);
        write_fact(to, "total", &node->total);
        write_fact(to, "free", &node->free);
        json_end_object(to);
    }
    json_end_list(to);
}

static void write_classes(json *to, const findings *found)
{
    json_begin_list(to, "classes");
    for (size_t i = 0; i < found->class_count; i++) {
        const tn_machine_class *class = &found->classes[i];
        json_begin_object(to, NULL);
        json_text(to, "name", class->name);
        json_text(to, "cpus", class->cpus);
        json_integer(to, "cpu_count", class->cpu_count);
        json_known_integer(to, "capacity", class->capacity > 0, class->capacity);
        json_known_integer(to, "max_khz", class->max_khz > 0, class->max_khz);
        json_end_object(to);
    }
    json_end_list(to);
}

/* Writes "sse2,avx2" as a list. */
static void write_features(json *to, const char *features)
{
    char word[64];
    json_begin_list(to, "features");
    while (*features) {
        size_t length = strcspn(features, ",");
        snprintf(word, sizeof word, "%.*s", (int)length, features);
        json_text(to, NULL, word);
        features += length;
        features += *features == ',';
    }
    json_end_list(to);
}

void write_machine(json *to, const findings *found)
{
    const tn_machine_facts *facts = found->facts;
    json_begin_object(to, "machine");
    json_known_text(to, "model", facts->model);
    json_known_text(to, "architecture", facts->architecture);
    json_known_text(to, "hypervisor", facts->hypervisor);
    json_text(to, "level", found->level);
    json_text(to, "capability", found->capability);
    write_features(to, found->features);
    json_known_text(to, "uuid", facts->uuid);
    json_known_text(to, "uuid_source", facts->uuid_source);
    json_integer(to, "threads", facts->threads);
    write_limits(to, found);
    write_fact(to, "packages", &facts->packages);
    write_fact(to, "cores", &facts->cores);
    write_fact(to, "hardware_threads", &facts->hardware_threads);
    write_fact(to, "node_count", &facts->nodes);
    write_fact(to, "max_khz", &facts->max_khz);
    write_fact(to, "l2_cache", &facts->l2_cache);
    write_fact(to, "l3_cache", &facts->l3_cache);
    json_begin_object(to, "memory");
    write_fact(to, "total", &facts->memory_total);
    write_fact(to, "available", &facts->memory_available);
    write_fact(to, "in_use", &facts->memory_in_use);
    json_end_object(to);
    write_nodes(to, found);
    write_classes(to, found);
    json_begin_list(to, "notes");
    for (size_t i = 0; i < found->note_count; i++)
        json_text(to, NULL, found->notes[i]);
    json_end_list(to);
    json_end_object(to);
}

void write_topology(json *to, const findings *found)
{
    json_begin_object(to, "topology");
    json_text(to, "source", found->topology_source);
    json_begin_list(to, "objects");
    for (size_t i = 0; i < found->object_count; i++) {
        const tn_topology_object *object = &found->objects[i];
        json_begin_object(to, NULL);
        json_text(to, "type", tn_topology_type_name(object->type));
        json_known_integer(to, "parent", object->parent >= 0, object->parent);
        json_known_integer(to, "number", object->number >= 0, object->number);
        json_known_integer(to, "level", object->level > 0, object->level);
        json_known_integer(to, "bytes", object->bytes > 0, object->bytes);
        if (object->type == TN_TOPOLOGY_THREAD)
            json_bool(to, "usable", object->usable != 0);
        else
            json_null(to, "usable");
        bool has_class = object->type == TN_TOPOLOGY_CORE && object->speed_class >= 0;
        json_known_integer(to, "speed_class", has_class, object->speed_class);
        json_end_object(to);
    }
    json_end_list(to);
    json_end_object(to);
}

static void write_module(json *to, const tn_module_report *report)
{
    char abi[32];
    snprintf(abi, sizeof abi, "%u.%u", (unsigned)report->abi_major, (unsigned)report->abi_minor);
    json_begin_object(to, NULL);
    json_text(to, "name", report->name);
    json_text(to, "version", report->version);
    json_text(to, "path", report->path);
    json_text(to, "origin", report->origin);
    json_text(to, "stage", tn_module_stage_name(report->stage));
    json_text(to, "status", tn_status_name(report->status));
    json_text(to, "message", report->message);
    json_text(to, "remedy", report->remedy);
    json_number(to, "ms", report->ms);
    json_text(to, "abi", abi);
    json_integer(to, "platforms", report->platforms);
    json_integer(to, "libraries", report->libraries);
    json_integer(to, "kernels", report->kernels);
    json_integer(to, "languages", report->languages);
    json_integer(to, "communicators", report->communicators);
    json_integer(to, "devices", report->devices);
    json_end_object(to);
}

void write_modules(json *to, const findings *found)
{
    json_begin_list(to, "modules");
    for (size_t i = 0; i < found->module_count; i++)
        write_module(to, &found->modules[i]);
    json_end_list(to);
    json_begin_list(to, "places");
    for (size_t i = 0; i < found->place_count; i++) {
        const tn_module_place *place = &found->places[i];
        json_begin_object(to, NULL);
        json_text(to, "path", place->path);
        json_text(to, "origin", place->origin);
        json_text(to, "status", tn_status_name(place->status));
        json_text(to, "message", place->message);
        json_integer(to, "modules", place->modules);
        json_end_object(to);
    }
    json_end_list(to);
}

static void write_library(json *to, const tn_library_state *state)
{
    json_begin_object(to, NULL);
    json_text(to, "name", state->name);
    json_known_text(to, "platform", state->platform);
    json_known_text(to, "what", state->what);
    json_known_text(to, "module", state->module);
    json_bool(to, "built", state->built != 0);
    json_text(to, "available", tn_available_name(state->available));
    json_known_integer(to, "version", state->version >= 0, state->version);
    json_known_text(to, "version_text", state->version_text);
    json_known_text(to, "path", state->path);
    json_bool(to, "enabled", state->enabled != 0);
    json_integer(to, "kernels", state->kernels);
    json_known_text(to, "verbose", state->verbose);
    json_text(to, "reason", state->reason);
    json_text(to, "remedy", state->remedy);
    json_end_object(to);
}

void write_libraries(json *to, const findings *found)
{
    json_begin_list(to, "libraries");
    for (size_t i = 0; i < found->library_count; i++)
        write_library(to, &found->libraries[i]);
    json_end_list(to);
}

static void write_trial(json *to, const found_decision *decision, const found_kernel *kernel)
{
    bool checked = kernel->checked == TRIAL_DONE, timed = kernel->timed == TRIAL_DONE;
    text_line fault = {0};
    phrase_kernel_fault(kernel, &fault);
    json_begin_object(to, NULL);
    json_text(to, "problem", decision->problem);
    json_text(to, "kernel", kernel->candidate.kernel);
    json_text(to, "verdict", tn_verdict_name(kernel->candidate.verdict));
    if (checked)
        json_bool(to, "ok", kernel->check.ok != 0);
    else
        json_null(to, "ok");
    json_number(to, "error", checked ? kernel->check.error : (double)NAN);
    json_number(to, "bound", checked ? kernel->check.bound : (double)NAN);
    json_number(to, "ms", timed ? kernel->bench.us / 1000 : (double)NAN);
    json_number(to, "spread", timed ? spread_of(&kernel->bench) : (double)NAN);
    json_number(to, "gflops", timed ? kernel->bench.gflops : (double)NAN);
    json_number(to, "gbps", timed ? kernel->bench.gbps : (double)NAN);
    json_known_integer(to, "runs", timed, kernel->bench.runs);
    json_text(to, "text", fault.text);
    json_bool(to, "broken", kernel_is_broken(kernel));
    json_end_object(to);
}

void write_kernels(json *to, const findings *found)
{
    json_begin_list(to, "decisions");
    for (size_t d = 0; d < found->kernels.count; d++) {
        const found_decision *decision = &found->kernels.decisions[d];
        json_begin_object(to, NULL);
        json_text(to, "problem", decision->problem);
        json_known_text(to, "chosen", decision->taken);
        json_text(to, "message", decision->message);
        json_end_object(to);
    }
    json_end_list(to);
    json_begin_list(to, "kernels");
    for (size_t d = 0; d < found->kernels.count; d++) {
        const found_decision *decision = &found->kernels.decisions[d];
        for (size_t k = 0; k < decision->count; k++)
            write_trial(to, decision, &decision->kernels[k]);
    }
    json_end_list(to);
}

void write_attention(json *to, const findings *found)
{
    json_begin_list(to, "attention");
    for (size_t i = 0; i < found->backends.count; i++) {
        const found_backend *row = &found->backends.rows[i];
        json_begin_object(to, NULL);
        json_text(to, "name", row->name);
        json_known_text(to, "kernel", row->kernel);
        json_known_text(to, "text", row->what);
        json_end_object(to);
    }
    json_end_list(to);
}

static void write_unknown(void *to, const char *text)
{
    json_text(to, NULL, text);
}

void write_problems(json *to)
{
    const char *problem;
    json_begin_list(to, "problems");
    for (size_t i = 0; (problem = tn_settings_problem(i)); i++)
        json_text(to, NULL, problem);
    rules_find_unknown(write_unknown, to);
    json_end_list(to);
}
