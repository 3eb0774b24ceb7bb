/* DLPack: tensors that come in and go out, in both forms, with the deleter called once whatever
 * happens. */
#include "async_platform.h"

#include "device/tensor/tensor.h"
#include "fault/fault.h"

static tn_device *cpu(void)
{
    tn_device *device = NULL;
    tn_error err;
    if (tn_device_get("cpu", &device, &err))
        fail_msg("%s", err.message);
    return device;
}

/* A producer in C: it counts how often it is told of the end. */
typedef struct producer {
    tn_dlpack_versioned versioned;
    tn_dlpack_managed legacy;
    int64_t shape[2];
    int64_t strides[2];
    float data[6];
    int ends;
} producer;

static void end_versioned(tn_dlpack_versioned *self)
{
    ((producer *)self->manager)->ends++;
}

static void end_legacy(tn_dlpack_managed *self)
{
    ((producer *)self->manager)->ends++;
}

static void produce(producer *p)
{
    *p = (producer){.shape = {2, 3}, .strides = {3, 1}, .data = {0, 1, 2, 3, 4, 5}};
    p->versioned = (tn_dlpack_versioned){.major = 1,
                                         .minor = 7,
                                         .manager = p,
                                         .deleter = end_versioned,
                                         .tensor = {.data = p->data,
                                                    .device_type = TN_DLPACK_CPU,
                                                    .ndim = 2,
                                                    .dtype = TN_F32,
                                                    .shape = p->shape,
                                                    .strides = p->strides}};
    p->legacy =
        (tn_dlpack_managed){.tensor = p->versioned.tensor, .manager = p, .deleter = end_legacy};
}

/* In either form. */
static tn_status import(producer *p, bool versioned, tn_tensor *out, tn_error *err)
{
    p->legacy.tensor = p->versioned.tensor;
    return versioned ? tn_dlpack_import(&p->versioned, out, err)
                     : tn_dlpack_import_legacy(&p->legacy, out, err);
}

static void imported_tensor_ends_once(void **state)
{
    (void)state;
    for (int versioned = 0; versioned < 2; versioned++) {
        producer p;
        tn_tensor tensor = {0}, view = {0};
        tn_device *device = NULL;
        tn_error err;
        produce(&p);
        assert_int_equal(import(&p, versioned, &tensor, &err), TN_OK);
        assert_ptr_equal(tensor.data, p.data);
        assert_ptr_equal(tensor.shape, p.shape); /* the producer's, which stays */
        assert_ptr_equal(tensor.strides, p.strides);
        assert_true(tensor.ndim == 2 && tensor.dtype == TN_F32 && tensor.flags == 0);
        assert_int_equal(tn_tensor_is_dense(&tensor), 1);
        assert_int_equal(tn_tensor_device(&tensor, &device, &err), TN_OK);
        assert_ptr_equal(device, cpu());
        assert_int_equal(tn_tensor_view(&tensor, &view, &err), TN_OK);
        tn_tensor_release(&tensor);
        tn_tensor_release(&tensor);
        assert_int_equal(p.ends, 0);
        tn_tensor_release(&view);
        assert_int_equal(p.ends, 1);
    }
}

static void imported_flags_and_offsets_count(void **state)
{
    producer p;
    tn_tensor tensor = {0}, to = {0};
    float found[2];
    int64_t two[] = {2};
    tn_error err;
    (void)state;
    produce(&p);
    p.versioned.flags = ~UINT64_C(0);
    p.versioned.tensor.ndim = 1;
    p.versioned.tensor.shape = two;
    p.versioned.tensor.strides = NULL;
    p.versioned.tensor.byte_offset = 3 * sizeof(float);
    assert_int_equal(tn_dlpack_import(&p.versioned, &tensor, &err), TN_OK);
    assert_int_equal(tensor.flags, TN_TENSOR_READ_ONLY | TN_TENSOR_COPIED);
    assert_int_equal(tn_tensor_wrap(cpu(), found, TN_F32, two, NULL, 1, NULL, NULL, &to, &err),
                     TN_OK);
    assert_int_equal(tn_copy(NULL, &tensor, &to, &err), TN_OK);
    assert_true(found[0] == 3 && found[1] == 4);
    assert_int_equal(tn_copy(NULL, &to, &tensor, &err), TN_REFUSED);
    tn_tensor_release(&tensor);
    tn_tensor_release(&to);
    assert_int_equal(p.ends, 1);
}

