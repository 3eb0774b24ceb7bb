/* With determinism=batch-invariant a result has the same bits whatever the number of threads and whatever else is in
 * the batch, also with NaN and infinity among the inputs. */
#include "attack.h"

#include <math.h>

enum { ROUNDS = 300, BATCH = 4, ELEMENTS = 1 << 16 };

static double number_of(dice *d, bool special)
{
    static const double some[] = {NAN, INFINITY, -INFINITY, 0, 1e30, -1e30};
    return special && dice_one_in(d, 40) ? DICE_PICK(d, some)
                                         : (double)dice_range(d, -1000, 1000) / 500.0;
}

/* Fills `to` by a cast from f64, which every dtype has. */
static void fill_operand(attack *self, tn_tensor *to, int64_t count, bool special)
{
    static double numbers[ELEMENTS];
    for (int64_t i = 0; i < count; i++)
        numbers[i] = number_of(&self->dice, special);
    tn_error err;
    tn_tensor flat = *to;
    flat.shape = &count, flat.ndim = 1;
    tn_tensor from = {
        .data = numbers, .device_type = TN_DLPACK_CPU, .ndim = 1, .dtype = TN_F64, .shape = &count};
    if (tn_cast(NULL, TN_ARGS(cast, .in = &from, .out = &flat), &err))
        attack_found(self, "tn_cast: %s", err.message);
}

typedef struct memory {
    _Alignas(64) unsigned char bytes[5][ELEMENTS * 8];
} memory;

static void set_threads(attack *self, int64_t threads)
{
    tn_error err;
    const tn_change changes[] = {tn_with_determinism(TN_BATCH_INVARIANT),
                                 tn_with_cpu_threads(threads)};
    if (tn_settings_change(changes, 2, &err))
        attack_found(self, "tn_settings_change: %s", err.message);
}

/* Compares bits; any NaN equals any other. */
static void compare_bits(attack *self, const char *what, const tn_tensor *whole,
                         const tn_tensor *alone, int64_t count)
{
    static double a[ELEMENTS], b[ELEMENTS];
    tn_error err;
    for (int i = 0; i < 2; i++) {
        tn_tensor from = i ? *alone : *whole;
        tn_tensor to = {.data = i ? b : a,
                        .device_type = TN_DLPACK_CPU,
                        .ndim = 1,
                        .dtype = TN_F64,
                        .shape = &count};
        from.shape = &count, from.ndim = 1;
        if (tn_cast(NULL, TN_ARGS(cast, .in = &from, .out = &to), &err))
            attack_found(self, "tn_cast: %s", err.message);
    }
    for (int64_t i = 0; i < count; i++)
        if (!(isnan(a[i]) && isnan(b[i])) && memcmp(&a[i], &b[i], sizeof a[i]) != 0)
            attack_found(self, "%s: element %lld is %.17g in one and %.17g in the other", what,
                         (long long)i, a[i], b[i]);
}

static tn_tensor operand_at(void *data, tn_dtype dtype, int ndim, int64_t *shape)
{
    return (tn_tensor){
        .data = data, .device_type = TN_DLPACK_CPU, .ndim = ndim, .dtype = dtype, .shape = shape};
}

static int64_t bytes_of(tn_dtype dtype)
{
    return (dtype >> 8 & 0xFF) / 8;
}

static tn_dtype random_float(dice *d)
{
    static const tn_dtype floats[] = {TN_F32, TN_F32, TN_F64, TN_F16, TN_BF16};
    return DICE_PICK(d, floats);
}

