/* tn_check: compares kernels with the reference. */
#include "check.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "compare.h"
#include "declared.h"
#include "dispatch/judge.h"
#include "op/op_check.h"
#include "oracle.h"
#include "os/clock.h"
#include "part.h"
#include "settings/context.h"

#include <inttypes.h>
#include <stdatomic.h>

static const char where[] = "tn_check";

/* For problems with more operations, only some outputs are checked. */
#define WHOLE_FLOPS 2e9

/* State of a trial. Too large for the stack. */
typedef struct scene {
    const tni_trial *trial;
    tni_operands operands;
    tni_oracle oracle;
    bool sampled;
    void *before[TN_OP_OPERANDS_MAX];         /* operands before the call, in host memory */
    void *after[TN_OP_OPERANDS_MAX];          /* the same, with the outputs of the call */
    unsigned char *block[TN_OP_OPERANDS_MAX]; /* outputs of the call; NULL for inputs; owned */
    void *expected[TN_OP_OPERANDS_MAX];       /* outputs of the last part */
    tn_op piece;                              /* the last part */
    tni_problem problem;                      /* with operands on the device */
    tni_difference difference;
} scene;

static bool is_output(const scene *s, int32_t index)
{
    const tn_op *op = s->trial->op;
    return op->operand[index].dtype && tni_op_writes(tni_op_class_of(op->kind), index);
}

/* Allocates memory for the reference's outputs of a part. */
static tn_status make_room(scene *s, const tn_op *piece, tn_error *err)
{
    for (int32_t i = 0; i < piece->count; i++) {
        const tn_layout *layout = &piece->operand[i];
        if (!is_output(s, i))
            continue;
        size_t bytes = (size_t)(tni_layout_elements(layout) * tni_dtype_bytes(layout->dtype));
        tni_release(s->expected[i]);
        s->expected[i] = tni_alloc_aligned(bytes, TN_OP_ALIGNMENT_MAX);
        if (!s->expected[i])
            return tni_no_memory(err, where, "the reference's outputs");
    }
    return TN_OK;
}

/* Compares one output of a part with the reference's. */
static tn_status compare_output(scene *s, const tni_part *part, const tni_comparand *what,
                                tn_error *err)
{
    int64_t at = s->difference.at;
    bool worse = false;
    tn_status status = tni_compare(what, &s->difference, &worse, err);
    if (!status)
        s->difference.at =
            worse ? tni_part_place(s->trial->op, part, what->output, s->difference.at) : at;
    return status;
}

static tn_status check_part(void *user, const tni_part *part, tn_error *err)
{
    scene *s = user;
    void *data[TN_OP_OPERANDS_MAX], *found[TN_OP_OPERANDS_MAX];
    tn_op *piece = &s->piece;
    tn_status status = tni_part_extract(s->trial->op, s->after, part, piece, found, err);
    if (!status)
        status = tni_part_extract(s->trial->op, s->before, part, piece, data, err);
    if (!status)
        status = make_room(s, piece, err);
    if (!status)
        status = tni_oracle_compute(&s->oracle, piece, data, s->expected, err);
    for (int32_t i = 0; i < piece->count && !status; i++) {
        const tni_comparand what = {.op = piece,
                                    .output = i,
                                    .data = data,
                                    .found = found[i],
                                    .expected = s->expected[i],
                                    .numerics = tni_plan_kernel(s->trial->plan)->row->numerics};
        if (is_output(s, i))
            status = compare_output(s, part, &what, err);
    }
    return status;
}

/* Copies the outputs from the device. */
static tn_status fetch_outputs(scene *s, tn_stream *stream, tn_error *err)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < s->trial->op->count && !status; i++) {
        const tni_operand *out = tni_operands_at(&s->operands, i);
        if (!is_output(s, i) || !out->host)
            continue;
        s->block[i] = tni_alloc(out->bytes);
        status = s->block[i] ? tni_operands_download(&s->operands, i, stream, s->block[i], err)
                             : tni_no_memory(err, where, "a copy of the output");
    }
    return status;
}

static tn_status finish_inputs(const tni_operands *operands, tn_error *err)
{
    const tni_op_check *check = tni_op_class_of(operands->op->kind)->check;
    return check->finish_inputs ? check->finish_inputs(operands, err) : TN_OK;
}

/* Fills the operands, runs the kernel and copies its outputs to the host. */
static tn_status run_kernel(scene *s, tn_stream *stream, tn_error *err)
{
    const tni_trial *t = s->trial;
    tn_status status = tni_operands_fill(
        &s->operands, t->seed, t->nonfinite ? TNI_INPUTS_NONFINITE : TNI_INPUTS_USUAL, err);
    if (!status)
        status = finish_inputs(&s->operands, err);
    if (!status)
        status = tni_operands_upload(&s->operands, stream, err);
    if (status)
        return status;
    tni_operands_on_device(&s->operands, &s->problem);
    status = tni_plan_run(t->plan, tni_context_defaults(), &s->problem,
                          &(tni_call_args){.stream = stream}, err);
    if (!status)
        status = tn_stream_synchronize(stream, err);
    return status ? status : fetch_outputs(s, stream, err);
}

