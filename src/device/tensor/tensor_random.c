/* Tensors of random numbers: in place in the host's memory, and copied anywhere else. */
#include "tensor.h"

#include "device/random/generators.h"
#include "device/random/philox.h"

typedef tn_status fill_fn(tn_generator *generator, tn_dtype dtype, void *out, int64_t count,
                          tn_error *err);

/* One call, for messages and for both ways. */
typedef struct draw {
    const char *where;
    fill_fn *fill;
} draw;

/* Elements that go through the host at a time: a multiple of those of a block, so that a fill in parts
 * is a fill. */
enum { PART = 1 << 18 };

/* A generator of the call's own that begins where `generator` stands, which moves on past all that
 * the call will take: at once, as any fill's blocks are taken. */
static tn_status take(tn_generator *generator, int64_t elements, int64_t size, tn_generator *out,
                      tn_error *err)
{
    uint64_t in_block = size == 8 ? TN_PHILOX_WORDS / 2 : TN_PHILOX_WORDS;
    uint64_t blocks = ((uint64_t)elements + in_block - 1) / in_block;
    tn_generator_state state = tni_generators_take(generator, blocks);
    return tn_generator_state_set(out, &state, err);
}

/* Where a part is made and goes through. */
typedef struct passage {
    tn_device *device;
    tn_generator *generator;
    void *host;
    bool is_read; /* by a copy that was queued and could not be waited for */
} passage;

static tn_status send_parts(const draw *d, passage *p, const tn_tensor *tensor,
                            const tni_layout *layout, tn_error *err)
{
    tn_stream *stream = tn_stream_current(p->device);
    tn_status status = TN_OK;
    for (int64_t done = 0; done < layout->elements && !status; done += PART) {
        int64_t left = layout->elements - done, count = left < PART ? left : PART;
        const tn_memory_copy_args args = {
            .struct_size = sizeof args,
            .to_device = p->device,
            .to = (char *)tni_tensor_first(tensor) + done * layout->size,
            .from = p->host,
            .bytes = (uint64_t)(count * layout->size),
            .stream = stream,
        };
        status = d->fill(p->generator, tensor->dtype, p->host, count, err);
        if (!status)
            status = tn_memory_copy(&args, err);
        if (!status) {
            status = tn_stream_synchronize(stream, err);
            p->is_read = status != TN_OK;
        }
    }
    return status;
}

static tn_status send(const draw *d, tn_generator *generator, tn_device *device,
                      const tn_tensor *tensor, const tni_layout *layout, tn_error *err)
{
    int64_t part = layout->elements < PART ? layout->elements : PART;
    passage p = {.device = device};
    tn_status status = tn_generator_create(0, &p.generator, err);
    if (!status)
        status =
            tn_memory_host_alloc(device, (uint64_t)(part * layout->size), "random", &p.host, err);
    if (!status)
        status = take(generator, layout->elements, layout->size, p.generator, err);
    if (!status)
        status = send_parts(d, &p, tensor, layout, err);
    if (!p.is_read) /* else it stays, until the device's memory ends */
        tn_memory_host_free(device, p.host);
    tn_generator_release(p.generator);
    return status;
}

static tn_status fill(const draw *d, tn_generator *generator, const tn_tensor *tensor,
                      tn_error *err)
{
    tni_layout layout;
    tn_device *device;
    tn_status status = tni_tensor_measure(tensor, d->where, "tensor", &layout, err);
    if (!status && !layout.dense)
        status = tn_fail(err, TN_UNSUPPORTED, 0, d->where,
                         "tensor: strides are not dense; fill a dense tensor and copy it");
    if (!status)
        status = tni_tensor_writable(tensor, d->where, "tensor", err);
    if (!status)
        status = tni_tensor_device_of(tensor, d->where, &device, err);
    if (!status) /* of nothing: says whether there are such numbers */
        status = d->fill(NULL, tensor->dtype, NULL, 0, err);
    if (status || layout.elements == 0)
        return status;
    if (!generator)
        generator = tn_device_generator(device);
    if (tni_memory_is_host(device))
        return d->fill(generator, tensor->dtype, tni_tensor_first(tensor), layout.elements, err);
    return send(d, generator, device, tensor, &layout, err);
}

tn_status tn_random_uniform(tn_generator *generator, const tn_tensor *tensor, tn_error *err)
{
    return fill(&(draw){"tn_random_uniform", tn_random_fill_uniform}, generator, tensor, err);
}

tn_status tn_random_normal(tn_generator *generator, const tn_tensor *tensor, tn_error *err)
{
    return fill(&(draw){"tn_random_normal", tn_random_fill_normal}, generator, tensor, err);
}
