/* Managed tensors of arbitrary bytes, with valid pointers: a refused one is deleted once and
 * changes nothing; an accepted one has the described contents, can be exported and imported again,
 * and is deleted once. */
#include "tenon/tenon.h"

#include <stdbool.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* The input, consumed from front to back; zeros after its end. */
typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

static void take(input *in, void *to, size_t size)
{
    size_t there = in->left < size ? in->left : size;
    memset(to, 0, size);
    if (there > 0)
        memcpy(to, in->at, there);
    in->at += there;
    in->left -= there;
}

static uint8_t take_byte(input *in)
{
    uint8_t byte;
    take(in, &byte, 1);
    return byte;
}

/* Usually a small number, because most inputs would otherwise be refused for their size. */
static int64_t take_number(input *in)
{
    int64_t number;
    uint8_t first = take_byte(in);
    if (first < 240)
        return (int64_t)(first % 16) - 4;
    take(in, &number, sizeof number);
    return number;
}

enum { ROOM = 1 << 16, DIMS = 40 };
static _Alignas(16) unsigned char memory[ROOM]; /* data is in the middle of it */

typedef struct producer {
    tn_dlpack_versioned versioned;
    tn_dlpack_managed legacy;
    int64_t shape[DIMS];
    int64_t strides[DIMS];
    bool is_versioned;
    int ends;
    int ends_wanted;
} producer;

static void end_versioned(tn_dlpack_versioned *self)
{
    ((producer *)self->manager)->ends++;
}

static void end_legacy(tn_dlpack_managed *self)
{
    ((producer *)self->manager)->ends++;
}

static tn_dtype take_dtype(input *in)
{
    static const tn_dtype dtypes[] = {
#define DTYPE(name, word, code, bits) name,
        TN_DTYPE_LIST(DTYPE)
#undef DTYPE
    };
    uint8_t choice = take_byte(in);
    tn_dtype dtype;
    if (choice < 200)
        return dtypes[choice % (sizeof dtypes / sizeof dtypes[0])];
    take(in, &dtype, sizeof dtype);
    return dtype;
}

static void produce(input *in, producer *p)
{
    uint8_t choice = take_byte(in);
    tn_dlpack_tensor *tensor = &p->versioned.tensor;
    *p = (producer){.is_versioned = choice & 1, .ends_wanted = !(choice & 2)};
    p->versioned.major = choice & 4 ? take_byte(in) : 1;
    p->versioned.minor = take_byte(in);
    take(in, &p->versioned.flags, choice & 8 ? sizeof p->versioned.flags : 1);
    p->versioned.manager = p->legacy.manager = p;
    p->versioned.deleter = p->ends_wanted ? end_versioned : NULL;
    p->legacy.deleter = p->ends_wanted ? end_legacy : NULL;
    tensor->device_type = choice & 16 ? (int32_t)take_number(in) : TN_DLPACK_CPU;
    tensor->device_id = choice & 16 ? (int32_t)take_number(in) : 0;
    tensor->ndim = (int32_t)(take_byte(in) % DIMS) - 1;
    tensor->dtype = take_dtype(in);
    tensor->data = choice & 32 ? NULL : memory + ROOM / 2;
    tensor->shape = choice & 64 ? NULL : p->shape;
    tensor->strides = choice & 128 ? p->strides : NULL;
    tensor->byte_offset = (uint64_t)take_number(in);
    for (int32_t i = 0; i < tensor->ndim; i++) {
        p->shape[i] = take_number(in);
        p->strides[i] = take_number(in);
    }
    p->legacy.tensor = *tensor;
}

/* Returns whether all elements are inside `memory`. Uses floating point, because products of three
 * sizes may exceed 128 bits; rounding only affects values far outside. */
