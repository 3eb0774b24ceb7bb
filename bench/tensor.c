/* Cost of importing another library's tensor and returning it, compared with the producer's own
 * cost. */
#include "harness.h"

#include "tenon/tenon.h"

#include <stdio.h>
#include <stdlib.h>

static float numbers[24];
static int64_t shape[] = {2, 3, 4}, strides[] = {12, 4, 1};

static void end_versioned(tn_dlpack_versioned *self)
{
    self->manager = NULL;
}

static void end_legacy(tn_dlpack_managed *self)
{
    self->manager = NULL;
}

static const tn_dlpack_tensor tensor = {.data = numbers,
                                        .device_type = TN_DLPACK_CPU,
                                        .ndim = 3,
                                        .dtype = TN_F32,
                                        .shape = shape,
                                        .strides = strides};
static tn_dlpack_versioned versioned = {
    .major = 1, .minor = 1, .deleter = end_versioned, .tensor = {.ndim = 0}};
static tn_dlpack_managed legacy = {.deleter = end_legacy};

static void broken(const tn_error *err)
{
    fprintf(stderr, "bench: %s\n", err->message);
    exit(1);
}

static void import_versioned(void *user, int64_t times)
{
    tn_error err;
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        tn_tensor in;
        if (tn_dlpack_import(&versioned, &in, &err))
            broken(&err);
        tn_tensor_release(&in);
    }
}

static void import_legacy(void *user, int64_t times)
{
    tn_error err;
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        tn_tensor in;
        if (tn_dlpack_import_legacy(&legacy, &in, &err))
            broken(&err);
        tn_tensor_release(&in);
    }
}

/* The minimum that a consumer must do: read the fields and call the deleter. */
static void take_by_hand(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        tn_dlpack_versioned *volatile in = &versioned;
        volatile tn_dlpack_tensor copy = in->tensor;
        (void)copy;
        in->deleter(in);
    }
}

static void export_and_end(void *user, int64_t times)
{
    tn_error err;
    for (int64_t i = 0; i < times; i++) {
        tn_dlpack_versioned *given;
        if (tn_dlpack_export(user, -1, &given, &err))
            broken(&err);
        given->deleter(given);
    }
}

static void measure(const char *name, double aim, bench_fn *ours, void *user)
{
    const bench_figure figure = {
        .name = name,
        .kind = BENCH_ADDED,
        .aim = aim,
        .unit = "ns",
        .ours = {.name = "tenon", .run = ours, .user = user},
        .rival = {.name = "reading the fields and calling the deleter", .run = take_by_hand},
    };
    bench_run(&figure);
}

int main(void)
{
    tn_error err;
    tn_device *device;
    tn_tensor own;
    versioned.tensor = legacy.tensor = tensor;
    if (tn_device_get("cpu", &device, &err) ||
        tn_tensor_create(device, TN_F32, shape, 3, &own, &err))
        broken(&err);
    measure("a tensor of DLPack in, and its end", 200, import_versioned, NULL);
    measure("the same in the form without a version", 200, import_legacy, NULL);
    measure("a tensor out, and its end", 200, export_and_end, &own);
    tn_tensor_release(&own);
    return bench_end();
}
