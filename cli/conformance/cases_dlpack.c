/* DLPack: tensors to and from other libraries. */
#include "block.h"
#include "suite.h"
#include "tensors.h"

static const int64_t shape[] = {6, 50};
enum { BYTES = 6 * 50 * 4 };

/* Export and import: same data, same device, and alive until the last owner releases it. */
static bool round_trip(trial *t)
{
    block memory;
    tn_tensor *x = NULL, *back = NULL;
    tn_dlpack_versioned *managed = NULL;
    tn_device *device = NULL;
    return block_make(t, t->device, BYTES, &memory) &&
           tensor_over(t, t->device, memory.at, TN_F32, shape, NULL, 2, &x) &&
           tensor_empty(t, &back) && DO(t, tn_dlpack_export(x, -1, &managed, &t->err)) &&
           EQUAL(t, managed->major, TN_DLPACK_VERSION_MAJOR) && EQUAL(t, managed->tensor.ndim, 2) &&
           HOLDS(t, managed->tensor.strides != NULL && managed->tensor.strides[0] == 50) &&
           DO(t, tn_dlpack_import(managed, back, &t->err)) && SAME(t, back->data, memory.at) &&
           DO(t, tn_tensor_device(back, &device, &t->err)) && SAME(t, device, t->device) &&
           EQUAL(t, back->dtype, TN_F32) && block_check(t, &memory, "exported memory");
}

static bool legacy(trial *t)
{
    block memory;
    tn_tensor *x = NULL, *back = NULL;
    tn_dlpack_managed *managed = NULL;
    tn_device *device = NULL;
    return block_make(t, t->device, BYTES, &memory) &&
           tensor_over(t, t->device, memory.at, TN_F32, shape, NULL, 2, &x) &&
           tensor_empty(t, &back) && DO(t, tn_dlpack_export_legacy(x, -1, &managed, &t->err)) &&
           DO(t, tn_dlpack_import_legacy(managed, back, &t->err)) &&
           SAME(t, back->data, memory.at) && DO(t, tn_tensor_device(back, &device, &t->err)) &&
           SAME(t, device, t->device);
}

/* The data lives until the exported DLPack tensor is deleted. */
static bool keeps_alive(trial *t)
{
    tn_memory_stats before = {.struct_size = sizeof before}, after = before;
    tn_tensor x = {0};
    tn_dlpack_versioned *managed = NULL;
    if (!DO(t, tn_memory_stats_get(t->device, &before, &t->err)) ||
        !DO(t, tn_tensor_create(t->device, TN_F32, shape, 2, &x, &t->err)))
        return false;
    bool held = DO(t, tn_dlpack_export(&x, -1, &managed, &t->err));
    tn_tensor_release(&x);
    if (!held || !DO(t, tn_memory_stats_get(t->device, &after, &t->err)) ||
        !EQUAL(t, after.count, before.count + 1))
        return false;
    managed->deleter(managed);
    return DO(t, tn_memory_stats_get(t->device, &after, &t->err)) &&
           EQUAL(t, after.count, before.count);
}

static bool read_only(trial *t)
{
    tn_tensor *x = NULL, *back = NULL;
    tn_dlpack_versioned *managed = NULL;
    tn_dlpack_managed *old = NULL;
    return tensor_make(t, t->device, TN_F32, shape, 2, &x) && tensor_empty(t, &back) &&
           (x->flags |= TN_TENSOR_READ_ONLY, true) &&
           REFUSES(t, TN_REFUSED, tn_dlpack_export_legacy(x, -1, &old, &t->err)) &&
           SAME(t, old, NULL) && DO(t, tn_dlpack_export(x, -1, &managed, &t->err)) &&
           DO(t, tn_dlpack_import(managed, back, &t->err)) &&
           HOLDS(t, back->flags & TN_TENSOR_READ_ONLY);
}

/* A tensor from another library; its deleter counts its calls. */
typedef struct foreign {
    tn_dlpack_versioned managed;
    int64_t dims[2];
    int ended;
} foreign;

static void count_end(tn_dlpack_versioned *self)
{
    ((foreign *)self->manager)->ended++;
}

/* Uses memory of the trial's device, and the DLPack device numbers that Tenon exports. */
static bool make_foreign(trial *t, foreign *out)
{
    tn_tensor *x = NULL;
    if (!tensor_make(t, t->device, TN_F32, shape, 2, &x))
        return false;
    *out = (foreign){.managed = {.major = TN_DLPACK_VERSION_MAJOR,
                                 .deleter = count_end,
                                 .tensor = {.data = x->data,
                                            .device_type = x->device_type,
                                            .device_id = x->device_id,
                                            .ndim = 2,
                                            .dtype = TN_F32}},
                     .dims = {6, 50}};
    out->managed.manager = out;
    out->managed.tensor.shape = out->dims;
    return true;
}

