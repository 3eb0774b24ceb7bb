/* Copies of all sizes and between all pairs of places. */
#include "block.h"
#include "suite.h"

static const size_t odd_sizes[] = {1,    2,    3,    5,     8,     13,     31,     32,   33,
                                   63,   64,   65,   127,   255,   256,    257,    1000, 4095,
                                   4096, 4097, 9973, 65535, 65537, 262147, 1048583};
enum { ODD_SIZES = sizeof odd_sizes / sizeof odd_sizes[0] };

/* Copies parts of one block into another, at unaligned offsets, and checks all of both. NULL is the
 * host. */
static bool copy_between(trial *t, tn_device *from_device, tn_device *to_device)
{
    for (size_t i = 0; i < ODD_SIZES; i++) {
        block from, to;
        size_t bytes = odd_sizes[i], before = trial_below(t, 67), after = trial_below(t, 67);
        if (!block_make(t, from_device, before + bytes + 7, &from) ||
            !block_make(t, to_device, after + bytes + 7, &to) ||
            !block_copy(t, &from, before, &to, after, bytes, NULL) ||
            !DO(t, tn_device_synchronize(to_device ? to_device : t->device, &t->err)) ||
            (from_device && !DO(t, tn_device_synchronize(from_device, &t->err))) ||
            !block_check(t, &to, "destination of the copy") ||
            !block_check(t, &from, "source of the copy"))
            return false;
    }
    return true;
}

static bool host_device(trial *t)
{
    return copy_between(t, NULL, t->device);
}

static bool device_host(trial *t)
{
    return copy_between(t, t->device, NULL);
}

static bool device_device(trial *t)
{
    return copy_between(t, t->device, t->device);
}

static bool host_host(trial *t)
{
    return copy_between(t, NULL, NULL);
}

static bool two_devices(trial *t)
{
    return copy_between(t, t->device, t->second) && copy_between(t, t->second, t->device);
}

static bool other_platform(trial *t)
{
    tn_device *cpu = NULL;
    if (tn_platform_is_cpu(t->platform))
        return trial_unavailable(t, "needs a platform besides the cpu");
    return DO(t, tn_device_get("cpu:0", &cpu, &t->err)) && copy_between(t, cpu, t->device) &&
           copy_between(t, t->device, cpu);
}

/* Sizes up to a few cache lines, between random alignments. */
static bool odd_alignments(trial *t)
{
    enum { REACH = 200 };
    block from, to;
    if (!block_make(t, t->device, 2 * REACH, &from) || !block_make(t, t->device, 2 * REACH, &to))
        return false;
    for (size_t bytes = 1; bytes < REACH; bytes += 1 + bytes / 16) {
        size_t a = trial_below(t, REACH), b = trial_below(t, REACH);
        if (!block_copy(t, &from, a, &to, b, bytes, NULL))
            return false;
    }
    return block_check(t, &to, "destination of partial copies") &&
           block_check(t, &from, "source of partial copies");
}

/* Larger than one chunk of a copy through the host. */
static bool large(trial *t)
{
    enum { BYTES = (9 << 20) + 13 };
    block from, to, back;
    return block_make(t, NULL, BYTES, &from) && block_make(t, t->device, BYTES, &to) &&
           block_make(t, NULL, BYTES, &back) && block_copy(t, &from, 0, &to, 0, BYTES, NULL) &&
           block_copy(t, &to, 0, &back, 0, BYTES, NULL) &&
           DO(t, tn_device_synchronize(t->device, &t->err)) &&
           block_check(t, &back, "data read back");
}

typedef struct rows {
    size_t bytes, count, to_pitch, from_pitch;
} rows;

static bool copy_rows(trial *t, const block *from, const block *to, rows r)
{
    for (size_t i = 0; i < r.count; i++)
        memcpy(to->mirror + i * r.to_pitch, from->mirror + i * r.from_pitch, r.bytes);
    return DO(t, tn_memory_copy(TN_ARGS(memory_copy, .to_device = to->device, .to = to->at,
                                        .from_device = from->device, .from = from->at,
                                        .bytes = r.bytes, .rows = r.count, .to_pitch = r.to_pitch,
                                        .from_pitch = r.from_pitch),
                                &t->err)) &&
           DO(t, tn_device_synchronize(t->device, &t->err)) &&
           block_check(t, to, "destination of the copied rows") &&
           block_check(t, from, "source of the copied rows");
}

static bool two_dimensions(trial *t)
{
    static const rows shapes[] = {
        {1, 1, 1, 1},           {3, 5, 7, 3},    {64, 9, 64, 100},        {100, 13, 129, 101},
        {1000, 31, 1000, 1000}, {5, 1000, 9, 6}, {70001, 7, 70003, 70011}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const rows r = shapes[i], back = {r.bytes, r.count, r.from_pitch, r.to_pitch};
        block here, there, inside;
        if (!block_make(t, NULL, r.count * r.from_pitch, &here) ||
            !block_make(t, t->device, r.count * r.to_pitch, &there) ||
            !block_make(t, t->device, r.count * r.from_pitch, &inside) ||
            !copy_rows(t, &here, &there, r) || !copy_rows(t, &there, &inside, back) ||
            !copy_rows(t, &there, &here, back))
            return false;
    }
    return true;
}

