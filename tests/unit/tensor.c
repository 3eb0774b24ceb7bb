/* Tensors: made, wrapped, viewed and released, and what is said of their layouts. */
#include "world.h"

#include "device/tensor/tensor.h"
#include "fault/fault.h"

#define NO_SHAPE ((const int64_t *)NULL)

static tn_device *cpu(void)
{
    tn_device *device = NULL;
    tn_error err;
    if (tn_device_get("cpu", &device, &err))
        fail_msg("%s", err.message);
    return device;
}

static void count(void *user)
{
    ++*(int *)user;
}

static void tensor_has_memory_of_its_own(void **state)
{
    int64_t shape[] = {2, 3, 5};
    tn_memory_stats before = {.struct_size = sizeof before}, with = before, after = before;
    tn_tensor tensor = {0};
    tn_device *device = NULL;
    int64_t elements = 0;
    uint64_t bytes = 0;
    tn_error err;
    (void)state;
    assert_int_equal(tn_memory_stats_get(cpu(), &before, &err), TN_OK);
    assert_int_equal(tn_tensor_create(cpu(), TN_BF16, shape, 3, &tensor, &err), TN_OK);
    assert_int_equal(tn_memory_stats_get(cpu(), &with, &err), TN_OK);
    assert_int_equal(with.current - before.current, 60);
    shape[0] = 99; /* what it has is a copy */
    assert_true(tensor.ndim == 3 && tensor.shape[0] == 2 && tensor.shape[2] == 5);
    assert_null(tensor.strides);
    assert_int_equal((uintptr_t)tensor.data % 64, 0);
    assert_int_equal(tensor.byte_offset, 0);
    assert_int_equal(tensor.dtype, TN_BF16);
    assert_int_equal(tensor.flags, 0);
    assert_true(tensor.device_type == TN_DLPACK_CPU && tensor.device_id == 0);
    memset(tensor.data, 7, 60);
    assert_int_equal(tn_tensor_elements(&tensor, &elements, &err), TN_OK);
    assert_int_equal(elements, 30);
    assert_int_equal(tn_tensor_bytes(&tensor, &bytes, &err), TN_OK);
    assert_int_equal(bytes, 60);
    assert_int_equal(tn_tensor_is_dense(&tensor), 1);
    assert_int_equal(tn_tensor_device(&tensor, &device, &err), TN_OK);
    assert_ptr_equal(device, cpu());
    tn_tensor_release(&tensor);
    assert_int_equal(tn_memory_stats_get(cpu(), &after, &err), TN_OK);
    assert_int_equal(after.current, before.current);
    assert_memory_equal(&tensor, &(tn_tensor){0}, sizeof tensor);
}

static void tensor_may_be_a_number_or_nothing(void **state)
{
    const int64_t empty[] = {4, 0, 3};
    int64_t ones[TN_TENSOR_NDIM_MAX];
    tn_tensor tensor = {0};
    int64_t elements = -1;
    tn_error err;
    (void)state;
    assert_int_equal(tn_tensor_create(cpu(), TN_C128, NULL, 0, &tensor, &err), TN_OK);
    assert_int_equal(tn_tensor_elements(&tensor, &elements, &err), TN_OK);
    assert_int_equal(elements, 1);
    tn_tensor_release(&tensor);
    assert_int_equal(tn_tensor_create(cpu(), TN_I64, empty, 3, &tensor, &err), TN_OK);
    assert_int_equal(tn_tensor_elements(&tensor, &elements, &err), TN_OK);
    assert_int_equal(elements, 0);
    assert_int_equal(tn_tensor_is_dense(&tensor), 1);
    tn_tensor_release(&tensor);
    for (int i = 0; i < TN_TENSOR_NDIM_MAX; i++)
        ones[i] = 1;
    assert_int_equal(tn_tensor_create(cpu(), TN_BOOL, ones, TN_TENSOR_NDIM_MAX, &tensor, &err),
                     TN_OK);
    assert_int_equal(tn_tensor_elements(&tensor, &elements, &err), TN_OK);
    assert_int_equal(elements, 1);
    tn_tensor_release(&tensor);
}

