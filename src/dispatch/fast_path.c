/* The fast path. Most calls of a program repeat an earlier call on other data. A thread remembers
 * its latest calls by the raw words of their arguments, with the validated problem and its plan.
 * Properties that depend on the data's address are checked each time: the alignment, as far as
 * kernels distinguish it, is part of the words, and calls with operands close to the output take
 * the normal path. */
#include "fast_path.h"

#include "base/alloc.h"
#include "base/epoch.h"
#include "device/graph/graph.h"
#include "device/tensor/tensor.h"
#include "judge.h"
#include "plan.h"
#include "settings/context.h"
#include "tenon/module/op/elementwise.h"
#include "tenon/stream.h"
#include "thread_state.h"

enum {
    CALLS = 64,
    TENSOR_WORDS = 3 + 2 * TN_OP_RANK_MAX,
    WORDS_MOST = 2 + TN_OP_OPERANDS_MAX * TENSOR_WORDS + 8 + TN_OP_RANK_MAX
};

/* The key of a call. */
typedef struct signature {
    const tn_tensor *tensors[TN_OP_OPERANDS_MAX];
    size_t count;
    uint64_t hash;
    uint64_t words[WORDS_MOST];
} signature;

/* One remembered call. */
typedef struct memory {
    tni_plan *plan;
    int32_t uses;   /* nested calls of this thread that are running it now */
    bool plain;     /* tni_plan_is_plain */
    uint64_t epoch; /* tni_epoch_now before the plan was chosen */
    tni_call call;  /* the opened device */
    int64_t low[TN_OP_OPERANDS_MAX], high[TN_OP_OPERANDS_MAX]; /* bytes from the first element */
    tni_problem problem;
    size_t count;
    uint64_t words[];
} memory;

typedef struct tni_fast_path {
    struct {
        uint64_t hash; /* of the latest call that mapped here, remembered or not */
        memory *call;
    } at[CALLS];
} table;

static const void *pointer_at(const void *args, size_t offset)
{
    const void *pointer;
    memcpy(&pointer, (const char *)args + offset, sizeof pointer);
    return pointer;
}

/* Whether the caller's struct is long enough to have this field. Offset 0 means no field. */
static bool has_field(const void *args, size_t offset)
{
    return offset && *(const size_t *)args >= offset + sizeof(void *);
}

/* Returns the largest alignment that kernels distinguish for the tensor's memory. `alignments` is
 * from tni_kernels_alignments_of. */
static inline uintptr_t alignment_for(const tn_tensor *tensor, uint32_t alignments)
{
    return tensor->device_type == TN_DLPACK_CPU ? alignments & UINT8_MAX : alignments >> 8;
}

/* Host memory has one device; other devices are identified by their owner or by DLPack's
 * numbers. */
