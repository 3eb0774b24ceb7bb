/* Tensors of random numbers: generated in place in host memory, by the platform, or on the host and
 * copied. */
#include "tensor.h"

#include "device/graph/graph.h"
#include "device/random/generators.h"
#include "device/random/philox.h"

typedef tn_status fill_fn(tn_generator *generator, tn_dtype dtype, void *out, int64_t count,
                          tn_error *err);

/* Parameters of one call. */
typedef struct draw {
    const char *where;
    fill_fn *fill;
    int32_t kind; /* TN_RANDOM_... */
} draw;

/* Elements per part that is copied through the host: a multiple of those of a block, so that a fill
 * in parts gives the same numbers as one fill. */
enum { PART = 1 << 18 };

/* Returns the state of `generator` and advances it past everything that the call needs, in one
 * step, as for any fill. */
static tn_generator_state advance_generator(tn_generator *generator, const tni_layout *layout)
{
    uint64_t in_block = layout->size == 8 ? TN_PHILOX_WORDS / 2 : TN_PHILOX_WORDS;
    uint64_t blocks = ((uint64_t)layout->elements + in_block - 1) / in_block;
    return tni_generators_advance(generator, blocks);
}

/* State of a fill through the host. */
typedef struct passage {
    tn_device *device;
    tn_generator *generator;
    void *host;
    bool is_read; /* a queued copy that could not be waited for may still read `host` */
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

/* Fills through the host, from `state` on; NULL: from the generator's state. */
static tn_status fill_through_host(const draw *d, tn_generator *generator,
                                   const tn_generator_state *state, tn_device *device,
                                   const tn_tensor *tensor, const tni_layout *layout, tn_error *err)
{
    tn_generator_state taken;
    int64_t part = layout->elements < PART ? layout->elements : PART;
    passage p = {.device = device};
    tn_status status = tn_generator_create(0, &p.generator, err);
    if (!status)
        status =
            tn_memory_host_alloc(device, (uint64_t)(part * layout->size), "random", &p.host, err);
    if (!status) {
        taken = state ? *state : advance_generator(generator, layout);
        status = tn_generator_state_set(p.generator, &taken, err);
    }
    if (!status)
        status = send_parts(d, &p, tensor, layout, err);
    if (!p.is_read) /* else it is kept until the device's memory is destroyed */
        tn_memory_host_free(device, p.host);
    tn_generator_release(p.generator);
    return status;
}

/* Fills on the platform if it can; otherwise through the host, with the same numbers. */
static tn_status make_there(const draw *d, tn_generator *generator, tn_device *device,
                            const tn_tensor *tensor, const tni_layout *layout, tn_error *err)
{
    tn_error said = {0};
    tn_stream *stream;
    tni_call call;
    tn_status status = tni_device_open(device, d->where, &call, err);
    if (!status && !call.row->random)
        return fill_through_host(d, generator, NULL, device, tensor, layout, err);
    if (!status)
        status = tni_stream_for(NULL, device, d->where, &stream, err);
    if (status)
        return status;
    const tn_generator_state state = advance_generator(generator, layout);
    const tn_random_job job = {.struct_size = sizeof job,
                               .to = tni_tensor_first(tensor),
                               .elements = layout->elements,
                               .seed = state.seed,
                               .subsequence = state.subsequence,
                               .block = state.offset,
                               .dtype = tensor->dtype,
                               .kind = d->kind,
                               .device = call.device,
                               .stream = stream->native};
    bool aligned = (uintptr_t)job.to % (uintptr_t)layout->size == 0;
    status = aligned ? call.row->random(call.self, &job, &said) : TN_UNSUPPORTED;
    if (status == TN_UNSUPPORTED || status == TN_UNAVAILABLE)
        return fill_through_host(d, generator, &state, device, tensor, layout, err);
    return tni_device_result_check(&call, d->where, status, &said, err);
}

static tn_status refuse_recorded(tn_stream *stream, const char *where, tn_error *err)
{
    static const char why[] = "each run of the graph would repeat the same random numbers";
    return tni_graph_any() && tn_graph_is_recording(stream)
               ? tni_graph_reject(stream, where, why, err)
               : tni_capture_reject(stream, where, why, err);
}

static tn_status fill_tensor(const draw *d, tn_generator *generator, const tn_tensor *tensor,
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
    if (!status) /* an empty fill, to check that the dtype is supported */
        status = d->fill(NULL, tensor->dtype, NULL, 0, err);
    if (status || layout.elements == 0)
        return status;
    status = refuse_recorded(tn_stream_current(device), d->where, err);
    if (status)
        return status;
    if (!generator)
        generator = tn_device_generator(device);
    if (tni_memory_is_host(device))
        return d->fill(generator, tensor->dtype, tni_tensor_first(tensor), layout.elements, err);
    return make_there(d, generator, device, tensor, &layout, err);
}

tn_status tn_random_uniform(tn_generator *generator, const tn_tensor *tensor, tn_error *err)
{
    return fill_tensor(&(draw){"tn_random_uniform", tn_random_fill_uniform, TN_RANDOM_UNIFORM},
                       generator, tensor, err);
}

tn_status tn_random_normal(tn_generator *generator, const tn_tensor *tensor, tn_error *err)
{
    return fill_tensor(&(draw){"tn_random_normal", tn_random_fill_normal, TN_RANDOM_NORMAL},
                       generator, tensor, err);
}
