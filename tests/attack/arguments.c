/* Calls of every operator with one to four damaged arguments: wrong ranks, sizes, strides, dtypes, devices, pointers,
 * numbers and struct sizes. Each call is rejected with a message, or computes and writes nothing but its output. What
 * explain says of the same arguments is what the call does. */
#include "arguments.h"

#include <math.h>

enum { ROUNDS = 5000 };

static int64_t hostile_number(dice *d)
{
    static const int64_t some[] = {
        0,  1,         -1,        2,         3,         7,         8,         33,
        64, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1LL << 32, 1LL << 62, -(1LL << 40)};
    return dice_one_in(d, 8) ? (int64_t)dice_next(d) : DICE_PICK(d, some);
}

static double hostile_real(dice *d)
{
    static const double some[] = {0,     -0.0,     1,         -1,  0.5,      1e-320,
                                  1e308, INFINITY, -INFINITY, NAN, 1.0000001};
    return DICE_PICK(d, some);
}

static void damage_tensor(call *c)
{
    static const tn_dtype dtypes[] = {TN_DTYPE_NONE,      TN_F8_E4M3FN,       TN_F8_E5M2FNUZ,
                                      TN_DTYPE(2, 32, 4), TN_DTYPE(99, 8, 1), TN_DTYPE(2, 12, 1)};
    dice *d = c->dice;
    operand *o = &c->operands[dice_range(d, 0, c->count - 1)];
    tn_tensor *t = &o->tensor;
    int at = (int)dice_range(d, 0, 4);
    switch (dice_range(d, 0, 12)) {
    case 0: t->data = NULL; break;
    case 1: t->ndim = (int32_t)hostile_number(d); break;
    case 2: t->ndim = (int32_t)((uint32_t)t->ndim + (dice_one_in(d, 2) ? 1 : UINT32_MAX)); break;
    case 3: o->shape[at] = hostile_number(d); break;
    case 4: o->shape[at] = dice_range(d, 0, 9); break;
    case 5: t->strides = o->strides, o->strides[at] = hostile_number(d); break;
    case 6: t->strides = o->strides, o->strides[at] = dice_range(d, -9, 9); break;
    case 7: t->dtype = dice_one_in(d, 3) ? (tn_dtype)dice_next(d) : DICE_PICK(d, dtypes); break;
    case 8: t->dtype = random_any_dtype(d); break;
    case 9: t->device_type = (int32_t)hostile_number(d); break;
    case 10: t->device_id = (int32_t)hostile_number(d); break;
    case 11:
        t->byte_offset =
            dice_one_in(d, 2) ? (uint64_t)hostile_number(d) : (uint64_t)dice_range(d, 0, 64);
        break;
    default:
        if (dice_one_in(d, 2))
            t->shape = NULL;
        else
            t->flags = (uint64_t)hostile_number(d);
        break;
    }
}

/* Damages a table of i32, if there is one: what the checks of shapes cannot see. */
static void damage_table(call *c)
{
    for (int i = 0; i < c->count; i++) {
        operand *o = &c->operands[i];
        if (o->tensor.dtype == TN_I32 && o->tensor.ndim == 1 && !o->written) {
            int32_t number = (int32_t)hostile_number(c->dice);
            memcpy(o->memory + GUARD + 4 * dice_range(c->dice, 0, 3), &number, sizeof number);
        }
    }
}

static void damage_args(call *c)
{
    dice *d = c->dice;
    int count = 0;
    while (c->op->fields[count].type != FIELD_END)
        count++;
    const arg_field *field = &c->op->fields[dice_range(d, 0, count - 1)];
    void *at = c->args + field->offset;
    if (dice_one_in(d, 12)) {
        size_t size =
            dice_one_in(d, 2) ? (size_t)dice_range(d, 0, ARGS) : (size_t)hostile_number(d);
        memcpy(c->args, &size, sizeof size);
        return;
    }
    switch (field->type) {
    case FIELD_TENSOR: {
        const tn_tensor *other =
            dice_one_in(d, 2) ? NULL : &c->operands[dice_range(d, 0, c->count - 1)].tensor;
        memcpy(at, &other, sizeof other);
        c->aliased = true;
        break;
    }
    case FIELD_I32: {
        int32_t number = (int32_t)hostile_number(d);
        memcpy(at, &number, sizeof number);
        break;
    }
    case FIELD_I64: {
        int64_t number = hostile_number(d);
        memcpy(at, &number, sizeof number);
        break;
    }
    default: {
        double number = hostile_real(d);
        memcpy(at, &number, sizeof number);
        break;
    }
    }
}

/* Returns whether the elements of a tensor lie in its own memory, or whether it is wrong in itself. Outside of it a
 * library can neither know nor check what there is. */
