#include "toy.h"

#include "base/alloc.h"
#include "tenon/module/platform.h"

toy_state toy;

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    (void)host, (void)err;
    *out_self = &toy;
    *out_devices = 1;
    return TN_OK;
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device;
    *out = tni_alloc_aligned((size_t)bytes, 64);
    return *out ? TN_OK : tn_fail(err, TN_OUT_OF_MEMORY, 0, "toy", "no memory");
}

static void memory_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device;
    tni_release(memory);
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)err;
    uint64_t rows = job->rows > 0 ? job->rows : 1;
    for (uint64_t i = 0; i < rows; i++)
        memcpy((char *)job->to + i * job->to_pitch, (const char *)job->from + i * job->from_pitch,
               (size_t)job->bytes);
    return TN_OK;
}

static tn_status stream_create(void *self, int32_t device, const tn_stream_spec *spec, void **out,
                               tn_error *err)
{
    (void)self, (void)device, (void)spec;
    *out = malloc(1);
    return *out ? TN_OK : tn_fail(err, TN_OUT_OF_MEMORY, 0, "toy", "no memory");
}

static void stream_destroy(void *self, int32_t device, void *stream)
{
    (void)self, (void)device;
    free(stream);
}

static tn_status stream_query(void *self, int32_t device, void *stream, int32_t *out_done,
                              tn_error *err)
{
    (void)self, (void)device, (void)stream, (void)err;
    *out_done = 1;
    return TN_OK;
}

static tn_status stream_synchronize(void *self, int32_t device, void *stream, tn_error *err)
{
    (void)self, (void)device, (void)stream;
    atomic_fetch_add(&toy.syncs, 1);
    return toy.lose ? tn_fail(err, TN_DEVICE_LOST, 7, "toySync", "a kernel read where nothing is")
                    : TN_OK;
}

static tn_status stream_wait(void *self, int32_t device, void *stream, void *event, tn_error *err)
{
    (void)self, (void)device, (void)stream, (void)event, (void)err;
    return TN_OK;
}

static tn_status device_synchronize(void *self, int32_t device, tn_error *err)
{
    return stream_synchronize(self, device, NULL, err);
}

static tn_status event_create(void *self, int32_t device, const tn_event_spec *spec, void **out,
                              tn_error *err)
{
    (void)spec;
    return stream_create(self, device, NULL, out, err);
}

static tn_status event_record(void *self, int32_t device, void *event, void *stream, tn_error *err)
{
    (void)self, (void)device, (void)event, (void)stream, (void)err;
    return TN_OK;
}

static tn_status event_synchronize(void *self, int32_t device, void *event, tn_error *err)
{
    (void)self, (void)device, (void)event, (void)err;
    return TN_OK;
}

static tn_status event_elapsed(void *self, int32_t device, void *start, void *stop, double *out_ms,
                               tn_error *err)
{
    (void)self, (void)device, (void)start, (void)stop, (void)err;
    *out_ms = 0;
    return TN_OK;
}

static tn_status device_reset(void *self, int32_t device, tn_error *err)
{
    (void)self, (void)device, (void)err;
    toy.lose = false;
    return TN_OK;
}

static const tn_platform_row platform = {.struct_size = sizeof platform,
                                         .name = "toy",
                                         .kind = TN_PLATFORM_OOT,
                                         .flags = TN_PLATFORM_FORK_SAFE,
                                         .probe = probe,
                                         .memory_alloc = memory_alloc,
                                         .memory_free = memory_free,
                                         .copy = copy,
                                         .stream_create = stream_create,
                                         .stream_destroy = stream_destroy,
                                         .stream_query = stream_query,
                                         .stream_synchronize = stream_synchronize,
                                         .stream_wait = stream_wait,
                                         .device_synchronize = device_synchronize,
                                         .event_create = event_create,
                                         .event_destroy = stream_destroy,
                                         .event_record = event_record,
                                         .event_query = stream_query,
                                         .event_synchronize = event_synchronize,
                                         .event_elapsed = event_elapsed,
                                         .device_reset = device_reset};

static double get(const void *data, tn_dtype dtype, int64_t at)
{
    return dtype == TN_F64 ? ((const double *)data)[at] : (double)((const float *)data)[at];
}