static void tensor_goes_to_the_current_device(void **state)
{
    tn_device *current = NULL, *device = NULL;
    tn_tensor tensor = {0};
    tn_error err;
    (void)state;
    assert_int_equal(tn_device_default(&current, &err), TN_OK);
    assert_int_equal(tn_tensor_create(NULL, TN_F32, (int64_t[]){4}, 1, &tensor, &err), TN_OK);
    assert_int_equal(tn_tensor_device(&tensor, &device, &err), TN_OK);
    assert_ptr_equal(device, current);
    tn_tensor_release(&tensor);
}

/* Whatever is refused leaves the output as it was, and nothing behind. */
static void wrong_tensors_are_refused(void **state)
{
    static const int64_t fine[] = {2, 3}, negative[] = {2, -3};
    static const int64_t huge[] = {INT64_C(1) << 32, INT64_C(1) << 31}, one_more[] = {INT64_MAX};
    static const int64_t hidden[] = {0, INT64_C(1) << 40, INT64_C(1) << 40};
    static const struct {
        tn_dtype dtype;
        const int64_t *shape;
        int32_t ndim;
        const char *words;
    } rows[] = {
        {TN_F32, fine, -1, "out: ndim: expected 0 to 32, got -1"},
        {TN_F32, fine, 33, "out: ndim: expected 0 to 32, got 33"},
        {TN_F32, NO_SHAPE, 2, "out: shape is NULL, and ndim is 2"},
        {TN_F32, negative, 2, "out: dimension 1: expected at least 0, got -3"},
        {0, fine, 2, "out: no dtype has code 0, 0 bits and 0 lanes"},
        {TN_DTYPE(TN_DTYPE_CODE_INT, 4, 1), fine, 2,
         "out: no dtype has code 0, 4 bits and 1 lanes"},
        {TN_DTYPE(TN_DTYPE_CODE_FLOAT, 32, 4), fine, 2, "out: lanes: expected 1, got 4"},
        {TN_I8, huge, 2, "out: its size in bytes of i8 exceeds 63 bits"},
        {TN_I16, one_more, 1, "out: its size in bytes of i16 exceeds 63 bits"},
        {TN_F64, hidden, 3, "out: its size in bytes of f64 exceeds 63 bits"},
    };
    tn_tensor tensor, untouched;
    tn_error err;
    (void)state;
    memset(&untouched, 0x5a, sizeof untouched);
    tensor = untouched;
    int64_t blocks = tn_allocator_blocks();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int released = 0;
        char data[64];
        assert_int_equal(
            tn_tensor_create(cpu(), rows[i].dtype, rows[i].shape, rows[i].ndim, &tensor, &err),
            TN_INVALID_ARGUMENT);
        assert_string_equal(err.message, rows[i].words);
        assert_int_equal(tn_tensor_wrap(cpu(), data, rows[i].dtype, rows[i].shape, NULL,
                                        rows[i].ndim, count, &released, &tensor, &err),
                         TN_INVALID_ARGUMENT);
        assert_string_equal(err.message, rows[i].words);
        assert_int_equal(released, 0);
        assert_memory_equal(&tensor, &untouched, sizeof tensor);
    }
    assert_int_equal(tn_allocator_blocks(), blocks);
    assert_int_equal(tn_tensor_create(cpu(), TN_F32, fine, 2, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_memory_limit_set(cpu(), 100, &err), TN_OK);
    assert_int_equal(tn_tensor_create(cpu(), TN_I8, (int64_t[]){101}, 1, &tensor, &err),
                     TN_OUT_OF_MEMORY);
    assert_int_equal(tn_memory_limit_set(cpu(), 0, &err), TN_OK);
    assert_memory_equal(&tensor, &untouched, sizeof tensor);
}