static bool lies_in_its_memory(const operand *o)
{
    const tn_tensor *t = &o->tensor;
    const double item = (double)((t->dtype >> 8 & 0xFF) / 8) * (double)(t->dtype >> 16);
    double low = 0, high = 0, dense = 1; /* exact as far as it matters, and without overflow */
    if (!t->data || (!t->shape && t->ndim > 0) || t->ndim < 0 || t->ndim > TN_TENSOR_NDIM_MAX)
        return true;
    for (int i = t->ndim; i-- > 0;) {
        const double size = (double)t->shape[i],
                     stride = t->strides ? (double)t->strides[i] : dense;
        if (t->shape[i] <= 0)
            return true; /* empty, or wrong */
        if (dense > 9e18 || item <= 0)
            return true; /* wrong */
        dense *= size;
        if (stride > 0)
            high += stride * (size - 1);
        else
            low += stride * (size - 1);
    }
    low = low * item + (double)t->byte_offset;
    high = (high + 1) * item + (double)t->byte_offset;
    return low >= 0 && high <= MEMORY;
}

/* Returns whether the args lie in their own memory: a larger struct_size is a lie that cannot be checked. */
static bool args_are_whole(const call *c)
{
    size_t size;
    memcpy(&size, c->args, sizeof size);
    return size <= ARGS;
}

static bool may_run(const call *c)
{
    bool may = true;
    for (int i = 0; i < c->count; i++)
        may = may && lies_in_its_memory(&c->operands[i]);
    return may;
}

static void save_memory(call *c)
{
    for (int i = 0; i < c->count; i++)
        memcpy(c->operands[i].before, c->operands[i].memory, MEMORY + 2 * GUARD);
}

/* `rejected`: outputs are as they were too. */
static void check_memory(const attack *self, const call *c, bool rejected)
{
    for (int i = 0; i < c->count; i++) {
        const operand *o = &c->operands[i];
        size_t whole = MEMORY + 2 * GUARD;
        if ((rejected || (!o->written && !c->aliased)) && memcmp(o->memory, o->before, whole) != 0)
            attack_found(self, "%s: operand %d was written to, though %s", c->op->name, i,
                         rejected ? "the call was rejected" : "it is an input");
        if (memcmp(o->memory, o->before, GUARD) != 0 ||
            memcmp(o->memory + GUARD + MEMORY, o->before + GUARD + MEMORY, GUARD) != 0)
            attack_found(self, "%s: memory beside operand %d was written to", c->op->name, i);
    }
}

/* What explain says that the call would end with. */
static tn_status explain_call(const attack *self, const call *c)
{
    tn_decision *decision = NULL;
    tn_error err = {0};
    tn_status status = c->op->explain(NULL, c->args, &decision, &err);
    attack_check_status(self, c->op->name, status, &err);
    if (!status)
        status = tn_decision_status(decision, NULL);
    tn_decision_release(decision);
    return status;
}

static void run_call(attack *self, call *c)
{
    tn_error err = {0};
    if (!args_are_whole(c))
        return;
    tn_status expected = explain_call(self, c);
    if (!may_run(c))
        return;
    save_memory(c);
    tn_status status = c->op->run(NULL, c->args, &err);
    attack_check_status(self, c->op->name, status, &err);
    check_memory(self, c, status != TN_OK && expected != TN_OK);
    if (expected != TN_OK && status != expected)
        attack_found(self, "%s: explain says %s, the call %s: %s", c->op->name,
                     tn_status_name(expected), tn_status_name(status), status ? err.message : "");
    /* Tables are read by the kernel alone. */
    if (expected == TN_OK && status != TN_OK && strcmp(c->op->name, "attention") != 0 &&
        strncmp(c->op->name, "attention_sparse", strlen("attention_sparse")) != 0)
        attack_found(self, "%s: explain says ok, the call %s: %s", c->op->name,
                     tn_status_name(status), err.message);
    if (dice_one_in(c->dice, 4)) {
        tn_status prepared = c->op->prepare(NULL, c->args, &err);
        attack_check_status(self, c->op->name, prepared, &err);
    }
    self->accepted += status == TN_OK;
}

void attack_arguments(attack *self)
{
    call *c = calloc(1, sizeof *c);
    if (!c)
        attack_found(self, "no memory");
    for (int i = 0; i < TENSORS; i++) {
        c->operands[i].memory = malloc(MEMORY + 2 * GUARD);
        c->operands[i].before = malloc(MEMORY + 2 * GUARD);
        if (!c->operands[i].memory || !c->operands[i].before)
            attack_found(self, "no memory");
    }
    c->dice = &self->dice;
    for (int round = 0; round < ROUNDS; round++) {
        c->op = random_operator(c->dice);
        c->count = 0;
        c->aliased = false;
        memset(c->args, 0, sizeof c->args);
        c->op->build(c);
        for (int64_t n = dice_range(c->dice, 0, 3); n-- > 0;) {
            if (dice_one_in(c->dice, 8))
                damage_table(c);
            else if (dice_one_in(c->dice, 3))
                damage_args(c);
            else
                damage_tensor(c);
        }
        self->tried++;
        run_call(self, c);
    }
    for (int i = 0; i < TENSORS; i++) {
        free(c->operands[i].memory);
        free(c->operands[i].before);
    }
    free(c);
}