static void attack_products(attack *self, memory *at)
{
    dice *d = &self->dice;
    char what[128];
    int64_t batch = dice_range(d, 2, BATCH), m = dice_range(d, 1, 128), n = dice_range(d, 1, 128),
            k = dice_range(d, 1, 128), threads = dice_range(d, 2, 3);
    int64_t sa[] = {batch, m, k}, sb[] = {batch, k, n}, sc[] = {batch, m, n};
    tn_dtype dtype = random_float(d);
    tn_tensor a = operand_at(at->bytes[0], dtype, 3, sa),
              b = operand_at(at->bytes[1], dtype, 3, sb),
              c = operand_at(at->bytes[2], dtype, 3, sc),
              c2 = operand_at(at->bytes[3], dtype, 3, sc);
    bool special = dice_one_in(d, 2);
    tn_error err;
    fill_operand(self, &a, batch * m * k, special);
    fill_operand(self, &b, batch * k * n, special);
    snprintf(what, sizeof what, "matmul %s %lldx%lldx%lldx%lld", tn_dtype_name(dtype),
             (long long)batch, (long long)m, (long long)n, (long long)k);
    set_threads(self, 1);
    tn_status status = tn_matmul(NULL, TN_ARGS(matmul, .a = &a, .b = &b, .out = &c), &err);
    set_threads(self, threads);
    status = status ? status : tn_matmul(NULL, TN_ARGS(matmul, .a = &a, .b = &b, .out = &c2), &err);
    if (status)
        attack_found(self, "%s: %s", what, err.message);
    compare_bits(self, what, &c, &c2, batch * m * n);
    int64_t which = dice_range(d, 0, batch - 1), size = bytes_of(dtype);
    a.data = at->bytes[0] + which * m * k * size, b.data = at->bytes[1] + which * k * n * size;
    sa[0] = sb[0] = sc[0] = 1;
    if (tn_matmul(NULL, TN_ARGS(matmul, .a = &a, .b = &b, .out = &c2), &err))
        attack_found(self, "%s: %s", what, err.message);
    c.data = at->bytes[2] + which * m * n * size;
    compare_bits(self, what, &c, &c2, m * n);
}

static void attack_attention(attack *self, memory *at)
{
    dice *d = &self->dice;
    char what[128];
    int64_t batch = dice_range(d, 2, BATCH), h = dice_range(d, 1, 3), l = dice_range(d, 1, 80),
            k = dice_range(d, 1, 80), e = dice_range(d, 1, 64), threads = dice_range(d, 2, 3);
    int64_t sq[] = {batch, h, l, e}, sk[] = {batch, h, k, e};
    tn_dtype dtype = random_float(d);
    tn_tensor q = operand_at(at->bytes[0], dtype, 4, sq),
              key = operand_at(at->bytes[1], dtype, 4, sk),
              v = operand_at(at->bytes[2], dtype, 4, sk),
              out = operand_at(at->bytes[3], dtype, 4, sq),
              out2 = operand_at(at->bytes[4], dtype, 4, sq);
    bool special = dice_one_in(d, 2);
    int32_t mask = (int32_t)dice_range(d, 0, 2);
    tn_error err;
    fill_operand(self, &q, batch * h * l * e, special);
    fill_operand(self, &key, batch * h * k * e, special);
    fill_operand(self, &v, batch * h * k * e, special);
    snprintf(what, sizeof what, "attention %s %lldx%lldx%lldx%lldx%lld mask %d",
             tn_dtype_name(dtype), (long long)batch, (long long)h, (long long)l, (long long)k,
             (long long)e, mask);
    tn_attention_args args = {
        .struct_size = sizeof args, .q = &q, .k = &key, .v = &v, .out = &out, .mask = mask};
    set_threads(self, 1);
    tn_status status = tn_attention(NULL, &args, &err);
    set_threads(self, threads);
    args.out = &out2;
    status = status ? status : tn_attention(NULL, &args, &err);
    if (status)
        attack_found(self, "%s: %s", what, err.message);
    compare_bits(self, what, &out, &out2, batch * h * l * e);
    int64_t which = dice_range(d, 0, batch - 1), size = bytes_of(dtype);
    q.data = at->bytes[0] + which * h * l * e * size;
    key.data = at->bytes[1] + which * h * k * e * size;
    v.data = at->bytes[2] + which * h * k * e * size;
    sq[0] = sk[0] = 1;
    if (tn_attention(NULL, &args, &err))
        attack_found(self, "%s: %s", what, err.message);
    out.data = at->bytes[3] + which * h * l * e * size;
    compare_bits(self, what, &out, &out2, h * l * e);
}

void attack_bits(attack *self)
{
    memory *at = aligned_alloc(64, sizeof *at);
    if (!at)
        attack_found(self, "no memory");
    for (int i = 0; i < ROUNDS; i++) {
        self->tried++;
        if (dice_one_in(&self->dice, 2))
            attack_products(self, at);
        else
            attack_attention(self, at);
        self->accepted++;
    }
    free(at);
}