static void wrapped_memory_is_released_once(void **state)
{
    const int64_t shape[] = {2, 3}, strides[] = {-3, 1};
    float data[6] = {0};
    int released = 0;
    tn_tensor tensor = {0}, view = {0}, second = {0};
    tn_error err;
    (void)state;
    assert_int_equal(
        tn_tensor_wrap(cpu(), data + 3, TN_F32, shape, strides, 2, count, &released, &tensor, &err),
        TN_OK);
    assert_ptr_equal(tensor.data, data + 3);
    assert_true(tensor.strides != strides && tensor.strides[0] == -3 && tensor.strides[1] == 1);
    assert_int_equal(tn_tensor_is_dense(&tensor), 0);
    assert_int_equal(tn_tensor_view(&tensor, &view, &err), TN_OK);
    assert_int_equal(tn_tensor_view(&view, &second, &err), TN_OK);
    assert_int_equal(tn_tensor_view(&view, &view, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "out is the tensor itself; a view needs another tensor");
    assert_memory_equal(&view, &tensor, sizeof view);
    tn_tensor_release(&tensor);
    tn_tensor_release(&tensor);
    assert_int_equal(released, 0);
    tn_tensor_release(&second);
    assert_true(view.shape[1] == 3 && view.strides[0] == -3); /* of the owner, who is alive */
    assert_int_equal(released, 0);
    tn_tensor_release(&view);
    assert_int_equal(released, 1);
    tn_tensor_release(&view);
    tn_tensor_release(NULL);
    assert_int_equal(released, 1);
    assert_int_equal(tn_tensor_wrap(cpu(), data, TN_F32, shape, NULL, 2, NULL, NULL, &tensor, &err),
                     TN_OK);
    tn_tensor_release(&tensor);
}

/* The program's object has the tensor in it, and goes with it. */
typedef struct holder {
    tn_tensor tensor;
    float data[4];
    bool *out_was_zeroed;
} holder;

static void end_holder(void *user)
{
    holder *h = user;
    *h->out_was_zeroed = memcmp(&h->tensor, &(tn_tensor){0}, sizeof h->tensor) == 0;
    free(h);
}

static void tensor_may_lie_in_what_it_releases(void **state)
{
    holder *h = malloc(sizeof *h);
    bool was_zeroed = false;
    tn_error err;
    (void)state;
    assert_non_null(h);
    h->out_was_zeroed = &was_zeroed;
    assert_int_equal(tn_tensor_wrap(cpu(), h->data, TN_F32, (int64_t[]){4}, NULL, 1, end_holder, h,
                                    &h->tensor, &err),
                     TN_OK);
    tn_tensor_release(&h->tensor);
    assert_true(was_zeroed); /* before: after, it is not there */
}

static void wild_strides_are_refused(void **state)
{
    static const struct {
        int64_t shape[2];
        int64_t strides[2];
        const char *words;
    } rows[] = {
        {{2, 3}, {INT64_MAX, 1}, "out: its strides span more than 63 bits of bytes"},
        {{2, 3}, {INT64_MIN, 1}, "out: its strides span more than 63 bits of bytes"},
        {{3, 3}, {INT64_MAX / 8, INT64_MAX / 8}, "out: its strides span more than"},
        {{3, 3}, {INT64_MIN / 8, INT64_MIN / 8}, "out: its strides span more than"},
        {{2, 2}, {-(INT64_C(1) << 60), 1}, "lead to no address"},
        {{2, 2}, {INT64_C(1) << 60, INT64_C(1) << 59}, NULL},
    };
    char data[64];
    tn_tensor tensor = {0};
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_status status = tn_tensor_wrap(cpu(), data, TN_F32, rows[i].shape, rows[i].strides, 2,
                                          NULL, NULL, &tensor, &err);
        assert_int_equal(status, rows[i].words ? TN_INVALID_ARGUMENT : TN_OK);
        if (rows[i].words)
            assert_contains(err.message, rows[i].words);
        tn_tensor_release(&tensor);
    }
    assert_int_equal(tn_tensor_wrap(cpu(), data, TN_I8, (int64_t[]){2}, (int64_t[]){INT64_MIN}, 1,
                                    NULL, NULL, &tensor, &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "out: its strides span more than");
    const int64_t none[] = {0, 3}, wild[] = {INT64_MIN, INT64_MAX}; /* nothing is stepped over */
    assert_int_equal(tn_tensor_wrap(cpu(), NULL, TN_F32, none, wild, 2, NULL, NULL, &tensor, &err),
                     TN_OK);
    assert_int_equal(tn_tensor_is_dense(&tensor), 1);
    tn_tensor_release(&tensor);
    assert_int_equal(
        tn_tensor_wrap(cpu(), NULL, TN_F32, (int64_t[]){3}, NULL, 1, NULL, NULL, &tensor, &err),
        TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "out: data is NULL, and there are 3 elements");
}

static void dense_is_what_lies_together(void **state)
{
    static const struct {
        int32_t ndim;
        int64_t shape[3];
        int64_t strides[3];
        int32_t dense;
    } rows[] = {
        {0, {0}, {0}, 1},
        {1, {5}, {1}, 1},
        {1, {5}, {2}, 0},
        {1, {5}, {-1}, 0},
        {1, {5}, {0}, 0},
        {1, {1}, {77}, 1}, /* a single element has no step */
        {2, {2, 3}, {3, 1}, 1},
        {2, {2, 3}, {1, 2}, 0},
        {2, {2, 3}, {4, 1}, 0},
        {3, {2, 1, 3}, {3, -9, 1}, 1},
        {3, {2, 0, 3}, {9, 9, 9}, 1},
    };
    char data[256];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t shape[3], strides[3];
        memcpy(shape, rows[i].shape, sizeof shape);
        memcpy(strides, rows[i].strides, sizeof strides);
        tn_tensor tensor = {.data = data + 128,
                            .device_type = TN_DLPACK_CPU,
                            .ndim = rows[i].ndim,
                            .dtype = TN_F32,
                            .shape = shape,
                            .strides = strides};
        assert_int_equal(tn_tensor_is_dense(&tensor), rows[i].dense);
        tensor.strides = NULL;
        assert_int_equal(tn_tensor_is_dense(&tensor), 1);
        tensor.ndim = -1;
        assert_int_equal(tn_tensor_is_dense(&tensor), 0);
    }
    assert_int_equal(tn_tensor_is_dense(NULL), 0);
    assert_int_equal(tn_tensor_is_dense(&(tn_tensor){0}), 0);
}

