#include "rows.h"

#include "base/op_words.h"
#include "base/words.h"
#include "tenon/dtype.h"
#include "tenon/module/communicator.h"
#include "tenon/module/kernel.h"
#include "tenon/module/language.h"
#include "tenon/module/library.h"
#include "tenon/module/platform.h"

enum { MOST_ROWS = 4096, MOST_EVIDENCE = 32, LONGEST_KERNEL_NAME = 96, LONGEST_WORD = 64 };

/* Every list is an array of pointers to rows, and every row begins with its size and name. */
typedef struct any_row {
    size_t struct_size;
    const char *name;
} any_row;

static const any_row *row_at(const void *list, int32_t index)
{
    const any_row *row;
    memcpy(&row, (const char *)list + (size_t)index * sizeof row, sizeof row);
    return row;
}

const char *tni_kind_word(int32_t kind)
{
    static const char *const words[TN_PLATFORM_KIND_COUNT] = {
        [TN_PLATFORM_UNSPECIFIED] = "unspecified",
        [TN_PLATFORM_CPU] = "cpu",
        [TN_PLATFORM_CUDA] = "cuda",
        [TN_PLATFORM_ROCM] = "rocm",
        [TN_PLATFORM_TPU] = "tpu",
        [TN_PLATFORM_MPS] = "mps",
        [TN_PLATFORM_XPU] = "xpu",
        [TN_PLATFORM_NPU] = "npu",
        [TN_PLATFORM_OPENCL] = "opencl",
        [TN_PLATFORM_OOT] = "out-of-tree",
    };
    return kind >= 0 && kind < TN_PLATFORM_KIND_COUNT ? words[kind] : "unknown";
}

int32_t tni_rows_count(const void *list)
{
    int32_t count = 0;
    while (list && count < MOST_ROWS && row_at(list, count))
        count++;
    return count;
}

/* Current position of a check, for its messages. */
typedef struct check {
    const char *kind; /* "kernel" */
    int32_t index;
    const char *name; /* "" until known to be legal */
    tn_error *err;
} check;

TN_PRINTF(2, 3)
static tn_status reject_row(const check *at, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tn_fail(at->err, TN_INVALID_ARGUMENT, 0, "rows", "%s row %d%s%s%s: %s", at->kind,
                   (int)at->index + 1, at->name[0] ? " \"" : "", at->name, at->name[0] ? "\"" : "",
                   text);
}

static tn_status check_text(const check *at, const char *field, const char *text)
{
    if (!text)
        return reject_row(at, "%s is NULL", field);
    return text[0] ? TN_OK : reject_row(at, "%s is empty", field);
}

static tn_status check_name(const check *at, const char *field, const char *name)
{
    tn_status status = check_text(at, field, name);
    if (!status && !tni_name_is_legal(name, "", TNI_NAME_MAX))
        status =
            reject_row(at,
                       "%s: expected 1 to %d of a-z 0-9 - _, beginning with a letter or digit; "
                       "got \"%.60s\"",
                       field, TNI_NAME_MAX, name);
    return status;
}

static tn_status check_function(const check *at, const char *field, int present)
{
    return present ? TN_OK : reject_row(at, "%s is NULL", field);
}

/* A platform's own names: NULL or a short text. */
static tn_status check_word(const check *at, const char *field, const char *word)
{
    if (word && (!word[0] || memchr(word, '\0', LONGEST_WORD + 1) == NULL))
        return reject_row(at, "%s: expected 1 to %d bytes, or NULL", field, LONGEST_WORD);
    return TN_OK;
}

static tn_status check_words(const check *at, const tn_platform_row *row)
{
    const char *variable = row->visible_variable;
    tn_status status = check_word(at, "device_name", row->device_name);
    if (!status)
        status = check_word(at, "device_type", row->device_type);
    if (!status)
        status = check_word(at, "dispatch_key", row->dispatch_key);
    if (!status && variable && variable[0])
        status = check_word(at, "visible_variable", variable);
    if (!status && row->async_output_reason)
        status = check_text(at, "async_output_reason", row->async_output_reason);
    return status;
}

static tn_status check_list(const check *at, const char *field, const char *const *list)
{
    int32_t count = tni_rows_count(list);
    if (count == MOST_ROWS)
        return reject_row(at, "%s does not end in NULL within %d", field, MOST_ROWS);
    for (int32_t i = 0; i < count; i++) {
        if (!list[i][0])
            return reject_row(at, "%s[%d] is empty", field, (int)i);
    }
    return TN_OK;
}

