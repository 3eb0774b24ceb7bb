/* Which attention problems the kernels accept. */
#include "attention_low.h"
#include "attention_sets.h"
#include "tenon/module/op/attention_backward.h"

#include <inttypes.h>
#include <math.h>

/* Maximum magnitude of the binary exponents of scale and softcap. */
enum { POWER_F32 = 100, POWER_F64 = 900 };

static tn_status admit_number(double number, const char *what, int64_t most, tn_refusal *why)
{
    const int64_t power = number == 0 ? 0 : ilogb(number);
    if (power >= -most && power <= most)
        return TN_OK;
    (void)tn_refuse(why, TN_REFUSE_FEATURE, what, power < 0 ? -most : most, power);
    if (why)
        (void)snprintf(why->text, sizeof why->text,
                       "expected a binary exponent from %" PRId64 " to %" PRId64 ", got %" PRId64
                       ": scores would overflow or underflow",
                       -most, most, power);
    return TN_UNSUPPORTED;
}

/* Checks that f32 (f64 for f64) can represent scores with this scale and softcap. */
static tn_status admit_numbers(const tn_op *op, tn_refusal *why)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const int64_t most = op->operand[TN_ATTENTION_Q].dtype == TN_F64 ? POWER_F64 : POWER_F32;
    const tn_status status = admit_number(at->scale, "scale", most, why);
    return status ? status : admit_number(at->softcap, "softcap", most, why);
}

tn_status tni_at_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"q",     "k",        "v",        "out",     "lse",   "mask",
                                        "sinks", "starts_q", "starts_k", "lengths", "pages", "seed",
                                        "dout",  "dq",       "dk",       "dv"};
    const tn_op *op = query->op;
    const tn_dtype dtype = op->operand[TN_ATTENTION_Q].dtype;
    (void)row;
    for (int32_t i = TN_ATTENTION_K; i < op->count; i++) {
        const bool is_table = i > TN_ATTENTION_LSE && i < TN_ATTENTION_BACKWARD_DOUT;
        if (!is_table && op->operand[i].dtype && op->operand[i].dtype != dtype)
            return tn_refuse(why, TN_REFUSE_DTYPE, names[i], dtype, op->operand[i].dtype);
    }
    return admit_numbers(op, why);
}

static tn_status reject_with(tn_refusal *why, const char *what, int32_t code, int64_t needed,
                             int64_t found, const char *text)
{
    (void)tn_refuse(why, code, what, needed, found);
    if (why)
        tn_text_fit(why->text, sizeof why->text, text);
    return TN_UNSUPPORTED;
}

/* Checks the size of a row of Q and K, or of V. */
static tn_status admit_size(int64_t size, const char *what, tn_refusal *why)
{
    if (size >= 1 && size <= TNI_AT_LOW_SIZE)
        return TN_OK;
    return reject_with(why, what, TN_REFUSE_SHAPE, size < 1 ? 1 : TNI_AT_LOW_SIZE, size,
                       "supports 1 to 512 elements in a row");
}

tn_status tni_at_low_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_op *op = query->op;
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const tn_dtype dtype = op->operand[TN_ATTENTION_Q].dtype;
    const tn_dtype out = op->operand[TN_ATTENTION_OUT].dtype;
    const tn_dtype lse = op->operand[TN_ATTENTION_LSE].dtype;
    (void)row;
    if (op->operand[TN_ATTENTION_K].dtype != dtype)
        return tn_refuse(why, TN_REFUSE_DTYPE, "k", dtype, op->operand[TN_ATTENTION_K].dtype);
    if (op->operand[TN_ATTENTION_V].dtype != dtype)
        return tn_refuse(why, TN_REFUSE_DTYPE, "v", dtype, op->operand[TN_ATTENTION_V].dtype);
    if (out != dtype && out != TN_F32)
        return reject_with(why, "out", TN_REFUSE_DTYPE, dtype, out,
                           "out must have q's dtype or be f32");
    if (lse && lse != TN_F32)
        return reject_with(why, "lse", TN_REFUSE_DTYPE, TN_F32, lse, "lse must be f32");
    if (admit_size(at->size, "size", why) || admit_size(at->value_size, "value_size", why))
        return TN_UNSUPPORTED;
    return admit_numbers(op, why);
}