static void empty_tensor_is_named(void **state)
{
    tn_tensor empty = {0}, view = {0};
    tn_device *device = NULL;
    int64_t elements;
    uint64_t bytes;
    tn_error err;
    (void)state;
    assert_int_equal(tn_tensor_view(&empty, &view, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(
        err.message,
        "tensor: the tensor is not initialized: it was never created, or was released");
    assert_int_equal(tn_tensor_view(NULL, &view, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "tensor: the tensor is NULL");
    assert_int_equal(tn_tensor_view(&empty, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_device(&empty, &device, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_device(&empty, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_elements(&empty, &elements, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_elements(&empty, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_bytes(&empty, &bytes, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_tensor_bytes(&empty, NULL, &err), TN_INVALID_ARGUMENT);
}

static void tensor_without_an_owner_is_where_its_numbers_say(void **state)
{
    static const struct {
        int32_t type, id;
        const char *words; /* NULL: it is cpu:0 */
    } rows[] = {
        {TN_DLPACK_CPU, 0, NULL},
        {TN_DLPACK_CPU, 1, "no device matches DLPack's cpu (device type 1), id 1; present: cpu:0"},
        {TN_DLPACK_CPU, -1, "DLPack's cpu (device type 1), id -1"},
        {TN_DLPACK_CUDA_HOST, 3, NULL},
        {TN_DLPACK_ROCM_HOST, 0, NULL},
        {TN_DLPACK_CUDA_MANAGED, 1, NULL},
        {TN_DLPACK_CUDA, 999, "DLPack's cuda (device type 2), id 999; present: cpu:0"},
        {TN_DLPACK_VULKAN, 0, "DLPack's vulkan (device type 7), id 0"},
        {TN_DLPACK_EXT_DEV, 0, "DLPack's ext_dev (device type 12), id 0"}, /* the cpu is none */
        {TN_DLPACK_EXT_DEV, 99999, "DLPack's ext_dev"},
        {0, 0, "DLPack's unknown kind (device type 0), id 0"},
        {5, 0, "DLPack's unknown kind (device type 5), id 0"},
        {-1, 0, "DLPack's unknown kind"},
        {INT32_MAX, INT32_MAX, "DLPack's unknown kind"},
    };
    float data[2];
    int64_t shape[] = {2};
    tn_error err;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_tensor tensor = {.data = data, .ndim = 1, .dtype = TN_F32, .shape = shape};
        tn_device *device = NULL;
        tensor.device_type = rows[i].type;
        tensor.device_id = rows[i].id;
        tn_status status = tn_tensor_device(&tensor, &device, &err);
        assert_int_equal(status, rows[i].words ? TN_UNAVAILABLE : TN_OK);
        if (rows[i].words)
            assert_contains(err.message, rows[i].words);
        assert_ptr_equal(device, rows[i].words ? NULL : cpu());
    }
}

static void devices_have_numbers_that_lead_back(void **state)
{
    static const struct {
        const char *id;
        int32_t type, number;
    } rows[] = {
        {"cpu:0", TN_DLPACK_CPU, 0},      {"acme:0", TN_DLPACK_EXT_DEV, 1},
        {"acme:2", TN_DLPACK_EXT_DEV, 3}, {"bolt:0", TN_DLPACK_EXT_DEV, 4},
        {"cuda:0", TN_DLPACK_CUDA, 0},    {"cuda:1", TN_DLPACK_CUDA, 1},
        {"tpu:0", TN_DLPACK_EXT_DEV, 7},
    };
    static const char text[] = "[device]\nplatform = cuda\ncount = 2\n[device]\nplatform = tpu\n";
    tni_descriptions *described = NULL;
    world w;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_ALL, NULL);
    assert_int_equal(tni_descriptions_parse(text, strlen(text), "lab", &described, &err), TN_OK);
    assert_int_equal(tni_devices_describe(w.set, described, "lab", &err), TN_OK);
    tni_descriptions_release(described);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_device *device = world_device(&w, rows[i].id), *back = NULL;
        int32_t type = -1, number = -1;
        tni_dlpack_numbers(device, &type, &number);
        assert_int_equal(type, rows[i].type);
        assert_int_equal(number, rows[i].number);
        assert_int_equal(tni_dlpack_device(w.set, type, number, "here", &back, &err), TN_OK);
        assert_ptr_equal(back, device);
    }
    tn_device *none = NULL;
    assert_int_equal(tni_dlpack_device(w.set, TN_DLPACK_METAL, 0, "here", &none, &err),
                     TN_UNAVAILABLE);
    assert_contains(err.message, "DLPack's metal (device type 8), id 0; present: cpu:0, acme:0, "
                                 "acme:1, acme:2, bolt:0, cuda:0, cuda:1, tpu:0");
    assert_null(none);
    world_end(&w);
}

/* A module for a platform that DLPack knows. */
static tn_status late_probe(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)host, (void)out_self, (void)err;
    *out = 1;
    return TN_OK;
}

static tn_status late_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device, (void)bytes, (void)out;
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, "late", "none");
}

static void late_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device, (void)memory;
}

static tn_status late_copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)job;
    return tn_fail(err, TN_UNSUPPORTED, 0, "late", "none");
}