static tn_status check_evidence(const check *at, const tn_evidence_row *const *list)
{
    int32_t count = tni_rows_count(list);
    if (count > MOST_EVIDENCE)
        return reject_row(at, "evidence: expected at most %d rows, ended by NULL", MOST_EVIDENCE);
    for (int32_t i = 0; i < count; i++) {
        const tn_evidence_row *row = list[i];
        if (row->struct_size < TN_UP_TO(tn_evidence_row, shows))
            return reject_row(at, "evidence[%d]: struct_size: expected at least %zu, got %zu",
                              (int)i, TN_UP_TO(tn_evidence_row, shows), row->struct_size);
        if (!row->what || !row->what[0])
            return reject_row(at, "evidence[%d]: what is %s", (int)i, row->what ? "empty" : "NULL");
        if (row->look < TN_LOOK_FILE || row->look >= TN_LOOK_COUNT)
            return reject_row(at, "evidence[%d]: look: expected %d to %d, got %d", (int)i,
                              TN_LOOK_FILE, TN_LOOK_COUNT - 1, (int)row->look);
        if (row->shows < TN_SHOWS_HARDWARE || row->shows >= TN_SHOWS_COUNT)
            return reject_row(at, "evidence[%d]: shows: expected %d to %d, got %d", (int)i,
                              TN_SHOWS_HARDWARE, TN_SHOWS_COUNT - 1, (int)row->shows);
    }
    return TN_OK;
}

/* Functions that are useful only together: all must be set, or none. */
static tn_status check_group(const check *at, const char *name, const char *const *fields,
                             const bool *present, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (present[i] != present[0])
            return reject_row(at, "%s need all their functions or none: %s is set, %s is NULL",
                              name, fields[present[0] ? 0 : i], fields[present[0] ? i : 0]);
    }
    return TN_OK;
}

#define GROUP(at, name, ...)                                           \
    check_group(at, name, (const char *const[]){__VA_ARGS__}, present, \
                sizeof present / sizeof present[0])

static tn_status check_streams(const check *at, const tn_platform_row *row)
{
    const bool present[] = {row->stream_create != NULL, row->stream_destroy != NULL,
                            row->stream_query != NULL,  row->stream_synchronize != NULL,
                            row->stream_wait != NULL,   row->device_synchronize != NULL};
    return GROUP(at, "streams", "stream_create", "stream_destroy", "stream_query",
                 "stream_synchronize", "stream_wait", "device_synchronize");
}

static tn_status check_events(const check *at, const tn_platform_row *row)
{
    const bool present[] = {row->event_create != NULL,      row->event_destroy != NULL,
                            row->event_record != NULL,      row->event_query != NULL,
                            row->event_synchronize != NULL, row->event_elapsed != NULL};
    tn_status status = GROUP(at, "events", "event_create", "event_destroy", "event_record",
                             "event_query", "event_synchronize", "event_elapsed");
    if (!status && !row->event_create != !row->stream_create)
        status = reject_row(at, "streams and events must be set together: %s is NULL",
                            row->event_create ? "stream_create" : "event_create");
    return status;
}

static tn_status check_graphs(const check *at, const tn_platform_row *row)
{
    const bool present[] = {row->graph_begin != NULL, row->graph_end != NULL,
                            row->graph_run != NULL, row->graph_destroy != NULL};
    tn_status status =
        GROUP(at, "graphs", "graph_begin", "graph_end", "graph_run", "graph_destroy");
    if (!status && row->graph_begin && !row->stream_create)
        status = reject_row(at, "graph_begin needs streams: stream_create is NULL");
    return status;
}

static tn_status check_captures(const check *at, const tn_platform_row *row)
{
    const bool present[] = {row->stream_is_captured != NULL, row->capture_alloc != NULL,
                            row->capture_free != NULL};
    tn_status status = GROUP(at, "captures", "stream_is_captured", "capture_alloc", "capture_free");
    if (!status && row->stream_is_captured && !row->stream_create)
        status = reject_row(at, "stream_is_captured needs streams: stream_create is NULL");
    return status;
}