static bool is_inside(const tn_tensor *t, int64_t size)
{
    long double low = (long double)t->byte_offset, high = low + (long double)size;
    long double step = (long double)size;
    for (int32_t i = t->ndim; i-- > 0;) {
        long double stride = t->strides ? (long double)t->strides[i] * (long double)size : step;
        long double reach = stride * ((long double)t->shape[i] - 1);
        step *= (long double)t->shape[i];
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    return t->data && low >= -(ROOM / 2) && high <= ROOM / 2;
}

/* Returns the element with that number, computed in the simplest way. */
static const unsigned char *element(const tn_tensor *t, int64_t number, int64_t size)
{
    int64_t offset = 0, step = 1;
    for (int32_t i = t->ndim; i-- > 0;) {
        offset += number % t->shape[i] * (t->strides ? t->strides[i] : step);
        number /= t->shape[i];
        step *= t->shape[i];
    }
    return (const unsigned char *)t->data + t->byte_offset + offset * size;
}

static void require_copy(const tn_tensor *t, int64_t elements, int64_t size)
{
    tn_tensor dense = {0};
    tn_error err;
    require(tn_tensor_create(NULL, t->dtype, t->shape, t->ndim, &dense, &err) == TN_OK);
    require(tn_copy(NULL, t, &dense, &err) == TN_OK);
    for (int64_t i = 0; i < elements; i++)
        require(memcmp((char *)dense.data + i * size, element(t, i, size), (size_t)size) == 0);
    tn_tensor_release(&dense);
}

static void require_sound(const tn_tensor *t)
{
    int64_t elements = -1, product = 1, size;
    uint64_t bytes = 0;
    tn_device *device = NULL;
    tn_error err;
    require(t->ndim >= 0 && t->ndim <= TN_TENSOR_NDIM_MAX && (t->dtype >> 16) == 1);
    require(!(t->flags & ~(TN_TENSOR_READ_ONLY | TN_TENSOR_COPIED)));
    require(tn_tensor_device(t, &device, &err) == TN_OK && device);
    require(tn_tensor_elements(t, &elements, &err) == TN_OK);
    require(tn_tensor_bytes(t, &bytes, &err) == TN_OK);
    for (int32_t i = 0; i < t->ndim; i++)
        product = t->shape[i] == 0 || product == 0 ? 0 : product * t->shape[i];
    size = (int64_t)(t->dtype >> 8 & 0xFF) / 8;
    require(elements == product && bytes == (uint64_t)elements * (uint64_t)size);
    require(t->strides || tn_tensor_is_dense(t));
    require(t->byte_offset <= INT64_MAX);
    if (elements > 0 && t->device_type == TN_DLPACK_CPU)
        require(((uintptr_t)t->data + t->byte_offset) %
                    (uint64_t)((t->dtype & 0xFF) == TN_DTYPE_CODE_COMPLEX ? size / 2 : size) ==
                0);
    if (elements > 0 && elements <= 4096 && is_inside(t, size))
        require_copy(t, elements, size);
}

static void require_round_trip(const tn_tensor *t)
{
    tn_dlpack_versioned *given = NULL;
    tn_dlpack_managed *legacy = NULL;
    tn_tensor back = {0};
    tn_error err;
    require(tn_dlpack_export(t, -1, &given, &err) == TN_OK);
    require(given->tensor.ndim == 0 ||
            memcmp(given->tensor.shape, t->shape, (size_t)t->ndim * sizeof *t->shape) == 0);
    require(tn_dlpack_import(given, &back, &err) == TN_OK);
    require(back.flags == t->flags && tn_tensor_is_dense(&back) == tn_tensor_is_dense(t));
    tn_tensor_release(&back);
    tn_status status = tn_dlpack_export_legacy(t, -1, &legacy, &err);
    require(status == (t->flags & TN_TENSOR_READ_ONLY ? TN_REFUSED : TN_OK));
    if (!status)
        legacy->deleter(legacy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    tn_tensor tensor, before;
    tn_error err = {0};
    producer p;
    produce(&in, &p);
    memset(&before, 0x5a, sizeof before);
    tensor = before;
    tn_status status = p.is_versioned ? tn_dlpack_import(&p.versioned, &tensor, &err)
                                      : tn_dlpack_import_legacy(&p.legacy, &tensor, &err);
    if (status) {
        require(status == TN_INVALID_ARGUMENT || status == TN_UNAVAILABLE ||
                (status == TN_INCOMPATIBLE && p.is_versioned && p.versioned.major != 1));
        require(err.status == status && err.message[0]);
        require(memcmp(&tensor, &before, sizeof tensor) == 0);
    } else {
        require(p.ends == 0);
        require_sound(&tensor);
        require_round_trip(&tensor);
        require(p.ends == 0);
        tn_tensor_release(&tensor);
    }
    require(p.ends == p.ends_wanted);
    return 0;
}