/* Reports the first byte of a block that differs from its initial value, unless an error was
 * reported before. */
static void compare_bytes(const scene *s, int32_t index, const unsigned char *now,
                          tn_check_result *out)
{
    const tni_operand *operand = tni_operands_at(&s->operands, index);
    const char *name = tni_op_class_of(s->trial->op->kind)->operands[index];
    size_t at = 0;
    while (at < operand->bytes && now[at] == operand->host[at])
        at++;
    if (at == operand->bytes || !out->ok)
        return;
    out->ok = 0;
    snprintf(out->text, sizeof out->text,
             "a byte outside the outputs was written: at offset %" PRId64 " from the "
             "first byte of %s",
             (int64_t)at - (int64_t)operand->first, name);
}

/* Checks that no byte around an output was written. Overwrites the output's elements in the block
 * with their initial values. */
static void compare_around(scene *s, int32_t index, tn_check_result *out)
{
    const tni_operand *written = tni_operands_at(&s->operands, index);
    const tn_layout *layout = &s->trial->op->operand[index];
    int64_t size = tni_dtype_bytes(layout->dtype);
    tni_place place = {{0}};
    do {
        int64_t at = (int64_t)written->first + tni_place_in(&place, layout) * size;
        memcpy(s->block[index] + at, written->host + at, (size_t)size);
    } while (tni_place_next(&place, layout));
    compare_bytes(s, index, s->block[index], out);
}

/* Checks that an input was not written. */
static tn_status compare_input(const scene *s, int32_t index, tn_stream *stream,
                               tn_check_result *out, tn_error *err)
{
    unsigned char *now = tni_alloc(s->operands.operand[index].bytes);
    if (!now)
        return tni_no_memory(err, where, "a copy of an operand");
    tn_status status = tni_operands_download(&s->operands, index, stream, now, err);
    if (!status)
        compare_bytes(s, index, now, out);
    tni_release(now);
    return status;
}

static tn_status compare_guards(scene *s, tn_stream *stream, tn_check_result *out, tn_error *err)
{
    const tni_operand *written = tni_operands_at(&s->operands, s->operands.output);
    tn_status status = TN_OK;
    for (int32_t i = 0; i < s->trial->op->count && !status; i++) {
        const tni_operand *operand = &s->operands.operand[i];
        if (s->block[i])
            compare_around(s, i, out);
        else if (operand->host && operand != written)
            status = compare_input(s, i, stream, out, err);
    }
    return status;
}

static void write_check_result(const scene *s, tn_check_result *out)
{
    const tni_difference *d = &s->difference;
    tn_text_fit(out->kernel, sizeof out->kernel, tni_plan_kernel(s->trial->plan)->row->name);
    out->ok = d->wrong == 0;
    out->sampled = s->sampled;
    out->checked = d->checked;
    out->error = d->error;
    out->bound = d->bound;
    out->found = d->found;
    out->expected = d->expected;
    out->at = d->at;
    out->seed = s->trial->seed;
    out->text[0] = '\0';
    if (d->wrong > 0)
        tni_difference_write(d, s->trial->op, out->text, sizeof out->text);
}

/* Writes the dump of the output with the largest error, if the result is wrong and a path was
 * given. */
static tn_status dump_output(const scene *s, const tn_check_result *result, tn_error *err)
{
    int32_t output = s->difference.at < 0 ? s->operands.output : s->difference.output;
    const tni_dump what = {.path = s->trial->dump,
                           .operands = &s->operands,
                           .kernel = result->kernel,
                           .seed = s->trial->seed,
                           .output = output,
                           .found = s->block[output],
                           .expected = s->sampled ? NULL : s->expected[output]};
    return result->ok || !what.path ? TN_OK : tni_dump_write(&what, err);
}

static tn_status check_kernel(scene *s, tn_stream *stream, tn_check_result *out, tn_error *err)
{
    const tni_trial *t = s->trial;
    tn_status status = run_kernel(s, stream, err);
    if (status)
        return status;
    tni_operands_on_host(&s->operands, s->before);
    memcpy(s->after, s->before, sizeof s->after);
    for (int32_t i = 0; i < t->op->count; i++) {
        if (s->block[i])
            s->after[i] = s->block[i] + tni_operands_at(&s->operands, i)->first;
    }
    status = tni_parts_visit(t->op, s->sampled, t->seed, check_part, s, err);
    if (status)
        return status;
    write_check_result(s, out);
    status = dump_output(s, out, err);
    if (!status && out->ok && t->declared)
        status = tni_declared_check(&(tni_first_run){t, &s->operands, s->block}, out, err);
    return status ? status : compare_guards(s, stream, out, err);
}