/* Rows built before these functions existed are shorter. */
static tn_status check_order(const check *at, const tn_platform_row *row)
{
    const bool allocates = TN_HAS(row, tn_platform_row, memory_alloc_on) && row->memory_alloc_on;
    const bool frees = TN_HAS(row, tn_platform_row, memory_free_on) && row->memory_free_on;
    if (allocates != frees)
        return reject_row(at, "memory_alloc_on and memory_free_on must be set together: %s is NULL",
                          allocates ? "memory_free_on" : "memory_alloc_on");
    if (allocates && !row->stream_create)
        return reject_row(at, "memory_alloc_on needs streams: stream_create is NULL");
    return TN_OK;
}

static tn_status check_pairs(const check *at, const tn_platform_row *row)
{
    const struct {
        const char *names[2];
        bool first, second;
    } pairs[] = {
        {{"event_export", "event_import"}, row->event_export != NULL, row->event_import != NULL},
        {{"host_alloc", "host_free"}, row->host_alloc != NULL, row->host_free != NULL},
        {{"device_enter", "device_leave"}, row->device_enter != NULL, row->device_leave != NULL},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].first != pairs[i].second)
            return reject_row(at, "%s and %s must be set together: %s is NULL", pairs[i].names[0],
                              pairs[i].names[1], pairs[i].names[pairs[i].first]);
    }
    if (row->event_export && !row->event_create)
        return reject_row(at, "event_export needs events: event_create is NULL");
    if (row->device_enter && !row->device_activate)
        return reject_row(at, "device_enter needs device_activate, which is NULL");
    return TN_OK;
}

static tn_status check_groups(const check *at, const tn_platform_row *row)
{
    tn_status status = check_streams(at, row);
    if (!status)
        status = check_events(at, row);
    if (!status)
        status = check_graphs(at, row);
    if (!status)
        status = check_captures(at, row);
    if (!status)
        status = check_order(at, row);
    return status ? status : check_pairs(at, row);
}

/* A name that equals a kind's name is reserved for that kind: programs use it to request that
 * platform. */
static tn_status check_kind(const check *at, const tn_platform_row *row)
{
    for (int32_t kind = TN_PLATFORM_CPU; kind < TN_PLATFORM_OOT; kind++) {
        if (kind != row->kind && strcmp(row->name, tni_kind_word(kind)) == 0)
            return reject_row(at,
                              "kind: expected %d (%s) for this name, got %d (%s); change the "
                              "kind or the name of the row",
                              (int)kind, tni_kind_word(kind), (int)row->kind,
                              tni_kind_word(row->kind));
    }
    return TN_OK;
}

static tn_status check_platform(check *at, const void *any)
{
    const tn_platform_row *row = any;
    tn_status status = TN_OK;
    if (strcmp(row->name, "best") == 0)
        return reject_row(at, "name cannot be \"best\", which selects a device");
    if (row->kind <= TN_PLATFORM_UNSPECIFIED || row->kind >= TN_PLATFORM_KIND_COUNT)
        return reject_row(at, "kind: expected %d to %d, got %d", TN_PLATFORM_CPU,
                          TN_PLATFORM_KIND_COUNT - 1, (int)row->kind);
    if (row->flags & ~TN_PLATFORM_FLAGS)
        return reject_row(at, "flags has unknown bits %#x",
                          (unsigned)(row->flags & ~TN_PLATFORM_FLAGS));
    (void)((status = check_kind(at, row)) || (status = check_words(at, row)) ||
           (status = check_evidence(at, row->evidence)) ||
           (status = check_list(at, "quantizations", row->quantizations)) ||
           (status = check_list(at, "model_archs", row->model_archs)));
    if (status)
        return status;
    (void)((status = check_function(at, "probe", row->probe != NULL)) ||
           (status = check_function(at, "memory_alloc", row->memory_alloc != NULL)) ||
           (status = check_function(at, "memory_free", row->memory_free != NULL)) ||
           (status = check_function(at, "copy", row->copy != NULL)) ||
           (status = check_groups(at, row)));
    return status;
}