static void put(void *data, tn_dtype dtype, int64_t at, double value)
{
    if (dtype == TN_F64)
        ((double *)data)[at] = value;
    else
        ((float *)data)[at] = (float)value;
}

/* Of matrices alone: the toy refuses batches. */
static tn_status run(const tn_run *r, tn_error *err)
{
    const tn_matmul_op *mm = tn_op_matmul(r->op);
    const tn_layout *a = &r->op->operand[TN_MATMUL_A], *b = &r->op->operand[TN_MATMUL_B];
    const tn_layout *out = &r->op->operand[TN_MATMUL_OUT];
    tn_status fails = atomic_exchange(&toy.fails, TN_OK);
    bool lie = toy.lies > 0 && atomic_fetch_sub(&toy.lies, 1) > 0;
    atomic_fetch_add(&toy.runs, 1);
    atomic_fetch_add(&toy.slow_runs, strcmp(r->row->name, "toy.matmul.slow") == 0);
    toy.last = r->row->name;
    toy.last_workspace = r->workspace;
    if (fails)
        return tn_fail(err, fails, 3, "toyGemm", "the toy gave 3");
    const void *from = r->packed ? r->packed : r->data[1];
    atomic_fetch_add(&toy.packed_runs, r->packed != NULL);
    for (int64_t i = 0; i < mm->m; i++) {
        for (int64_t j = 0; j < mm->n; j++) {
            double sum = lie;
            for (int64_t p = 0; p < mm->k; p++)
                sum += get(r->data[0], a->dtype, i * a->stride[0] + p * a->stride[1]) *
                       get(from, b->dtype, p * b->stride[0] + j * b->stride[1]);
            put(r->data[2], out->dtype, i * out->stride[0] + j * out->stride[1], sum);
        }
    }
    return TN_OK;
}

static tn_status run_many(const tn_run *runs, size_t count, size_t *out_failed, tn_error *err)
{
    tn_status status = TN_OK;
    atomic_fetch_add(&toy.many_runs, 1);
    if (atomic_load(&toy.fails_at) < 0) {
        *out_failed = count;
        return tn_fail(err, TN_INTERNAL, 6, "toyMany", "the toy gave 6");
    }
    for (size_t i = 0; i < count && !status; i++) {
        assert_ptr_equal(runs[i].workspace, runs[0].workspace);
        if (i + 1 == (size_t)atomic_load(&toy.fails_at))
            atomic_store(&toy.fails, TN_INTERNAL);
        *out_failed = i;
        status = run(&runs[i], err);
    }
    return status;
}

static tn_status admit(const tn_kernel_row *row, const tn_query *q, tn_refusal *why)
{
    int64_t k = tn_op_matmul(q->op)->k;
    (void)row;
    return k % 4 == 0 ? TN_OK : tn_refuse(why, TN_REFUSE_SHAPE, "k", k + 4 - k % 4, k);
}

static uint64_t workspace(const tn_kernel_row *row, const tn_query *q)
{
    (void)row, (void)q;
    return 4096;
}

static tn_status plan(const tn_run *r, void **out, uint64_t *out_bytes, tn_error *err)
{
    tn_status fails = atomic_exchange(&toy.plan_fails, TN_OK);
    if (atomic_exchange(&toy.plan_invalidates, false))
        tni_dispatch_invalidate();
    (void)r;
    if (fails)
        return tn_fail(err, fails, 5, "toyPlan", "the toy gave 5");
    *out = malloc(1);
    if (!*out)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "toy", "no memory");
    *out_bytes = 1000;
    atomic_fetch_add(&toy.plans, 1);
    atomic_fetch_add(&toy.plans_made, 1);
    return TN_OK;
}

static void plan_release(const tn_run *r, void *made)
{
    (void)r;
    atomic_fetch_sub(&toy.plans, 1);
    free(made);
}

static double cost(const tn_kernel_row *row, const tn_query *q)
{
    (void)row;
    assert_int_equal(q->op->operand[TN_MATMUL_A].dtype, TN_F32);
    atomic_fetch_add(&toy.cost_asked, 1);
    return atomic_load(&toy.cost_us);
}