/* What is unusual and in range: complex numbers aligned as their parts, a tag in the highest byte, strides that go
 * down, an offset of a tensor without elements. */
static void unusual_places_come_in(void **state)
{
    producer p;
    tn_tensor tensor = {0};
    tn_error err;
    (void)state;
    produce(&p);
    p.versioned.tensor.dtype = TN_C64;
    p.versioned.tensor.byte_offset = sizeof(float);
    p.shape[0] = 1;
    p.shape[1] = 2;
    assert_int_equal(import(&p, true, &tensor, &err), TN_OK);
    tn_tensor_release(&tensor);
    produce(&p);
    p.strides[0] = -3;
    p.versioned.tensor.byte_offset = 3 * sizeof(float);
    assert_int_equal(import(&p, true, &tensor, &err), TN_OK);
    tn_tensor_release(&tensor);
    produce(&p);
    p.shape[0] = 0;
    p.versioned.tensor.byte_offset = 1;
    assert_int_equal(import(&p, true, &tensor, &err), TN_OK);
    tn_tensor_release(&tensor);
#if UINTPTR_MAX > UINT32_MAX
    produce(&p); /* nothing is read through it; bits that both x86-64 and Arm permit in a tag */
    p.versioned.tensor.data = (void *)((uintptr_t)p.data | (uintptr_t)UINT64_C(0x5a) << 56);
    assert_int_equal(import(&p, true, &tensor, &err), TN_OK);
    tn_tensor_release(&tensor);
#endif
}

static void producer_may_have_nothing_to_end(void **state)
{
    (void)state;
    for (int versioned = 0; versioned < 2; versioned++) {
        producer p;
        tn_tensor tensor = {0};
        tn_error err;
        produce(&p);
        p.versioned.deleter = NULL;
        p.legacy.deleter = NULL;
        assert_int_equal(import(&p, versioned, &tensor, &err), TN_OK);
        tn_tensor_release(&tensor);
        p.versioned.tensor.ndim = -1;
        assert_int_equal(import(&p, versioned, &tensor, &err), TN_INVALID_ARGUMENT);
        assert_int_equal(p.ends, 0);
    }
}

static void zero_sizes_come_in(void **state)
{
    producer p;
    tn_tensor tensor = {0};
    int64_t elements = -1;
    tn_error err;
    (void)state;
    produce(&p);
    p.shape[0] = 0;
    p.versioned.tensor.data = NULL;
    assert_int_equal(import(&p, true, &tensor, &err), TN_OK);
    assert_int_equal(tn_tensor_elements(&tensor, &elements, &err), TN_OK);
    assert_int_equal(elements, 0);
    tn_tensor_release(&tensor);
    produce(&p);
    p.versioned.tensor.ndim = 0;
    p.versioned.tensor.shape = NULL;
    p.versioned.tensor.strides = NULL;
    assert_int_equal(import(&p, true, &tensor, &err), TN_OK);
    assert_int_equal(tn_tensor_elements(&tensor, &elements, &err), TN_OK);
    assert_int_equal(elements, 1);
    tn_tensor_release(&tensor);
    assert_int_equal(p.ends, 1);
}