/* A library that is opened by name must have a remedy for when it is missing. */
static tn_status check_library(check *at, const void *any)
{
    const tn_library_row *row = any;
    tn_status status = check_name(at, "platform", row->platform);
    if (!status && row->files)
        status = check_text(at, "files", row->files);
    if (!status && (row->files || row->remedy))
        status = check_text(at, "remedy", row->remedy);
    if (!status && row->other)
        status = check_name(at, "other", row->other);
    if (!status && row->other && strcmp(row->other, row->name) == 0)
        status = reject_row(at, "other is the same as name");
    if (!status)
        status = check_word(at, "verbose_setting", row->verbose_setting);
    if (!status && !row->verbose != !row->verbose_setting)
        status = reject_row(at, "verbose and verbose_setting must be set together: %s is NULL",
                            row->verbose ? "verbose_setting" : "verbose");
    return status;
}

static bool is_rate(double figure)
{
    return figure > 0 && figure <= 1e18; /* false for a NaN */
}

static tn_status check_dtypes(check *at, const tn_dtype *dtypes)
{
    if (!dtypes || !dtypes[0])
        return reject_row(at, "dtypes: expected at least one type");
    for (size_t i = 0; dtypes[i]; i++) {
        if (!tn_dtype_name(dtypes[i]))
            return reject_row(at, "dtypes[%zu]: expected a TN_ type, got %#x", i,
                              (unsigned)dtypes[i]);
    }
    return TN_OK;
}

static bool is_alignment(int64_t bytes)
{
    return bytes >= 0 && bytes <= TN_OP_ALIGNMENT_MAX && (bytes & (bytes - 1)) == 0;
}

static tn_status check_kernel(check *at, const void *any)
{
    const tn_kernel_row *row = any;
    tn_status status = check_name(at, "platform", row->platform);
    if (status)
        return status;
    if (row->op <= TN_OP_NONE || row->op >= TN_OP_KIND_MAX)
        return reject_row(at, "op: expected 1 to %d, got %d", TN_OP_KIND_MAX - 1, (int)row->op);
    if (row->version == 0)
        return reject_row(at, "version: expected 1 or more, got 0");
    if (row->numerics & ~TN_NUM_KNOWN)
        return reject_row(at, "numerics has unknown bits %#llx",
                          (unsigned long long)(row->numerics & ~TN_NUM_KNOWN));
    if (row->cpu_needs >> TN_CPU_FEATURE_COUNT)
        return reject_row(at, "cpu_needs has unknown bits %#llx",
                          (unsigned long long)row->cpu_needs >> TN_CPU_FEATURE_COUNT
                                                                    << TN_CPU_FEATURE_COUNT);
    if (TN_HAS(row, tn_kernel_row, alignment) && !is_alignment(row->alignment))
        return reject_row(at, "alignment: expected 0 or a power of two up to %d, got %lld",
                          TN_OP_ALIGNMENT_MAX, (long long)row->alignment);
    if (TN_HAS(row, tn_kernel_row, traits) && row->traits & ~TN_ROW_KNOWN)
        return reject_row(at, "traits has unknown bits %#llx",
                          (unsigned long long)(row->traits & ~TN_ROW_KNOWN));
    if (!row->plan != !row->plan_release)
        return reject_row(at, "plan and plan_release must be set together: %s is NULL",
                          row->plan ? "plan_release" : "plan");
    if (!row->pack != !row->pack_release)
        return reject_row(at, "pack and pack_release must be set together: %s is NULL",
                          row->pack ? "pack_release" : "pack");
    if (!is_rate(row->flops_per_us) || !is_rate(row->bytes_per_us))
        return reject_row(at, "%s: expected a figure above 0, got %g",
                          is_rate(row->flops_per_us) ? "bytes_per_us" : "flops_per_us",
                          is_rate(row->flops_per_us) ? row->bytes_per_us : row->flops_per_us);
    if (!(row->overhead_us >= 0 && row->overhead_us <= 1e9))
        return reject_row(at, "overhead_us: expected 0 or more, got %g", row->overhead_us);
    (void)((status = check_dtypes(at, row->dtypes)) ||
           (status = check_function(at, "run", row->run != NULL)) ||
           (status = row->library ? check_name(at, "library", row->library) : TN_OK) ||
           (status = check_word(at, "backend", row->backend)));
    return status;
}

static tn_status check_language(check *at, const void *any)
{
    const tn_language_row *row = any;
    tn_status status = check_name(at, "platform", row->platform);
    return status ? status : check_function(at, "version", row->version != NULL);
}

