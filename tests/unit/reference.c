/* The reference computes every op that the checks of arguments accept, of whatever kind and dtypes. */
#include "ops_check.h"

#include "check/oracle.h"
#include "op/attention/attention.h"
#include "op/matmul/matmul.h"
#include "op/op.h"
#include "tenon/tenon.h"

static const tn_dtype dtypes[] = {
#define DTYPE(name, word, code, bits) name,
    TN_DTYPE_LIST(DTYPE)
#undef DTYPE
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* Operands of one op: a dtype for what is read, another one for what is written. */
static piece x, y, z, s;
static tni_problem problem;
static tni_oracle oracle;

/* Room for results of the reference. */
static _Alignas(64) char results[TN_OP_OPERANDS_MAX][1024];

static tn_status make_op(int32_t op, int32_t kind, tn_dtype in, tn_dtype out, tn_error *err)
{
    const tn_tensor *a = DENSE(&x, 0, in, 4, 4), *b = DENSE(&y, 1024, in, 4, 4);
    const tn_tensor *to = DENSE(&z, 2048, out, 4, 4), *row;
    switch (op) {
    case TN_OP_MATMUL:
        return tni_matmul_make(TN_ARGS(matmul, .a = a, .b = b, .out = to), &problem, err);
    case TN_OP_PERMUTE:
        return tni_permute_make(TN_ARGS(permute, .in = a, .out = to), &problem, err);
    case TN_OP_CAST: return tni_cast_make(TN_ARGS(cast, .in = a, .out = to), &problem, err);
    case TN_OP_FILL: return tni_fill_make(TN_ARGS(fill, .out = to, .value = 1), &problem, err);
    case TN_OP_UNARY:
        return tni_unary_make(TN_ARGS(unary, .in = a, .out = to, .kind = kind), &problem, err);
    case TN_OP_BINARY:
        return tni_binary_make(TN_ARGS(binary, .in = a, .other = b, .out = to, .kind = kind),
                               &problem, err);
    case TN_OP_REDUCE:
        return tni_reduce_make(
            TN_ARGS(reduce, .in = a, .out = DENSE(&z, 2048, out, 4), .axes = 1, .kind = kind),
            &problem, err);
    case TN_OP_SOFTMAX:
        return tni_softmax_make(TN_ARGS(softmax, .in = a, .out = to), &problem, err);
    case TN_OP_NORM:
        row = DENSE(&s, 3072, in, 4);
        return tni_norm_make(TN_ARGS(norm, .in = a, .out = to, .weight = row, .kind = kind),
                             &problem, err);
    case TN_OP_ROTARY:
        row = DENSE(&s, 3072, in, 4, 2);
        return tni_rotary_make(
            TN_ARGS(rotary, .in = a, .out = to, .cos = row, .sin = row, .kind = kind), &problem,
            err);
    default:
        a = DENSE(&x, 0, in, 1, 1, 4, 4), b = DENSE(&y, 1024, in, 1, 1, 4, 4);
        to = DENSE(&z, 2048, out, 1, 1, 4, 4);
        return tni_attention_make(TN_ARGS(attention, .q = a, .k = b, .v = b, .out = to), &problem,
                                  err);
    }
}

static int32_t kinds_of(int32_t op)
{
    switch (op) {
    case TN_OP_UNARY: return TN_UNARY_COUNT;
    case TN_OP_BINARY: return TN_BINARY_COUNT;
    case TN_OP_REDUCE: return TN_REDUCE_COUNT;
    case TN_OP_NORM: return TN_NORM_COUNT;
    case TN_OP_ROTARY: return TN_ROTARY_COUNT;
    default: return 1;
    }
}

/* Returns whether the checks accept the op; the reference must then compute it. */
static bool compute(int32_t op, int32_t kind, tn_dtype in, tn_dtype out)
{
    void *to[TN_OP_OPERANDS_MAX];
    tn_error err;
    if (make_op(op, kind, in, out, &err))
        return false;
    for (int32_t i = 0; i < TN_OP_OPERANDS_MAX; i++)
        to[i] = results[i];
    if (tni_oracle_compute(&oracle, &problem.op, problem.data, to, &err))
        fail_msg("accepted and not computed: %s", err.message);
    return true;
}

static void what_is_accepted_is_computed(void **state)
{
    tn_error err;
    (void)state;
    for (int32_t op = TN_OP_MATMUL; op <= TN_OP_ATTENTION; op++) {
        int accepted = 0;
        assert_int_equal(tni_oracle_init(&oracle, op, &err), TN_OK);
        for (int32_t kind = 0; kind < kinds_of(op); kind++) {
            for (size_t i = 0; i < DTYPES * DTYPES; i++)
                accepted += compute(op, kind, dtypes[i / DTYPES], dtypes[i % DTYPES]);
        }
        tni_oracle_release(&oracle);
        assert_true(accepted >= 4 * kinds_of(op)); /* floats at least */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_accepted_is_computed),
    };
    return run_suite("unit.reference", tests);
}