static bool deleter_once(trial *t)
{
    foreign f;
    tn_tensor taken = {0}, view = {0};
    if (!make_foreign(t, &f) || !DO(t, tn_dlpack_import(&f.managed, &taken, &t->err)))
        return false;
    bool held = DO(t, tn_tensor_view(&taken, &view, &t->err)) && EQUAL(t, f.ended, 0);
    tn_tensor_release(&taken);
    held = held && EQUAL(t, f.ended, 0);
    tn_tensor_release(&view);
    tn_tensor_release(&view);
    return held && EQUAL(t, f.ended, 1);
}

/* Checks that the import is refused and that the deleter is called at once. */
static bool check_refused(trial *t, foreign *f, tn_status expected)
{
    tn_tensor out = {.ndim = 77};
    f->ended = 0;
    return REFUSES(t, expected, tn_dlpack_import(&f->managed, &out, &t->err)) &&
           EQUAL(t, f->ended, 1) && EQUAL(t, out.ndim, 77);
}

static bool refusals(trial *t)
{
    foreign good, bad;
    if (!make_foreign(t, &good))
        return false;
    bad = good, bad.managed.manager = &bad, bad.managed.tensor.shape = bad.dims;
    bad.managed.major = TN_DLPACK_VERSION_MAJOR + 1;
    if (!check_refused(t, &bad, TN_INCOMPATIBLE))
        return false;
    bad.managed.major = TN_DLPACK_VERSION_MAJOR;
    bad.managed.tensor.dtype = TN_DTYPE(TN_DTYPE_CODE_FLOAT, 32, 4);
    if (!check_refused(t, &bad, TN_INVALID_ARGUMENT))
        return false;
    bad.managed.tensor.dtype = TN_F32;
    bad.dims[1] = -1;
    if (!check_refused(t, &bad, TN_INVALID_ARGUMENT))
        return false;
    bad.dims[1] = 50;
    bad.managed.tensor.ndim = -1;
    if (!check_refused(t, &bad, TN_INVALID_ARGUMENT))
        return false;
    bad.managed.tensor.ndim = 2;
    bad.managed.tensor.device_id = 4711;
    return check_refused(t, &bad, TN_UNAVAILABLE);
}

/* The consumer's stream waits for the work queued on the current stream. */
static bool stream_order(trial *t)
{
    enum { BIG = 4 << 20 };
    static const int64_t big[] = {BIG};
    block memory, here;
    tn_stream *producer = NULL, *consumer = NULL;
    tn_tensor *x = NULL;
    tn_dlpack_versioned *managed = NULL;
    if (!block_make(t, t->device, BIG, &memory) || !block_make(t, NULL, BIG, &here) ||
        !trial_stream(t, t->device, &producer) || !trial_stream(t, t->device, &consumer) ||
        !tensor_over(t, t->device, memory.at, TN_U8, big, NULL, 1, &x) ||
        !DO(t, tn_stream_set(producer, &t->err)) || !block_fill_often(t, &memory, 16, producer))
        return false;
    if (!DO(t, tn_dlpack_export(x, (int64_t)tn_stream_raw(consumer), &managed, &t->err)))
        return false;
    managed->deleter(managed);
    return block_copy(t, &memory, 0, &here, 0, BIG, consumer) &&
           DO(t, tn_stream_synchronize(consumer, &t->err)) &&
           block_check(t, &here, "data copied by the consumer's stream") &&
           DO(t, tn_stream_set(tn_stream_default(t->device), &t->err));
}

const suite_case cases_dlpack[] = {
    {"dlpack.round-trip", "export and import return the same data without a copy", round_trip, 0},
    {"dlpack.legacy", "the same for the unversioned form", legacy, 0},
    {"dlpack.alive", "data stays valid until the exported tensor is deleted", keeps_alive, 0},
    {"dlpack.read-only",
     "a read-only tensor stays read-only; the unversioned form, which cannot express it, is an "
     "error",
     read_only, 0},
    {"dlpack.deleter-once", "the deleter is called once, with the last view", deleter_once, 0},
    {"dlpack.refusals", "an invalid tensor is an error, and its deleter is called once", refusals,
     0},
    {"dlpack.stream", "the consumer's stream waits for queued work", stream_order, 0},
    {0},
};