static tn_status check_communicator(check *at, const void *any)
{
    const tn_communicator_row *row = any;
    tn_status status = check_name(at, "platform", row->platform);
    return status ? status : check_function(at, "version", row->version != NULL);
}

/* Requirements for every row of one kind, checked before its own check. */
typedef struct row_kind {
    const char *name;
    size_t least;      /* bytes up to the last required field */
    const char *extra; /* characters allowed in its names besides the usual ones */
    size_t longest;
    int32_t most; /* maximum number of rows */
    tn_status (*check)(check *at, const void *row);
} row_kind;

// clang-format off
static const row_kind
    platforms = {"platform", TN_UP_TO(tn_platform_row, device_leave), "", TNI_NAME_MAX, TNI_PLATFORMS_MAX,
                 check_platform},
    libraries = {"library", TN_UP_TO(tn_library_row, verbose), "", TNI_NAME_MAX, MOST_ROWS,
                 check_library},
    kernels = {"kernel", TN_UP_TO(tn_kernel_row, run), ".", LONGEST_KERNEL_NAME, MOST_ROWS,
               check_kernel},
    languages = {"language", TN_UP_TO(tn_language_row, version), "", TNI_NAME_MAX, MOST_ROWS,
                 check_language},
    communicators = {"communicator", TN_UP_TO(tn_communicator_row, version), "", TNI_NAME_MAX,
                     MOST_ROWS, check_communicator};
// clang-format on

static tn_status check_count(const row_kind *kind, int32_t count, tn_error *err)
{
    if (count == MOST_ROWS)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "rows",
                       "the list of %s rows does not end in NULL within %d", kind->name, MOST_ROWS);
    if (count > kind->most)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "rows",
                       "the list of %s rows: expected at most %d, got %d", kind->name,
                       (int)kind->most, (int)count);
    return TN_OK;
}

static tn_status check_rows(const row_kind *kind, const void *list, tn_error *err)
{
    int32_t count = tni_rows_count(list);
    if (check_count(kind, count, err))
        return TN_INVALID_ARGUMENT;
    for (int32_t i = 0; i < count; i++) {
        const any_row *row = row_at(list, i);
        check at = {.kind = kind->name, .index = i, .name = "", .err = err};
        if (row->struct_size < kind->least)
            return reject_row(&at, "struct_size: expected at least %zu, got %zu", kind->least,
                              row->struct_size);
        if (!row->name || !tni_name_is_legal(row->name, kind->extra, kind->longest))
            return reject_row(
                &at,
                "name: expected 1 to %zu of a-z 0-9 - _%s%s, beginning with a letter or digit; got "
                "\"%.60s\"",
                kind->longest, kind->extra[0] ? " " : "", kind->extra,
                row->name ? row->name : "(NULL)");
        at.name = row->name;
        for (int32_t j = 0; j < i; j++) {
            if (strcmp(row_at(list, j)->name, row->name) == 0)
                return reject_row(&at, "duplicate name, also in row %d", (int)j + 1);
        }
        tn_status status = kind->check(&at, row);
        if (status)
            return status;
    }
    return TN_OK;
}

tn_status tni_rows_check(const tn_module *module, tn_error *err)
{
    tn_status status = check_rows(&platforms, module->platforms, err);
    if (!status)
        status = check_rows(&libraries, module->libraries, err);
    if (!status)
        status = check_rows(&kernels, module->kernels, err);
    if (!status)
        status = check_rows(&languages, module->languages, err);
    if (!status)
        status = check_rows(&communicators, module->communicators, err);
    return status;
}

bool tni_rows_unknown(const tn_kernel_row *const *rows, char out[TNI_ROWS_UNKNOWN_TEXT])
{
    const tn_kernel_row *first = NULL;
    int32_t others = 0;
    for (; rows && *rows; rows++) {
        if (tni_op_word((*rows)->op))
            continue;
        others += first != NULL;
        first = first ? first : *rows;
    }
    out[0] = '\0';
    if (first && others)
        snprintf(
            out, TNI_ROWS_UNKNOWN_TEXT,
            "kernel %s and %d more are ignored: this Tenon does not have their operators, such "
            "as number %d",
            first->name, (int)others, (int)first->op);
    else if (first)
        snprintf(out, TNI_ROWS_UNKNOWN_TEXT,
                 "kernel %s is ignored: this Tenon has no operator with the number %d", first->name,
                 (int)first->op);
    return first != NULL;
}