/* Each breaks one thing. */
static void no_shape(producer *p)
{
    p->versioned.tensor.shape = NULL;
}
static void no_data(producer *p)
{
    p->versioned.tensor.data = NULL;
}
static void few_dimensions(producer *p)
{
    p->versioned.tensor.ndim = -1;
}
static void many_dimensions(producer *p)
{
    p->versioned.tensor.ndim = 33;
}
static void negative_dimension(producer *p)
{
    p->shape[1] = -1;
}
static void too_large(producer *p)
{
    p->shape[0] = p->shape[1] = INT64_C(1) << 40;
}
static void wild_strides(producer *p)
{
    p->strides[0] = INT64_MIN;
}
static void wild_offset(producer *p)
{
    p->versioned.tensor.byte_offset = UINT64_MAX;
}
static void offset_of_63_bits(producer *p)
{
    p->versioned.tensor.byte_offset = UINT64_C(1) << 63;
}
static void offset_beyond_addresses(producer *p)
{
    p->versioned.tensor.byte_offset = UINT64_C(1) << 60;
}
static void extent_beyond_differences(producer *p) /* each part alone is in range */
{
    p->strides[0] = INT64_C(1) << 60;
    p->versioned.tensor.byte_offset = (uint64_t)INT64_MAX - (UINT64_C(1) << 61);
}
static void extent_beyond_addresses(producer *p)
{
    p->strides[0] = INT64_C(1) << 58;
}
static void extent_below_addresses(producer *p)
{
    p->strides[0] = -(int64_t)((uintptr_t)p->data / sizeof(float));
}
static void kernel_address(producer *p)
{
    p->versioned.tensor.data = (void *)(uintptr_t)UINT64_C(0xffff800000000000);
}

static void first_page(producer *p)
{
    p->versioned.tensor.data = (void *)(uintptr_t)64;
}
static void misaligned_data(producer *p)
{
    p->versioned.tensor.data = (char *)p->data + 1;
    p->shape[0] = 1;
}
static void misaligned_offset(producer *p)
{
    p->versioned.tensor.byte_offset = 2;
    p->shape[0] = 1;
}
static void misaligned_complex(producer *p)
{
    p->versioned.tensor.dtype = TN_C64;
    p->versioned.tensor.byte_offset = 6;
    p->shape[0] = p->shape[1] = 1;
}
static void four_lanes(producer *p)
{
    p->versioned.tensor.dtype = TN_DTYPE(TN_DTYPE_CODE_FLOAT, 32, 4);
}
static void no_lanes(producer *p)
{
    p->versioned.tensor.dtype = TN_DTYPE(TN_DTYPE_CODE_FLOAT, 32, 0);
}
static void four_bits(producer *p)
{
    p->versioned.tensor.dtype = TN_DTYPE(TN_DTYPE_CODE_INT, 4, 1);
}
static void handle(producer *p)
{
    p->versioned.tensor.dtype = TN_DTYPE(3, 64, 1);
}
static void absent_device(producer *p)
{
    p->versioned.tensor.device_type = TN_DLPACK_HEXAGON;
}
static void absent_number(producer *p)
{
    p->versioned.tensor.device_id = 9;
}