/* B of a dense op, as it is. */
static tn_status pack(const tn_run *r, void **out, uint64_t *out_bytes, tn_error *err)
{
    const tn_matmul_op *mm = tn_op_matmul(r->op);
    const size_t bytes = (size_t)(mm->n * mm->k) * sizeof(float);
    tn_status fails = atomic_exchange(&toy.pack_fails, TN_OK);
    assert_null(r->data[0]);
    assert_null(r->data[2]);
    if (fails)
        return tn_fail(err, fails, 4, "toyPack", "the toy gave 4");
    *out = malloc(bytes);
    if (!*out)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "toy", "no memory");
    memcpy(*out, r->data[1], bytes);
    *out_bytes = bytes;
    atomic_fetch_add(&toy.packs, 1);
    return TN_OK;
}

static void pack_release(const tn_run *r, void *made)
{
    (void)r;
    atomic_fetch_sub(&toy.packs, 1);
    free(made);
}

static const tn_dtype f32[] = {TN_F32, 0}, floats[] = {TN_F32, TN_F64, 0};
enum { PLAIN = TN_MATMUL_USES_TRANSPOSE | TN_MATMUL_USES_STRIDES | TN_MATMUL_USES_BROADCAST };

#define KERNEL(word, ...)                                           \
    static const tn_kernel_row word = {.struct_size = sizeof word,  \
                                       .name = "toy.matmul." #word, \
                                       .platform = "toy",           \
                                       .op = TN_OP_MATMUL,          \
                                       .version = 1,                \
                                       .honours = PLAIN,            \
                                       .bytes_per_us = 1e6,         \
                                       .run = run,                  \
                                       __VA_ARGS__}
KERNEL(tf32, .dtypes = f32, .numerics = TN_NUM_ROUNDS_F32_TF32, .flops_per_us = 1e6);
KERNEL(fast, .dtypes = f32, .flops_per_us = 1e4, .admit = admit, .workspace = workspace,
       .plan = plan, .plan_release = plan_release, .free_dims = TN_MATMUL_DIM_M | TN_MATMUL_DIM_N,
       .cost = cost, .pack = pack, .pack_release = pack_release, .run_many = run_many);
KERNEL(slow, .dtypes = floats, .numerics = TN_NUM_RUN_TO_RUN, .flops_per_us = 1e2);

static const tn_platform_row *const platforms[] = {&platform, NULL};
static const tn_kernel_row *const kernels[] = {&slow, &tf32, &fast, NULL};
static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "toy",
                                 .version = "1",
                                 .platforms = platforms,
                                 .kernels = kernels};

static tn_status entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

tn_device *toy_device(void)
{
    static tn_registration *registration;
    tn_device *device = NULL;
    tn_error err;
    if (!registration) {
        assert_int_equal(tn_module_register(entry, 0, &registration, &err), TN_OK);
        assert_int_equal(tn_settings_set("admission=never", &err), TN_OK);
    }
    assert_int_equal(tn_device_get("toy:0", &device, &err), TN_OK);
    return device;
}

tn_tensor toy_tensor(tn_device *device, tn_dtype dtype, int64_t rows, int64_t columns, int seed)
{
    const int64_t shape[] = {rows, columns};
    tn_tensor made = {0};
    tn_error err;
    assert_int_equal(tn_tensor_create(device, dtype, shape, 2, &made, &err), TN_OK);
    for (int64_t i = 0; i < rows * columns; i++)
        put(made.data, dtype, i, (double)((i * 7 + seed) % 11 - 5));
    return made;
}

const char *toy_choice(const tn_context *context, const char *problem)
{
    tn_decision *decision = NULL;
    tn_error err;
    assert_int_equal(tn_explain(context, problem, &decision, &err), TN_OK);
    const tn_candidate *chosen = tn_decision_chosen(decision);
    const char *name = chosen ? chosen->kernel : "";
    tn_decision_release(decision);
    return name;
}

tn_context *toy_with(const char *setting)
{
    tn_change change;
    tn_context *made = NULL;
    tn_error err;
    assert_int_equal(tn_setting_parse(setting, &change, &err), TN_OK);
    assert_int_equal(tn_context_derive(NULL, &change, 1, &made, &err), TN_OK);
    return made;
}