static tn_status late_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    static const tn_platform_row row = {.struct_size = sizeof row,
                                        .name = "cuda",
                                        .kind = TN_PLATFORM_CUDA,
                                        .probe = late_probe,
                                        .memory_alloc = late_alloc,
                                        .memory_free = late_free,
                                        .copy = late_copy};
    static const tn_platform_row *const rows[] = {&row, NULL};
    static const tn_module module = {.struct_size = sizeof module,
                                     TN_MODULE_ABI,
                                     .name = "late",
                                     .version = "1",
                                     .platforms = rows};
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

/* As names do: of two that have a number the one that runs counts, also when it came later. */
static void numbers_lead_to_the_device_that_runs(void **state)
{
    static const char text[] = "[device]\nplatform = cuda\n";
    tni_descriptions *described = NULL;
    tn_registration *registration = NULL;
    tn_device *back = NULL;
    world w;
    tn_error err = {0};
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    assert_int_equal(tni_descriptions_parse(text, strlen(text), "lab", &described, &err), TN_OK);
    assert_int_equal(tni_devices_describe(w.set, described, "lab", &err), TN_OK);
    tni_descriptions_release(described);
    assert_int_equal(tni_dlpack_device(w.set, TN_DLPACK_CUDA, 0, "here", &back, &err), TN_OK);
    assert_int_equal(tn_device_plans_only(back), 1);
    if (tni_platforms_register(w.set, late_entry, 0, &registration, &err))
        fail_msg("%s", err.message);
    assert_int_equal(tni_dlpack_device(w.set, TN_DLPACK_CUDA, 0, "here", &back, &err), TN_OK);
    assert_int_equal(tn_device_plans_only(back), 0);
    assert_ptr_equal(back, world_device(&w, "cuda:0"));
    tn_registration_release(registration);
    world_end(&w);
}

