/* What the loader's suites share: stub modules in folders of their own, registries that look there,
 * and the rows that come of it. */
#ifndef TENON_LOADER_SUPPORT_H
#define TENON_LOADER_SUPPORT_H

#include "scratch.h"

#include "base/alloc.h"
#include "registry/registry.h"
#include "tenon/status.h"

#include <fcntl.h>

struct path {
    char text[SCRATCH_PATH + 256];
};

static inline struct path path_in(const char *folder, const char *name)
{
    struct path result;
    snprintf(result.text, sizeof result.text, "%s/%s", folder, name);
    return result;
}

/* Where the module `name` lies, or would. */
static inline struct path module_in(const char *folder, const char *name)
{
    struct path result;
    snprintf(result.text, sizeof result.text, "%s/tenon-%s.so", folder, name);
    return result;
}

/* A new file, which no one else may write to. */
static inline void put_bytes(struct path to, const void *data, size_t size)
{
    int file = open(to.text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    assert_int_equal(write(file, data, size), size);
    assert_int_equal(close(file), 0);
    assert_int_equal(chmod(to.text, 0644), 0);
}

static inline void put_copy(struct path to, const char *from)
{
    char *data = NULL;
    size_t size = 0;
    assert_int_equal(tni_file_read(from, 64 << 20, &data, &size, NULL), TN_OK);
    put_bytes(to, data, size);
    tni_release(data);
}

/* A copy of a stub as the module `name`. */
static inline void put_stub(const char *folder, const char *name, const char *stub)
{
    struct path from;
    snprintf(from.text, sizeof from.text, "%s/%s.so", STUBS, stub);
    put_copy(module_in(folder, name), from.text);
}

/* From now on the stubs write down what of them runs. */
static inline void trace_begin(const char *folder)
{
    assert_int_equal(setenv("STUB_TRACE", path_in(folder, "trace").text, 1), 0);
}

/* The letters since the last call: c for a constructor, e for an entry, p for a probe. */
static inline const char *trace_take(void)
{
    static char letters[256];
    char *text = NULL;
    size_t size = 0;
    letters[0] = '\0';
    if (tni_file_read(getenv("STUB_TRACE"), sizeof letters - 1, &text, &size, NULL) == TN_OK) {
        memcpy(letters, text, size + 1);
        assert_int_equal(unlink(getenv("STUB_TRACE")), 0);
    }
    tni_release(text);
    return letters;
}

/* Looks in `folder` alone, as in the library's own module folder. The time limit is one that only
 * what hangs exceeds. */
static inline tni_registry_params seek_in(const char *folder)
{
    return (tni_registry_params){
        .module_folder = folder, .probe = PROBE, .probe_limit_ns = INT64_C(60000000000)};
}

typedef struct loaded {
    tni_registry *registry;
    tn_module_list *list;
    int64_t blocks; /* in use before */
} loaded;

static inline loaded load(const tni_registry_params *params)
{
    tn_error err;
    loaded result = {.blocks = tn_allocator_blocks()};
    assert_int_equal(tni_registry_create(params, &result.registry, &err), TN_OK);
    assert_int_equal(tni_registry_list(result.registry, &result.list, &err), TN_OK);
    return result;
}

/* A new list in the old one's place. */
static inline void look_again(loaded *in)
{
    tn_module_list_release(in->list);
    assert_int_equal(tni_registry_list(in->registry, &in->list, NULL), TN_OK);
}

/* In the reverse order of loading: nothing is left behind. */
static inline void unload(loaded *in)
{
    tn_module_list_release(in->list);
    tni_registry_destroy(in->registry);
    assert_int_equal(tn_allocator_blocks(), in->blocks);
}

static inline const tn_module_report *row_at(const loaded *in, size_t index)
{
    const tn_module_report *row = tn_module_list_get(in->list, index);
    assert_non_null(row);
    return row;
}

/* True when the module `name` lies at `file`. */
static inline bool is_file_of(const char *file, const char *name)
{
    return file && strcmp(tni_path_name(file), tni_path_name(module_in("", name).text)) == 0;
}

/* The one row of the file of the module `name`. */
static inline const tn_module_report *row_of(const loaded *in, const char *name)
{
    const tn_module_report *found = NULL;
    for (size_t i = 0; i < tn_module_list_count(in->list); i++) {
        const tn_module_report *row = row_at(in, i);
        if (!is_file_of(row->path, name))
            continue;
        if (found)
            fail_msg("%s has two rows", name);
        found = row;
    }
    if (!found)
        fail_msg("%s has no row", name);
    return found;
}

/* How far the module in tenon-NAME.so is to come, why no further, and what would help; a remedy of
 * "" means none. */
typedef struct expected {
    const char *name;
    tn_module_stage stage;
    tn_status status;
    const char *message;
    const char *remedy;
} expected;

static inline void check_row(const loaded *in, const expected *e)
{
    const tn_module_report *row = row_of(in, e->name);
    /* Stubs share the name of their kernel, and each but the first is told so. */
    bool shares = strstr(row->message, "has a kernel of this name");
    bool right = row->stage == e->stage && row->status == e->status &&
                 strstr(row->message, e->message) && strstr(row->remedy, e->remedy) &&
                 (shares || !e->remedy[0] == !row->remedy[0]);
    if (!right)
        fail_msg("%s:\n  expected %s, %s: %s (%s)\n  found    %s, %s: %s (%s)", e->name,
                 tn_module_stage_name(e->stage), tn_status_name(e->status), e->message, e->remedy,
                 tn_module_stage_name(row->stage), tn_status_name(row->status), row->message,
                 row->remedy);
    assert_int_equal(row->struct_size, sizeof *row);
    assert_true(row->ms >= 0);
    assert_int_equal(row->status == TN_OK, row->stage == TN_STAGE_READY);
    assert_true(row->status == TN_OK || row->remedy[0]);
}

static inline void check_ready(const loaded *in, const char *name)
{
    expected ready = {name, TN_STAGE_READY, TN_OK, "offers", ""};
    check_row(in, &ready);
}

#endif