static void refused_tensor_ends_at_once(void **state)
{
    static const struct {
        void (*spoil)(producer *p);
        tn_status status;
        const char *words;
    } rows[] = {
        {no_shape, TN_INVALID_ARGUMENT, "managed: shape is NULL, and ndim is 2"},
        {no_data, TN_INVALID_ARGUMENT, "managed: data is NULL, and there are 6 elements"},
        {few_dimensions, TN_INVALID_ARGUMENT, "managed: ndim: expected 0 to 32, got -1"},
        {many_dimensions, TN_INVALID_ARGUMENT, "managed: ndim: expected 0 to 32, got 33"},
        {negative_dimension, TN_INVALID_ARGUMENT, "dimension 1: expected at least 0, got -1"},
        {too_large, TN_INVALID_ARGUMENT, "its size in bytes of f32 exceeds 63 bits"},
        {wild_strides, TN_INVALID_ARGUMENT, "its strides span more than 63 bits of bytes"},
        {wild_offset, TN_INVALID_ARGUMENT, "its offset of 18446744073709551615 bytes"},
        {offset_of_63_bits, TN_INVALID_ARGUMENT, "its offset of 9223372036854775808 bytes"},
        {offset_beyond_addresses, TN_INVALID_ARGUMENT, "its offset of 1152921504606846976 bytes"},
        {extent_beyond_differences, TN_INVALID_ARGUMENT, "lead to no address"},
        {extent_beyond_addresses, TN_INVALID_ARGUMENT, "expected memory of this process"},
        {extent_below_addresses, TN_INVALID_ARGUMENT, "expected memory of this process"},
        {first_page, TN_INVALID_ARGUMENT, "expected memory of this process"},
        {kernel_address, TN_INVALID_ARGUMENT, "expected memory of this process"},
        {misaligned_data, TN_INVALID_ARGUMENT,
         "expected f32 at a multiple of 4 bytes, got an address with a remainder of 1"},
        {misaligned_offset, TN_INVALID_ARGUMENT, "with a remainder of 2; pass an aligned copy"},
        {misaligned_complex, TN_INVALID_ARGUMENT, "expected c64 at a multiple of 4 bytes"},
        {four_lanes, TN_INVALID_ARGUMENT, "lanes: expected 1, got 4"},
        {no_lanes, TN_INVALID_ARGUMENT, "lanes: expected 1, got 0"},
        {four_bits, TN_INVALID_ARGUMENT, "no dtype has code 0, 4 bits and 1 lanes"},
        {handle, TN_INVALID_ARGUMENT, "no dtype has code 3, 64 bits and 1 lanes"},
        {absent_device, TN_UNAVAILABLE, "DLPack's hexagon (device type 16), id 0; present: cpu:0"},
        {absent_number, TN_UNAVAILABLE, "DLPack's cpu (device type 1), id 9"},
    };
    tn_tensor tensor, untouched;
    (void)state;
    memset(&untouched, 0x5a, sizeof untouched);
    tensor = untouched;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        producer p;
        tn_error err;
        produce(&p);
        rows[i / 2].spoil(&p);
        assert_int_equal(import(&p, i % 2, &tensor, &err), rows[i / 2].status);
        assert_contains(err.message, rows[i / 2].words);
        assert_string_equal(err.where, i % 2 ? "tn_dlpack_import" : "tn_dlpack_import_legacy");
        assert_int_equal(p.ends, 1);
        assert_memory_equal(&tensor, &untouched, sizeof tensor);
        produce(&p);
        assert_int_equal(import(&p, i % 2, NULL, &err), TN_INVALID_ARGUMENT);
        assert_int_equal(p.ends, 1);
    }
    assert_int_equal(tn_dlpack_import(NULL, &tensor, NULL), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_dlpack_import_legacy(NULL, &tensor, NULL), TN_INVALID_ARGUMENT);
}

/* Of another major version only its beginning is what it seems: nothing else is there. */
static void another_major_version_ends_at_once(void **state)
{
    static const uint32_t majors[] = {0, 2, UINT32_MAX};
    tn_tensor tensor = {0};
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof majors / sizeof majors[0]; i++) {
        producer p = {.ends = 0};
        const tn_dlpack_versioned whole = {
            .major = majors[i], .minor = 3, .manager = &p, .deleter = end_versioned};
        void *beginning = malloc(offsetof(tn_dlpack_versioned, flags));
        assert_non_null(beginning);
        memcpy(beginning, &whole, offsetof(tn_dlpack_versioned, flags));
        assert_int_equal(tn_dlpack_import(beginning, &tensor, &err), TN_INCOMPATIBLE);
        assert_contains(err.message, "expected DLPack 1.x, got ");
        assert_int_equal(p.ends, 1);
        free(beginning);
    }
}

static void count(void *user)
{
    ++*(int *)user;
}