static bool add_tensor(signature *s, const tn_tensor *tensor, uint32_t alignments)
{
    enum { STRIDES = 1, READ_ONLY = 2 };
    const uintptr_t most = alignment_for(tensor, alignments);
    size_t ndim = (size_t)tensor->ndim, n = s->count;
    if (tensor->ndim < 0 || tensor->ndim > TN_OP_RANK_MAX || (ndim > 0 && !tensor->shape))
        return false;
    uintptr_t at = ((uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset) | most;
    uint64_t traits = (tensor->strides ? STRIDES : 0) |
                      (tensor->flags & TN_TENSOR_READ_ONLY ? READ_ONLY : 0) |
                      (uint64_t)(at & (~at + 1)) << 2;
    const tni_owner *owner = tensor->owner;
    s->words[n++] = tensor->dtype | traits << 32 | ndim << 56;
    s->words[n++] = (uint64_t)(uint32_t)tensor->device_type << 32 | (uint32_t)tensor->device_id;
    s->words[n++] = owner ? (uintptr_t)owner->device : 0;
    for (size_t i = 0; i < ndim; i++)
        s->words[n++] = (uint64_t)tensor->shape[i];
    for (size_t i = 0; i < ndim && tensor->strides; i++)
        s->words[n++] = (uint64_t)tensor->strides[i];
    s->count = n;
    return true;
}

static bool add_list(signature *s, const void *args, size_t offset)
{
    const int32_t *list = pointer_at(args, offset);
    int32_t count;
    memcpy(&count, (const char *)args + offset + sizeof list, sizeof count);
    if (count < 0 || count > TN_OP_RANK_MAX || (count > 0 && !list))
        return false;
    s->words[s->count++] = list != NULL;
    for (int32_t i = 0; i < count; i++)
        s->words[s->count++] = (uint64_t)list[i];
    return true;
}

/* Returns false for calls that are never remembered because their arguments are obviously
 * invalid. */
static bool make_signature(const tni_asked *asked, signature *out)
{
    const tni_op_class *class = asked->class;
    const tni_args_form *form = &class->args;
    const uint32_t alignments = tni_kernels_alignments_of(class->kind);
    if (!asked->args || *(const size_t *)asked->args < form->size)
        return false;
    out->words[0] = (uint64_t) class->kind;
    out->words[1] = tni_context_hash(asked->context, class);
    out->count = 2;
    for (size_t i = 0; class->operands[i]; i++) {
        const tn_tensor *tensor = has_field(asked->args, form->tensors[i])
                                      ? pointer_at(asked->args, form->tensors[i])
                                      : NULL;
        out->tensors[i] = tensor;
        if (!tensor)
            out->words[out->count++] = 0;
        else if (!add_tensor(out, tensor, alignments))
            return false;
    }
    if (form->list && !add_list(out, asked->args, form->list))
        return false;
    memcpy(&out->words[out->count], (const char *)asked->args + form->numbers,
           form->stream - form->numbers);
    out->count += (form->stream - form->numbers) / sizeof out->words[0];
    out->hash = tni_hash_words(out->words, out->count);
    return true;
}

/* Sets the address of the first element. Returns false if the address range of the operand would
 * overflow. */
static bool find_data(memory *call, const tn_tensor *tensor, int32_t index)
{
    uintptr_t at = (uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset;
    call->problem.data[index] = (void *)at;
    return tensor->data && at >= (uintptr_t)tensor->data && (uint64_t)-call->low[index] <= at &&
           (uint64_t)call->high[index] <= UINTPTR_MAX - at;
}

/* Returns whether no operand overlaps the output `out`, except the one that was in place before. */
static bool has_no_overlap(const memory *call, const tni_op_class *class, int32_t out)
{
    char *const *data = (char *const *)call->problem.data;
    bool in_place = class->may_be_in_place && call->problem.op.uses & TN_ELEMENTWISE_USES_IN_PLACE;
    uintptr_t low = (uintptr_t)data[out] + (uintptr_t)call->low[out];
    uintptr_t high = (uintptr_t)data[out] + (uintptr_t)call->high[out];
    for (int32_t i = 0; class->operands[i]; i++) {
        if (i == out || !data[i])
            continue;
        bool apart = (uintptr_t)data[i] + (uintptr_t)call->high[i] <= low ||
                     high <= (uintptr_t)data[i] + (uintptr_t)call->low[i];
        if (i == 0 && in_place ? data[i] != data[out] : !apart)
            return false;
    }
    return true;
}

/* Sets the data pointers; returns false if the data may not have these addresses. */
static bool place_data(memory *call, const tni_op_class *class, const signature *s)
{
    for (int32_t i = 0; class->operands[i]; i++) {
        if (s->tensors[i] && !find_data(call, s->tensors[i], i))
            return false;
    }
    for (int32_t i = 0; class->operands[i]; i++) {
        if (s->tensors[i] && tni_op_writes(class, i) && !has_no_overlap(call, class, i))
            return false;
    }
    return true;
}

static void forget_call(table *from, size_t index)
{
    memory *call = from->at[index].call;
    if (!call)
        return;
    from->at[index].call = NULL;
    tni_plan_release(call->plan);
    tni_release(call);
}

/* Returns the remembered call, if nothing changed that its plan was chosen by; otherwise NULL. */
static memory *find_call(tni_thread_kept *kept, const signature *s)
{
    memory *call = kept->fast_path->at[s->hash % CALLS].call;
    if (!call || call->count != s->count || call->uses > 0 ||
        memcmp(call->words, s->words, s->count * sizeof s->words[0]) != 0)
        return NULL;
    if (call->epoch == tni_epoch_now() && tni_lease_again(kept, call->plan))
        return call;
    forget_call(kept->fast_path, s->hash % CALLS);
    return NULL;
}

/* Whether a run needs more than the kernel: its own stream or workspace, a recording, a sample, a
 * wait. */
static bool is_special(const tn_context *context, const tni_call_args *args)
{
    return args->stream || args->workspace || args->workspace_bytes || tni_graph_any() ||
           tni_capture_any() ||
           (context->value[TN_SETTING_DEBUG_SAMPLE] | context->value[TN_SETTING_DEBUG_SYNC]) != 0;
}

static tn_status run_call(memory *call, const tni_asked *asked, tn_error *err)
{
    tni_call_args args;
    memcpy(&args, (const char *)asked->args + asked->class->args.stream, sizeof args);
    if (call->plain && !is_special(asked->context, &args))
        return tni_plan_run_plain(call->plan, &call->call, &call->problem,
                                  tn_stream_current(call->problem.device), err);
    return tni_plan_run_fitted(call->plan, asked->context, &call->problem, NULL, &args, err);
}

bool tni_fast_path_lookup(const tni_asked *asked, tn_status *out_status, tn_error *err)
{
    signature s;
    tni_thread_kept *kept = tni_thread_state_own.kept;
    if (!kept || !kept->fast_path || asked->context->value[TN_SETTING_PLAN_CACHE_SIZE] == 0 ||
        !make_signature(asked, &s))
        return false;
    memory *call = find_call(kept, &s);
    if (!call || !place_data(call, asked->class, &s))
        return false;
    call->uses++;
    *out_status = run_call(call, asked, err);
    call->uses--;
    return true;
}

/* Releases the calls that a thread remembers, when it ends. */
static void release_calls(struct tni_fast_path *fast_path)
{
    for (size_t i = 0; i < CALLS; i++)
        forget_call(fast_path, i);
    tni_release(fast_path);
}

/* Returns NULL if out of memory, and before the thread has a plan: then every call takes the normal
 * path. */
static table *make_room(void)
{
    tni_thread_kept *kept = tni_thread_state_own.kept;
    if (kept && !kept->fast_path)
        kept->fast_path = tni_alloc_zeroed(1, sizeof *kept->fast_path);
    if (kept)
        kept->fast_path_release = release_calls;
    return kept ? kept->fast_path : NULL;
}

/* Returns true if the words distinguish all alignments that kernels of the device distinguish. */
static bool covers_alignments(const signature *s, const tni_op_class *class,
                              const tn_device *device)
{
    const uint32_t alignments = tni_kernels_alignments_of(class->kind);
    uintptr_t needed = (uintptr_t)tni_kernels_alignment(device->platform->name, class->kind);
    for (int32_t i = 0; class->operands[i]; i++) {
        if (s->tensors[i] && alignment_for(s->tensors[i], alignments) < needed)
            return false;
    }
    return true;
}

/* Returns false for operands without elements, whose data pointers may be invalid. */
static bool measure_extents(const signature *s, const tni_op_class *class, memory *out)
{
    tni_layout layout;
    for (int32_t i = 0; class->operands[i]; i++) {
        if (!s->tensors[i])
            continue;
        if (tni_tensor_measure(s->tensors[i], class->where, class->operands[i], &layout, NULL) ||
            layout.elements == 0)
            return false;
        out->low[i] = layout.low;
        out->high[i] = layout.high;
    }
    return true;
}

void tni_fast_path_keep(const tni_asked *asked, const tni_problem *problem, tni_plan *plan,
                        uint64_t epoch)
{
    signature s;
    table *here = make_room();
    if (!here || !make_signature(asked, &s))
        return;
    size_t index = s.hash % CALLS;
    bool again = here->at[index].hash == s.hash;
    here->at[index].hash = s.hash;
    if (!again || (here->at[index].call && here->at[index].call->uses > 0))
        return;
    memory *made = tni_alloc_zeroed(1, sizeof *made + s.count * sizeof s.words[0]);
    if (!made)
        return;
    if (!covers_alignments(&s, asked->class, problem->device) ||
        !measure_extents(&s, asked->class, made) ||
        tni_device_open(problem->device, asked->class->where, &made->call, NULL)) {
        tni_release(made);
        return;
    }
    made->plan = tni_plan_retain(plan);
    made->plain = tni_plan_is_plain(plan);
    made->epoch = epoch;
    made->problem = *problem;
    made->count = s.count;
    memcpy(made->words, s.words, s.count * sizeof s.words[0]);
    forget_call(here, index);
    here->at[index].call = made;
}
