/* Everything found out about this machine, as plain data: commands gather it once, then print it as
 * text, JSON or a page.
 * Thread-safety: as any struct; gathered by one thread. */
#ifndef TENON_CLI_FINDINGS_H
#define TENON_CLI_FINDINGS_H

#include "backends.h"
#include "kernels.h"

typedef struct found_platform {
    tn_platform_report report;
    const tn_platform_evidence *evidence; /* report.evidence_count of them */
    const char *device_name;
    const char *device_type;
    const char *dispatch_key;
    const char *visible_variable; /* "" if none exists */
} found_platform;

typedef struct found_device {
    const char *id;
    const char *platform;
    const char *described; /* file that describes it; NULL if it was detected */
    const char *name;      /* "" if unknown; also for the next two */
    const char *uuid;
    const char *bus;
    const char *architecture;
    char capability[24];    /* "9.0"; "" if none exists */
    const tn_dtype *dtypes; /* ends with 0 */
    const tn_device_properties *properties;
    tn_device_memory memory; /* values that could not be read are unknown and carry the reason */
    int32_t kind;            /* of its platform */
    bool plans_only;
    bool current; /* its platform is the current one */
} found_device;

/* Lists that were not requested are empty; `facts` is then NULL. */
typedef struct findings {
    const char *version;
    const char *level;      /* tn_cpu_level      */
    const char *capability; /* tn_cpu_capability */
    char features[512];     /* tn_cpu_features   */

    found_platform *platforms;
    size_t platform_count;
    tn_platform_evidence *evidence; /* of all platforms */
    tn_status choice_status;
    const char *choice;

    found_device *devices;
    size_t device_count;

    const tn_machine_facts *facts;
    tn_machine_limit *limits;
    size_t limit_count;
    tn_machine_node *nodes;
    size_t node_count;
    tn_machine_class *classes;
    size_t class_count;
    const char **notes;
    size_t note_count;

    tn_topology_object *objects;
    size_t object_count;
    const char *topology_source; /* or why there is no topology */

    tn_module_report *modules;
    size_t module_count;
    tn_module_place *places;
    size_t place_count;

    tn_library_state *libraries; /* current state: gathering opens no library */
    size_t library_count;

    size_t problem_count; /* invalid settings in environment and file: tn_settings_problem */

    found_kernels kernels;   /* gathered separately by kernels_gather */
    found_backends backends; /* gathered separately by backends_gather */

    /* Owners of the texts above. */
    tn_platform_list *platform_list;
    tn_machine *machine;
    tn_topology *topology;
    tn_module_list *module_list;
    tn_error topology_error;
} findings;

/* Which parts to gather. Platforms include their devices. */
enum {
    FIND_MODULES = 1,
    FIND_PLATFORMS = 2,
    FIND_MACHINE = 4,
    FIND_TOPOLOGY = 8,
    FIND_SETTINGS = 16,
    FIND_LIBRARIES = 32,
    FIND_TOPOLOGY_BASIC = 64 /* instead of FIND_TOPOLOGY: opens no library */
};

/* Fills `out`; on failure it is empty. Release it, with its kernels, in either case. */
tn_status findings_gather(uint32_t parts, findings *out, tn_error *err);
void findings_release(findings *found);

/* Absent hardware and a duplicate module are not faults; any other reason for stopping is. An
 * ignored setting that someone wrote down counts as broken too. */
bool module_is_broken(const tn_module_report *module);
/* A folder that does not exist is empty; one that exists but cannot be read is broken. */
bool place_is_broken(const tn_module_place *place);
bool platform_is_broken(const tn_platform_report *platform);
/* An absent or untried library is not a fault; one that a module offers and whose file exists but
 * did not open is broken. */
bool library_is_broken(const tn_library_state *library);
int findings_count_broken(const findings *found);

/* Something broken: "kernel", "cpu.matmul.plain for matmul:f32:...", the fault and the remedy, "" if
 * none is known. */
typedef struct broken_thing {
    const char *kind;
    const char *name;
    const char *why;
    const char *remedy;
} broken_thing;
/* Calls `visit` for each of them, findings_count_broken times; the texts are valid during the call. */
void findings_visit_broken(const findings *found,
                           void (*visit)(void *to, const broken_thing *thing), void *to);

/* library_is_used: built or available. library_is_here: that, or its file exists. */
bool library_is_used(const tn_library_state *library);
bool library_is_here(const tn_library_state *library);

/* What text and page add to the library's own report, "" if nothing: that the settings forbid it;
 * its file, unless the reason already names it. */
const char *library_rule(const tn_library_state *library);
const char *library_file(const tn_library_state *library);

size_t findings_count_ready_modules(const findings *found);
/* The platforms of hardware; those whose verdict is READY. The platform of described devices does
 * not count. */
size_t findings_count_platforms(const findings *found);
size_t findings_count_ready_platforms(const findings *found);

/* The verdicts in display order: working ones first, absent ones last. */
extern const tn_platform_verdict findings_verdict_order[TN_PLATFORM_VERDICT_COUNT];

/* The current platform, or NULL. */
const found_platform *findings_current(const findings *found);

/* The limit that determines the number of threads, or NULL. */
const tn_machine_limit *findings_least_limit(const findings *found);

/* "f32"; "?" for a type without a name. Static text. */
const char *dtype_word(tn_dtype dtype);

#endif