static bool two_dimensions_refused(trial *t)
{
    block from, to;
    return block_make(t, NULL, 1000, &from) && block_make(t, t->device, 1000, &to) &&
           REFUSES(t, TN_INVALID_ARGUMENT,
                   tn_memory_copy(TN_ARGS(memory_copy, .to_device = t->device, .to = to.at,
                                          .from = from.at, .bytes = 100, .rows = 3, .to_pitch = 99),
                                  &t->err)) &&
           REFUSES(
               t, TN_INVALID_ARGUMENT,
               tn_memory_copy(TN_ARGS(memory_copy, .to_device = t->device, .to = to.at,
                                      .from = from.at, .bytes = 100, .rows = 3, .from_pitch = 99),
                              &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT,
                   tn_memory_copy(TN_ARGS(memory_copy, .to_device = t->device, .to = to.at,
                                          .from = from.at, .bytes = 100, .rows = UINT64_MAX / 2),
                                  &t->err)) &&
           block_check(t, &to, "destination of refused copies");
}

static bool overlap(trial *t)
{
    block b;
    return block_make(t, t->device, 1000, &b) &&
           REFUSES(t, TN_INVALID_ARGUMENT,
                   tn_memory_copy(TN_ARGS(memory_copy, .to_device = t->device, .to = b.at + 10,
                                          .from_device = t->device, .from = b.at, .bytes = 100),
                                  &t->err)) &&
           REFUSES(
               t, TN_INVALID_ARGUMENT,
               tn_memory_copy(TN_ARGS(memory_copy, .to_device = t->device, .to = b.at,
                                      .from_device = t->device, .from = b.at + 99, .bytes = 100),
                              &t->err)) &&
           block_copy(t, &b, 0, &b, 100, 100, NULL) && block_check(t, &b, "adjacent data");
}

static bool zero(trial *t)
{
    block from, to;
    return block_make(t, NULL, 100, &from) && block_make(t, t->device, 100, &to) &&
           block_copy(t, &from, 0, &to, 0, 0, NULL) && block_copy(t, &to, 0, &from, 0, 0, NULL) &&
           DO(t, tn_memory_copy(TN_ARGS(memory_copy, .to_device = t->device), &t->err)) &&
           block_check(t, &to, "data around an empty copy") &&
           block_check(t, &from, "data around an empty copy");
}

static bool null(trial *t)
{
    block b;
    return block_make(t, t->device, 100, &b) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_memory_copy(NULL, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT,
                   tn_memory_copy(
                       TN_ARGS(memory_copy, .to_device = t->device, .to = b.at, .bytes = 100),
                       &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT,
                   tn_memory_copy(
                       TN_ARGS(memory_copy, .from_device = t->device, .from = b.at, .bytes = 100),
                       &t->err));
}

static bool stream_of_another(trial *t)
{
    block from, to;
    tn_stream *stream = NULL;
    return trial_stream(t, t->second, &stream) && block_make(t, NULL, 100, &from) &&
           block_make(t, t->device, 100, &to) &&
           REFUSES(t, TN_INVALID_ARGUMENT,
                   tn_memory_copy(TN_ARGS(memory_copy, .to_device = t->device, .to = to.at,
                                          .from = from.at, .bytes = 100, .stream = stream),
                                  &t->err)) &&
           block_check(t, &to, "destination of a refused copy");
}

const suite_case cases_copy[] = {
    {"copy.host-device", "copies from the host to the device change exactly the bytes copied",
     host_device, 0},
    {"copy.device-host", "copies from the device to the host are exact", device_host, 0},
    {"copy.device-device", "copies within the device are exact", device_device, 0},
    {"copy.host-host", "copies within the host are exact", host_host, 0},
    {"copy.two-devices", "copies from one device to another are exact", two_devices,
     NEED_TWO_DEVICES},
    {"copy.other-platform", "copies between platforms are exact", other_platform, 0},
    {"copy.odd-sizes", "copies are exact at every alignment", odd_alignments, 0},
    {"copy.large", "large copies are exact", large, 0},
    {"copy.2d", "rows are copied, and the bytes between them do not change", two_dimensions, 0},
    {"copy.2d.refusals", "a pitch smaller than a row is an error", two_dimensions_refused, 0},
    {"copy.overlap", "overlapping source and destination are an error, adjacent ones are not",
     overlap, 0},
    {"copy.zero", "a copy of 0 bytes succeeds and does nothing", zero, 0},
    {"copy.null", "NULL is an error", null, 0},
    {"copy.stream-of-another", "a stream of a third device is an error", stream_of_another,
     NEED_TWO_DEVICES},
    {0},
};
