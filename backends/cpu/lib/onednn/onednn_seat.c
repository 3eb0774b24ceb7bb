#include "onednn_primitive.h"

#include "tenon/module/op.h"
#include "tenon/module/op/matmul.h"

enum { ALIGNMENT = 64, SCRATCH = TN_MATMUL_BIAS + 1, MEMORIES = SCRATCH + 1 };

struct tni_dnnl_seat {
    void *stream;
    void *scratch;
    size_t count;
    void *memory[][MEMORIES]; /* of each primitive, in the order of the operands; or NULL */
};

static int make_memories(const tni_dnnl *dnnl, const tni_dnnl_primitive *p, void *scratch,
                         void **out)
{
    const void *const layouts[MEMORIES] = {[TN_MATMUL_A] = p->a.at,
                                           [TN_MATMUL_B] = p->b.at,
                                           [TN_MATMUL_OUT] = p->out.at,
                                           [TN_MATMUL_BIAS] = p->bias.at,
                                           [SCRATCH] = p->scratch_bytes ? p->scratch : NULL};
    int code = TNI_DNNL_OK;
    for (int i = 0; i < MEMORIES && !code; i++) {
        if (layouts[i])
            code = dnnl->memory_create(&out[i], layouts[i], dnnl->engine,
                                       i == SCRATCH ? scratch : NULL);
    }
    return code;
}

static size_t most_scratch(const tni_dnnl_primitive *primitives, size_t count)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = primitives[i].scratch_bytes > most ? primitives[i].scratch_bytes : most;
    return most;
}

tni_dnnl_seat *tni_dnnl_seat_make(const tni_dnnl *dnnl, const tn_host *host,
                                  const tni_dnnl_primitive *primitives, size_t count)
{
    enum { IN_ORDER = 1 };
    size_t bytes = sizeof(tni_dnnl_seat) + count * sizeof(void *[MEMORIES]);
    size_t scratch = most_scratch(primitives, count);
    tni_dnnl_seat *seat = host->alloc(host->self, bytes, sizeof(void *));
    if (!seat)
        return NULL;
    memset(seat, 0, bytes);
    seat->count = count;
    if (scratch > 0 && !(seat->scratch = host->alloc(host->self, scratch, ALIGNMENT)))
        goto fail;
    if (dnnl->stream_create(&seat->stream, dnnl->engine, IN_ORDER))
        goto fail;
    for (size_t i = 0; i < count; i++) {
        if (make_memories(dnnl, &primitives[i], seat->scratch, seat->memory[i]))
            goto fail;
    }
    return seat;

fail:
    tni_dnnl_seat_release(dnnl, host, seat);
    return NULL;
}

void tni_dnnl_seat_release(const tni_dnnl *dnnl, const tn_host *host, tni_dnnl_seat *seat)
{
    if (!seat)
        return;
    for (size_t i = 0; i < seat->count * MEMORIES; i++) {
        void *memory = seat->memory[i / MEMORIES][i % MEMORIES];
        if (memory)
            (void)dnnl->memory_destroy(memory);
    }
    if (seat->stream)
        (void)dnnl->stream_destroy(seat->stream);
    host->release(host->self, seat->scratch);
    host->release(host->self, seat);
}

/* oneDNN has finished when it returns: CPU streams compute on the calling thread. */
int tni_dnnl_seat_compute(const tni_dnnl *dnnl, tni_dnnl_seat *seat,
                          const tni_dnnl_primitive *primitive, size_t index, void *const data[4])
{
    static const int numbers[MEMORIES] = {[TN_MATMUL_A] = TNI_DNNL_ARG_A,
                                          [TN_MATMUL_B] = TNI_DNNL_ARG_B,
                                          [TN_MATMUL_OUT] = TNI_DNNL_ARG_OUT,
                                          [TN_MATMUL_BIAS] = TNI_DNNL_ARG_BIAS,
                                          [SCRATCH] = TNI_DNNL_ARG_SCRATCH};
    tni_dnnl_argument arguments[MEMORIES];
    int count = 0, code = TNI_DNNL_OK;
    for (int i = 0; i < MEMORIES && !code; i++) {
        void *memory = seat->memory[index][i];
        if (!memory)
            continue;
        arguments[count++] = (tni_dnnl_argument){numbers[i], memory};
        if (i != SCRATCH)
            code = dnnl->memory_set(memory, data[i]);
    }
    return code ? code : dnnl->primitive_execute(primitive->handle, seat->stream, count, arguments);
}