/* A number that was given once is not given again, so that what carries it is not taken for a tensor
 * of another device. */
static void numbers_of_foreign_devices_stay_their_own(void **state)
{
    tn_registration *registration = NULL;
    int32_t type = -1, before = -1, after = -1;
    tn_device *back = NULL;
    world w;
    tn_error err = {0};
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    tn_module_entry_fn *acme = world_builtins(WORLD_ACME)[0].entry;
    assert_int_equal(tni_platforms_register(w.set, acme, 0, &registration, &err), TN_OK);
    tn_device *first = world_device(&w, "acme:1");
    tni_dlpack_numbers(first, &type, &before);
    tn_registration_release(registration);
    assert_int_equal(tni_platforms_register(w.set, acme, 0, &registration, &err), TN_OK);
    tn_device *second = world_device(&w, "acme:1");
    tni_dlpack_numbers(second, &type, &after);
    assert_int_equal(type, TN_DLPACK_EXT_DEV);
    assert_int_not_equal(before, after);
    assert_int_equal(tni_dlpack_device(w.set, type, after, "here", &back, &err), TN_OK);
    assert_ptr_equal(back, second);
    assert_int_equal(tni_dlpack_device(w.set, type, before, "here", &back, &err), TN_OK);
    assert_ptr_equal(back, first);
    assert_int_equal(tn_device_health(back, &err), TN_UNAVAILABLE);
    tn_registration_release(registration);
    world_end(&w);
}