static tn_status run_trial(scene *s, tn_check_result *out, tn_error *err)
{
    const tni_trial *trial = s->trial;
    tn_stream *stream = trial->stream ? trial->stream : tn_stream_current(trial->device);
    double flops, bytes;
    tni_op_class_of(trial->op->kind)->cost(trial->op, &flops, &bytes);
    s->sampled = flops > WHOLE_FLOPS;
    tn_status status = tni_oracle_init(&s->oracle, trial->op->kind, err);
    if (!status)
        status = tni_operands_create(trial->op, trial->device, &s->operands, err);
    if (!status)
        status = check_kernel(s, stream, out, err);
    tni_oracle_release(&s->oracle);
    tni_operands_release(&s->operands);
    for (int32_t i = 0; i < TN_OP_OPERANDS_MAX; i++) {
        tni_release(s->block[i]);
        tni_release(s->expected[i]);
    }
    return status;
}

tn_status tni_trial_run(const tni_trial *trial, tn_check_result *out, tn_error *err)
{
    scene *s = tni_alloc_zeroed(1, sizeof *s);
    if (!s)
        return tni_no_memory(err, where, "a trial");
    s->trial = trial;
    s->difference.at = -1;
    tn_status status = run_trial(s, out, err);
    tni_release(s);
    return status;
}

uint64_t tni_seed_fresh(void)
{
    static _Atomic uint64_t given;
    uint64_t seed = tni_hash_mix((uint64_t)tni_clock_ns(), atomic_fetch_add(&given, 1) + 1);
    return seed ? seed : 1;
}

tn_status tni_kernel_for(const char *name, const tn_op *op, const tn_device *device,
                         const tni_kernel **out, tn_error *err)
{
    const tni_kernel *kernel = NULL;
    tn_status status = tni_kernel_find(name, &kernel, err);
    if (status)
        return status;
    if (kernel->row->op != op->kind)
        return tn_fail(err, TN_UNSUPPORTED, 0, where, "%s computes %s, not %s", name,
                       tni_op_class_of(kernel->row->op)->word, tni_op_class_of(op->kind)->word);
    if (strcmp(kernel->row->platform, device->platform->name) != 0)
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "%s runs on platform %s, but %s belongs to %s", name, kernel->row->platform,
                       device->id, device->platform->name);
    *out = kernel;
    return TN_OK;
}

/* Returns the flags; 0 for callers compiled before the field existed. */
static uint64_t flags_of(const tn_check_args *args)
{
    return TN_HAS(args, tn_check_args, flags) ? args->flags : 0;
}

static tn_status check_args(const tn_check_args *args, const tn_check_result *out, tn_error *err)
{
    if (!args || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", args ? "out" : "args");
    if (!TN_HAS(args, tn_check_args, dump) || !TN_HAS(out, tn_check_result, text))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "struct_size: expected at least %zu in args, got %zu; at least %zu in "
                       "out, got %zu",
                       TN_UP_TO(tn_check_args, dump), args->struct_size,
                       TN_UP_TO(tn_check_result, text), out->struct_size);
    if (flags_of(args) & ~TN_CHECK_NONFINITE)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "expected flags of TN_CHECK_..., got 0x%" PRIx64 "; clear the other bits",
                       flags_of(args));
    return TN_OK;
}

tn_status tn_check(const tn_context *context, const tn_check_args *args, tn_check_result *out,
                   tn_error *err)
{
    tn_op op;
    tni_plan *plan = NULL;
    tn_check_result result = {0};
    tni_question question = {.context = tni_context_or_current(context), .op = &op};
    tn_status status = check_args(args, out, err);
    if (!status)
        status = tni_question_parse(args->problem, &op, &question.device, err);
    if (!status && args->kernel)
        status = tni_kernel_for(args->kernel, &op, question.device, &question.only, err);
    if (!status)
        status = tni_plan_make(&question, &plan, err);
    if (status)
        return status;
    const tni_trial trial = {.plan = plan,
                             .op = &op,
                             .device = question.device,
                             .seed = args->seed ? args->seed : tni_seed_fresh(),
                             .dump = args->dump,
                             .nonfinite = (flags_of(args) & TN_CHECK_NONFINITE) != 0,
                             .declared = true};
    status = tni_trial_run(&trial, &result, err);
    tni_plan_release(plan);
    if (!status) {
        result.struct_size = out->struct_size;
        *out = result;
    }
    return status;
}

const tn_check_aspect *tn_check_aspects(int32_t op)
{
    static const tn_check_aspect none[] = {{0}};
    const tni_op_class *class = tni_op_class_of(op);
    return class ? class->check->aspects : none;
}

const char *tn_op_name(int32_t op)
{
    const tni_op_class *class = tni_op_class_of(op);
    return class ? class->word : "";
}

int32_t tn_op_next(int32_t op)
{
    int32_t next = op < TN_OP_NONE ? TN_OP_NONE + 1 : op < TN_OP_KIND_MAX ? op + 1 : op;
    while (next < TN_OP_KIND_MAX && !tni_op_class_of(next))
        next++;
    return next < TN_OP_KIND_MAX ? next : TN_OP_NONE;
}

const char *tn_op_fields(int32_t op)
{
    const tni_op_class *class = tni_op_class_of(op);
    return class ? class->fields : "";
}