static void exported_tensor_outlives_its_own(void **state)
{
    const int64_t shape[] = {2, 3};
    float data[6] = {0, 1, 2, 3, 4, 5};
    tn_tensor tensor = {0}, back = {0};
    tn_dlpack_versioned *given = NULL;
    tn_dlpack_managed *legacy = NULL;
    int released = 0;
    tn_error err;
    (void)state;
    assert_int_equal(
        tn_tensor_wrap(cpu(), data, TN_F32, shape, NULL, 2, count, &released, &tensor, &err),
        TN_OK);
    tensor.flags = TN_TENSOR_COPIED;
    assert_int_equal(tn_dlpack_export(&tensor, -1, &given, &err), TN_OK);
    assert_int_equal(tn_dlpack_export_legacy(&tensor, -1, &legacy, &err), TN_OK);
    tn_tensor_release(&tensor);
    assert_int_equal(released, 0);
    assert_true(given->major == 1 && given->minor == TN_DLPACK_VERSION_MINOR);
    assert_int_equal(given->flags, 2);
    assert_memory_equal(&given->tensor.device_type, &legacy->tensor.device_type,
                        offsetof(tn_dlpack_tensor, shape) -
                            offsetof(tn_dlpack_tensor, device_type));
    assert_ptr_equal(given->tensor.data, data);
    assert_true(given->tensor.shape[0] == 2 && given->tensor.shape[1] == 3);
    assert_true(given->tensor.strides[0] == 3 && given->tensor.strides[1] == 1); /* always there */
    assert_true(legacy->tensor.strides[0] == 3 && legacy->tensor.strides[1] == 1);
    legacy->deleter(legacy);
    assert_int_equal(released, 0);
    assert_int_equal(tn_dlpack_import(given, &back, &err), TN_OK); /* out and in again */
    assert_int_equal(back.flags, TN_TENSOR_COPIED);
    assert_ptr_equal(back.data, data);
    tn_tensor_release(&back);
    assert_int_equal(released, 1);
}

/* The program's own tensor: shape and strides are copied, and the data is where it was. */
static void exported_tensor_may_be_borrowed(void **state)
{
    int64_t shape[] = {3, 2}, strides[] = {-2, 1};
    float data[6];
    tn_tensor tensor = {.data = data,
                        .device_type = TN_DLPACK_CPU,
                        .ndim = 2,
                        .dtype = TN_F32,
                        .shape = shape,
                        .strides = strides,
                        .byte_offset = 16,
                        .flags = TN_TENSOR_READ_ONLY};
    tn_dlpack_versioned *given = NULL;
    tn_dlpack_managed *legacy = NULL;
    tn_error err;
    (void)state;
    assert_int_equal(tn_dlpack_export(&tensor, 0, &given, &err), TN_OK);
    shape[0] = strides[0] = 77;
    assert_true(given->tensor.shape[0] == 3 && given->tensor.strides[0] == -2);
    assert_ptr_equal(given->tensor.data, data + 4); /* an offset that not everyone looks at */
    assert_int_equal(given->tensor.byte_offset, 0);
    assert_int_equal(given->flags, 1);
    given->deleter(given);
    assert_int_equal(tn_dlpack_export_legacy(&tensor, -1, &legacy, &err), TN_REFUSED);
    assert_contains(err.message,
                    "the tensor is read-only, which the unversioned form cannot express");
    assert_null(legacy);
}

/* An offset up to the highest possible address: an import that succeeds can be exported and
 * imported again, although the export adds the offset to the address. */
static void far_offsets_come_back(void **state)
{
    (void)state;
    for (int32_t bit = 50; bit < 60; bit++) {
        tn_tensor tensor = {0}, back = {0};
        tn_dlpack_versioned *given = NULL;
        tn_error err;
        producer p;
        produce(&p);
        p.versioned.tensor.byte_offset = UINT64_C(1) << bit;
        if (tn_dlpack_import(&p.versioned, &tensor, &err)) {
            assert_true(bit >= 55);
            continue;
        }
        assert_int_equal(tn_dlpack_export(&tensor, -1, &given, &err), TN_OK);
        assert_int_equal(tn_dlpack_import(given, &back, &err), TN_OK);
        tn_tensor_release(&back);
        tn_tensor_release(&tensor);
    }
}

