/* Valid calls of every operator, to be damaged by arguments.c. */
#ifndef TENON_TEST_ATTACK_ARGUMENTS_H
#define TENON_TEST_ATTACK_ARGUMENTS_H

#include "attack.h"

enum {
    TENSORS = 12,
    NDIM = 40, /* room for ranks that are too large */
    GUARD = 64,
    MEMORY = 32 << 10,
    ARGS = 512,
    FIELDS = 24
};

typedef struct operand {
    tn_tensor tensor;
    int64_t shape[NDIM], strides[NDIM];
    bool written;
    unsigned char *memory; /* GUARD bytes, MEMORY bytes, GUARD bytes */
    unsigned char *before; /* a copy */
} operand;

typedef struct call call;

/* What may be damaged in the args of an operator. */
typedef struct arg_field {
    size_t offset;
    enum { FIELD_END, FIELD_TENSOR, FIELD_I32, FIELD_I64, FIELD_F64 } type;
} arg_field;

typedef tn_status run_function(const tn_context *context, const void *args, tn_error *err);
typedef tn_status explain_function(const tn_context *context, const void *args, tn_decision **out,
                                   tn_error *err);
typedef struct operator_facts {
    const char *name;
    size_t size;
    run_function *run, *prepare;
    explain_function *explain;
    void (*build)(call *c); /* writes valid arguments */
    arg_field fields[FIELDS];
} operator_facts;

struct call {
    dice *dice;
    const operator_facts *op;
    _Alignas(16) unsigned char args[ARGS];
    operand operands[TENSORS];
    int count;
    bool aliased; /* one operand may stand for two */
};

/* One of the operators. */
const operator_facts *random_operator(dice *d);

tn_dtype random_any_dtype(dice *d);

#endif
