/* Sums of products in REAL. `dot` uses four accumulators, for instruction-level parallelism, in a
 * fixed order.
 *
 * Parameters: REAL and OF(name), as in attention_ref_inc.h, which includes this; they stay defined. */
static REAL OF(dot)(const double *a, const double *b, int64_t count)
{
    REAL sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (int64_t lane = 0; lane < 4; lane++)
            sum[lane] += (REAL)a[i + lane] * b[i + lane];
    }
    for (; i < count; i++)
        sum[0] += (REAL)a[i] * b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void OF(add)(REAL factor, const double *row, int64_t count, REAL *sum)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] += factor * row[i];
}