static void exports_are_refused(void **state)
{
    tn_tensor tensor = {0}, empty = {0};
    tn_dlpack_versioned *given = NULL;
    tn_dlpack_managed *legacy = NULL;
    tn_error err;
    (void)state;
    assert_int_equal(tn_tensor_create(cpu(), TN_F32, (int64_t[]){2}, 1, &tensor, &err), TN_OK);
    assert_int_equal(tn_dlpack_export(&tensor, -2, &given, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "consumer: expected -1 or the handle of a stream, got -2");
    assert_int_equal(tn_dlpack_export(&empty, -1, &given, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_dlpack_export(NULL, -1, &given, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_dlpack_export(&tensor, -1, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_dlpack_export_legacy(NULL, -1, &legacy, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_dlpack_export_legacy(&tensor, -1, NULL, &err), TN_INVALID_ARGUMENT);
    assert_null(given);
    assert_null(legacy);
    assert_int_equal(tn_dlpack_export(&tensor, 12345, &given, &err), TN_OK); /* cpu: no streams */
    given->deleter(given);
    tn_tensor_release(&tensor);
}

/* True once everything that is queued on the stream now has run. */
static bool has_run(tn_stream *stream)
{
    int32_t done = -1;
    tn_error err;
    if (tn_stream_query(stream, &done, &err))
        fail_msg("%s", err.message);
    return done == 1;
}

static void consumer_waits_for_queued_work(void **state)
{
    tn_tensor tensor = {0};
    tn_dlpack_versioned *given = NULL;
    tn_stream *ours = NULL, *theirs = NULL;
    tn_stream_guard guard = {0};
    world w;
    tn_error err;
    (void)state;
    async_world_make(&w, WORLD_CPU);
    tn_device *device = world_device(&w, "async:1");
    assert_int_equal(tn_tensor_create(device, TN_F32, (int64_t[]){2}, 1, &tensor, &err), TN_OK);
    assert_int_equal(tn_stream_create(device, NULL, &ours, &err), TN_OK);
    assert_int_equal(tn_stream_create(device, NULL, &theirs, &err), TN_OK);
    assert_int_equal(tn_stream_guard_enter(&guard, ours, &err), TN_OK);
    async_gate *gate = async_gate_put(ours);
    long waits = async_calls("stream_wait");
    assert_int_equal(tn_dlpack_export(&tensor, -1, &given, &err), TN_OK);
    given->deleter(given);
    assert_int_equal(tn_dlpack_export(&tensor, (int64_t)tn_stream_raw(ours), &given, &err), TN_OK);
    given->deleter(given);
    assert_int_equal(async_calls("stream_wait"), waits); /* neither is another stream */
    assert_int_equal(tn_dlpack_export(&tensor, (int64_t)tn_stream_raw(theirs), &given, &err),
                     TN_OK);
    assert_int_equal(async_calls("stream_wait"), waits + 1);
    assert_false(has_run(theirs));
    assert_true(has_run(tn_stream_default(device)));
    given->deleter(given);
    assert_int_equal(tn_dlpack_export(&tensor, 0, &given, &err), TN_OK);
    assert_false(has_run(tn_stream_default(device)));
    given->deleter(given);
    async_gate_open(gate);
    assert_int_equal(tn_stream_synchronize(theirs, &err), TN_OK);
    assert_true(has_run(ours));
    tn_stream_guard_leave(&guard);
    tn_stream_release(ours);
    tn_stream_release(theirs);
    tn_tensor_release(&tensor);
    async_world_end(&w);
}

static void export_that_cannot_wait_gives_nothing(void **state)
{
    static const char *const calls[] = {"event_create", "event_record", "stream_wait"};
    tn_tensor tensor = {0};
    tn_dlpack_versioned *given = NULL;
    tn_stream *theirs = NULL;
    world w;
    tn_error err;
    (void)state;
    async_world_make(&w, WORLD_CPU);
    tn_device *device = world_device(&w, "async:0");
    assert_int_equal(tn_tensor_create(device, TN_F32, (int64_t[]){2}, 1, &tensor, &err), TN_OK);
    assert_int_equal(tn_stream_create(device, NULL, &theirs, &err), TN_OK);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        int64_t blocks = tn_allocator_blocks();
        async_fail(calls[i], 1, TN_IO);
        tn_status status = tn_dlpack_export(&tensor, (int64_t)tn_stream_raw(theirs), &given, &err);
        bool failed = async_heal();
        assert_int_equal(status, failed ? TN_IO : TN_OK);
        assert_true(failed || strcmp(calls[i], "event_create") == 0); /* events may be kept */
        if (!failed)
            given->deleter(given);
        else
            assert_int_equal(tn_allocator_blocks(), blocks);
        given = NULL;
    }
    tn_stream_release(theirs);
    tn_tensor_release(&tensor);
    async_world_end(&w);
}

/* Devices that DLPack does not know find back by their numbers, within the process. */
static void foreign_devices_come_back(void **state)
{
    tn_registration *registration = NULL;
    tn_tensor tensor = {0}, back = {0};
    tn_dlpack_versioned *given = NULL;
    tn_device *device = NULL, *found = NULL;
    tn_error err = {0};
    (void)state;
    if (tn_module_register(async_builtin().entry, 0, &registration, &err))
        fail_msg("%s", err.message);
    assert_int_equal(tn_device_get("async:1", &device, &err), TN_OK);
    assert_int_equal(tn_tensor_create(device, TN_F32, (int64_t[]){4}, 1, &tensor, &err), TN_OK);
    assert_int_equal(tensor.device_type, TN_DLPACK_EXT_DEV);
    assert_int_equal(tn_dlpack_export(&tensor, -1, &given, &err), TN_OK);
    assert_int_equal(tn_dlpack_import(given, &back, &err), TN_OK);
    assert_int_equal(tn_tensor_device(&back, &found, &err), TN_OK);
    assert_ptr_equal(found, device);
    tn_tensor unowned = tensor;
    unowned.owner = NULL;
    assert_int_equal(tn_tensor_device(&unowned, &found, &err), TN_OK);
    assert_ptr_equal(found, device);
    tn_tensor_release(&tensor);
    tn_tensor_release(&back);
    tn_registration_release(registration);
    async_end();
}

static void every_allocation_may_fail(void **state)
{
    tn_tensor tensor = {0};
    long n = 0;
    bool fired = true;
    tn_error err;
    (void)state;
    assert_int_equal(tn_tensor_create(cpu(), TN_F32, (int64_t[]){2, 3}, 2, &tensor, &err), TN_OK);
    while (fired) {
        struct fault_state before = fault_look();
        tn_dlpack_versioned *given = NULL;
        tn_tensor in = {0}, back = {0};
        producer p;
        produce(&p);
        fault_arm(&fault_memory, ++n, true, 0);
        tn_status status = import(&p, n % 2, &in, &err);
        if (!status)
            status = tn_dlpack_export(&tensor, -1, &given, &err);
        if (!status)
            status = tn_dlpack_import(given, &back, &err);
        fired = fault_end(&fault_memory);
        assert_int_equal(status, fired ? TN_OUT_OF_MEMORY : TN_OK);
        tn_tensor_release(&in);
        tn_tensor_release(&back);
        assert_int_equal(p.ends, 1);
        assert_int_equal(fault_left(before, "dlpack", n), 0);
    }
    assert_int_equal(n, 4);
    tn_tensor_release(&tensor);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(imported_tensor_ends_once),
    cmocka_unit_test(imported_flags_and_offsets_count),
    cmocka_unit_test(unusual_places_come_in),
    cmocka_unit_test(producer_may_have_nothing_to_end),
    cmocka_unit_test(zero_sizes_come_in),
    cmocka_unit_test(refused_tensor_ends_at_once),
    cmocka_unit_test(another_major_version_ends_at_once),
    cmocka_unit_test(exported_tensor_outlives_its_own),
    cmocka_unit_test(exported_tensor_may_be_borrowed),
    cmocka_unit_test(exports_are_refused),
    cmocka_unit_test(consumer_waits_for_queued_work),
    cmocka_unit_test(export_that_cannot_wait_gives_nothing),
    cmocka_unit_test(foreign_devices_come_back),
    cmocka_unit_test(far_offsets_come_back),
    cmocka_unit_test(every_allocation_may_fail),
};

int main(void)
{
    fault_memory_install();
    return run_suite("unit.dlpack", tests);
}