static void tensor_on_a_device_for_planning_has_no_memory(void **state)
{
    static const char text[] = "[device]\nplatform = cuda\n";
    const int64_t shape[] = {2};
    float data[4] = {1, 2, 3, 4};
    tni_descriptions *described = NULL;
    tn_tensor planned = {0}, here = {0};
    world w;
    tn_error err;
    (void)state;
    world_make(&w, WORLD_CPU, NULL);
    assert_int_equal(tni_descriptions_parse(text, strlen(text), "lab", &described, &err), TN_OK);
    assert_int_equal(tni_devices_describe(w.set, described, "lab", &err), TN_OK);
    tni_descriptions_release(described);
    tn_device *cuda = world_device(&w, "cuda");
    assert_int_equal(tn_tensor_create(cuda, TN_F32, shape, 1, &planned, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "for planning only");
    assert_int_equal(tn_tensor_wrap(cuda, data, TN_F32, shape, NULL, 1, NULL, NULL, &planned, &err),
                     TN_OK);
    assert_int_equal(
        tn_tensor_wrap(cpu(), data + 2, TN_F32, shape, NULL, 1, NULL, NULL, &here, &err), TN_OK);
    assert_int_equal(tn_copy(NULL, &here, &planned, &err), TN_UNAVAILABLE);
    assert_int_equal(tn_copy(NULL, &planned, &here, &err), TN_UNAVAILABLE);
    assert_int_equal(tn_random_uniform(NULL, &planned, &err), TN_UNAVAILABLE);
    tn_tensor_release(&planned);
    tn_tensor_release(&here);
    world_end(&w);
}

/* Many threads view and release; the last to let go releases, whoever it is. */
enum { THREADS = 8, VIEWS = 2000 };

static void view_and_release(void *user)
{
    tn_tensor *mine = user;
    for (int i = 0; i < (test_reduced() ? VIEWS / 10 : VIEWS); i++) {
        tn_tensor view = {0};
        if (tn_tensor_view(mine, &view, NULL))
            return;
        tn_tensor_release(&view);
    }
    tn_tensor_release(mine);
}

static void last_of_many_threads_releases(void **state)
{
    tn_tensor tensors[THREADS] = {{0}};
    tni_thread threads[THREADS];
    float data[2] = {0};
    int released = 0;
    tn_error err;
    (void)state;
    assert_int_equal(tn_tensor_wrap(cpu(), data, TN_F32, (int64_t[]){2}, NULL, 1, count, &released,
                                    &tensors[0], &err),
                     TN_OK);
    for (int i = 1; i < THREADS; i++)
        assert_int_equal(tn_tensor_view(&tensors[0], &tensors[i], &err), TN_OK);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(tni_thread_create(&threads[i], view_and_release, &tensors[i], &err),
                         TN_OK);
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(released, 1);
}

static tn_status make_and_release(void)
{
    const int64_t shape[] = {3, 4}, strides[] = {1, 3};
    tn_tensor created = {0}, wrapped = {0}, turned = {0}, parts[2] = {{0}};
    float data[12];
    int released = 0;
    tn_status status = tn_tensor_create(cpu(), TN_F32, shape, 2, &created, NULL);
    if (!status)
        status = tn_tensor_wrap(cpu(), data, TN_F32, shape, strides, 2, count, &released, &wrapped,
                                NULL);
    if (!status)
        status = tn_copy(NULL, &created, &wrapped, NULL);
    if (!status)
        status = tn_tensor_transpose(&wrapped, 0, 1, &turned, NULL);
    if (!status)
        status = tn_tensor_split(&turned, 0, NULL, 2, parts, NULL);
    tn_tensor_release(&created);
    bool was_wrapped = wrapped.owner != NULL;
    tn_tensor_release(&wrapped);
    tn_tensor_release(&turned);
    tn_tensor_release(&parts[0]);
    assert_int_equal(released, was_wrapped && !parts[1].owner);
    tn_tensor_release(&parts[1]);
    assert_int_equal(released, was_wrapped);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    long n = 0;
    (void)state;
    assert_int_equal(make_and_release(), TN_OK); /* what stays for good is there from now on */
    tn_memory_trim(cpu());
    bool fired = true;
    while (fired) {
        struct fault_state before = fault_look();
        fault_arm(&fault_memory, ++n, true, 0); /* what is freed for a second try is not enough */
        tn_status status = make_and_release();
        fired = fault_end(&fault_memory);
        assert_int_equal(status, fired ? TN_OUT_OF_MEMORY : TN_OK);
        tn_memory_trim(cpu());
        assert_int_equal(fault_left(before, "tensors", n), 0);
    }
    assert_true(n > 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tensor_has_memory_of_its_own),
    cmocka_unit_test(tensor_may_be_a_number_or_nothing),
    cmocka_unit_test(tensor_goes_to_the_current_device),
    cmocka_unit_test(wrong_tensors_are_refused),
    cmocka_unit_test(wrapped_memory_is_released_once),
    cmocka_unit_test(tensor_may_lie_in_what_it_releases),
    cmocka_unit_test(wild_strides_are_refused),
    cmocka_unit_test(dense_is_what_lies_together),
    cmocka_unit_test(empty_tensor_is_named),
    cmocka_unit_test(tensor_without_an_owner_is_where_its_numbers_say),
    cmocka_unit_test(devices_have_numbers_that_lead_back),
    cmocka_unit_test(numbers_lead_to_the_device_that_runs),
    cmocka_unit_test(numbers_of_foreign_devices_stay_their_own),
    cmocka_unit_test(tensor_on_a_device_for_planning_has_no_memory),
    cmocka_unit_test(last_of_many_threads_releases),
    cmocka_unit_test(every_allocation_may_fail),
};

int main(void)
{
    fault_memory_install();
    return run_suite("unit.tensor", tests);
}
