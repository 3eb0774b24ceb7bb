/* The part of fft_ref.c that is compiled twice. Parameters: REAL, the type that is computed in;
 * OF(name); MATH(name), its function of <math.h>. */

typedef struct OF(number) {
    REAL re, im;
} OF(number);
#define NUMBER OF(number)

static inline NUMBER OF(times)(NUMBER a, NUMBER b)
{
    return (NUMBER){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* exp(2 pi i k / n). The angle is reduced to at most pi / 4 in integers, where sine and cosine are
 * accurate. */
static NUMBER OF(root)(int64_t k, int64_t n)
{
    const REAL half_turn = (REAL)3.14159265358979323846264338327950288L;
    const int64_t eighth = 8 * k / n; /* which eighth of the turn */
    const int64_t quarters = (eighth + 1) / 2, rest = 4 * k - quarters * n; /* in 1 / 4 n */
    const REAL angle = half_turn / 2 * (REAL)rest / (REAL)n;
    const REAL c = MATH(cos)(angle), s = MATH(sin)(angle);
    switch (quarters & 3) {
    case 0: return (NUMBER){c, s};
    case 1: return (NUMBER){-s, c};
    case 2: return (NUMBER){-c, -s};
    default: return (NUMBER){s, -c};
    }
}

/* The memory of one slice: the block of numbers that is transformed, and two lines. */
typedef struct OF(slice) {
    const fft_job *job;
    NUMBER *block, *line, *other, *terms;
    const NUMBER *roots[TN_FFT_DIMS_MAX];
} OF(slice);

/* out[k] = the sum of in[j * step] roots[j k all / n] over the n elements; `all` is the length of
 * the roots. Splits off the smallest prime p of n: p transforms of n / p elements, then the sums. */
static void OF(transform)(const NUMBER *in, int64_t step, int64_t n, const NUMBER *roots,
                          int64_t all, NUMBER *out, NUMBER *terms)
{
    if (n == 1) {
        *out = *in;
        return;
    }
    const int64_t p = smallest_prime(n), m = n / p, turn = all / n;
    for (int64_t r = 0; r < p; r++)
        OF(transform)(in + r * step, step * p, m, roots, all, out + r * m, terms);
    for (int64_t k = 0; k < m; k++) {
        for (int64_t r = 0; r < p; r++)
            terms[r] = OF(times)(out[r * m + k], roots[r * k * turn]);
        for (int64_t q = 0; q < p; q++) {
            NUMBER sum = terms[0];
            for (int64_t r = 1; r < p; r++) {
                NUMBER term = OF(times)(terms[r], roots[r * q % p * m * turn]);
                sum.re += term.re, sum.im += term.im;
            }
            out[q * m + k] = sum;
        }
    }
}

/* Sets s->line to the line of a real transform whose first half begins at `half`. */
static void OF(mirror)(OF(slice) * s, const NUMBER *half, int64_t n)
{
    for (int64_t i = 0; i < n / 2 + 1; i++) {
        const bool real = i == 0 || 2 * i == n;
        s->line[i > 0 ? n - i : 0] = (NUMBER){half[i].re, real ? 0 : -half[i].im};
        s->line[i] = (NUMBER){half[i].re, real ? 0 : half[i].im};
    }
}

/* Transforms the dimension d of the block: every line along it. */
static void OF(transform_dim)(OF(slice) * s, int32_t d)
{
    const tn_fft_op *fft = s->job->fft;
    const int64_t n = fft->length[d];
    const bool half = d == fft->dims - 1 && fft->kind == TN_FFT_COMPLEX_TO_REAL;
    int64_t inner = 1;
    for (int32_t i = d + 1; i < fft->dims; i++)
        inner *= fft->length[i];
    for (int64_t number = 0; number < fft->points / n; number++) {
        NUMBER *first = s->block + number / inner * n * inner + number % inner;
        for (int64_t i = 0; i < n && !half; i++)
            s->line[i] = first[i * inner];
        if (half)
            OF(mirror)(s, first, n);
        OF(transform)(s->line, 1, n, s->roots[d], n, s->other, s->terms);
        for (int64_t i = 0; i < n; i++)
            first[i * inner] = s->other[i];
    }
}

/* Reads or writes the line of the operand's last dimension that begins at `at`. */
static void OF(read_line)(const fft_job *job, const char *at, int64_t count, NUMBER *to)
{
    const tn_layout *in = &job->run->op->operand[TN_FFT_IN];
    const int64_t step = in->stride[in->rank - 1] * job->in->bytes;
    double values[2 * TNI_REF_PIECE];
    for (int64_t first = 0, n; first < count; first += n) {
        n = count - first < TNI_REF_PIECE ? count - first : TNI_REF_PIECE;
        job->in->read(at + first * step, step, n, values);
        for (int64_t i = 0; i < n && job->in->parts == 1; i++)
            to[first + i] = (NUMBER){values[i], 0};
        for (int64_t i = 0; i < n && job->in->parts == 2; i++)
            to[first + i] = (NUMBER){values[2 * i], values[2 * i + 1]};
    }
}

static void OF(write_line)(const fft_job *job, const NUMBER *from, int64_t count, char *at)
{
    const tn_layout *out = &job->run->op->operand[TN_FFT_OUT];
    const int64_t step = out->stride[out->rank - 1] * job->out->bytes;
    const REAL scale = (REAL)job->fft->scale;
    double values[2 * TNI_REF_PIECE];
    for (int64_t first = 0, n; first < count; first += n) {
        n = count - first < TNI_REF_PIECE ? count - first : TNI_REF_PIECE;
        for (int64_t i = 0; i < n && job->out->parts == 1; i++)
            values[i] = (double)(from[first + i].re * scale);
        for (int64_t i = 0; i < n && job->out->parts == 2; i++) {
            values[2 * i] = (double)(from[first + i].re * scale);
            values[2 * i + 1] = (double)(from[first + i].im * scale);
        }
        job->out->write(values, n, at + first * step, step);
    }
}

/* A transform of the batch. The block has rows of n elements, of which real transforms read or write
 * the first half. */
static void OF(transform_one)(OF(slice) * s, int64_t number)
{
    const fft_job *job = s->job;
    const tn_fft_op *fft = job->fft;
    const int32_t last = fft->dims - 1;
    const int64_t n = fft->length[last], half = n / 2 + 1, rows = fft->points / n;
    const int64_t read = fft->kind == TN_FFT_COMPLEX_TO_REAL ? half : n;
    for (int64_t row = 0; row < rows; row++) {
        memset(s->block + row * n, 0, (size_t)n * sizeof(NUMBER));
        OF(read_line)(job, place_of_row(job, TN_FFT_IN, number, row), read, s->block + row * n);
    }
    for (int32_t d = 0; d <= last; d++)
        OF(transform_dim)(s, d);
    for (int64_t row = 0; row < rows; row++)
        OF(write_line)
    (job, s->block + row * n, fft->kind == TN_FFT_REAL_TO_COMPLEX ? half : n,
     place_of_row(job, TN_FFT_OUT, number, row));
}

/* Bytes of the roots of all dimensions, of a slice. */
static int64_t OF(bytes_of_roots)(const tn_fft_op *fft)
{
    int64_t count = 0;
    for (int32_t d = 0; d < fft->dims; d++)
        count += fft->length[d];
    return count * (int64_t)sizeof(NUMBER);
}

static int64_t OF(bytes_of_slice)(const tn_fft_op *fft)
{
    return (fft->points + 3 * longest(fft)) * (int64_t)sizeof(NUMBER);
}

/* Every `slices`-th transform of the batch. */
static void OF(transform_slice)(void *user, int64_t index)
{
    const fft_job *job = user;
    const tn_fft_op *fft = job->fft;
    const int64_t most = longest(fft);
    char *first = (char *)job->run->workspace + OF(bytes_of_roots)(fft);
    OF(slice)
    s = {.job = job, .block = (NUMBER *)(void *)(first + index * OF(bytes_of_slice)(fft))};
    const NUMBER *roots = job->run->workspace;
    s.line = s.block + fft->points;
    s.other = s.line + most;
    s.terms = s.other + most;
    for (int32_t d = 0; d < fft->dims; roots += fft->length[d++])
        s.roots[d] = roots;
    for (int64_t number = index; number < fft->batch; number += job->slices)
        OF(transform_one)(&s, number);
}

static void OF(run)(fft_job *job)
{
    const tn_run *run = job->run;
    const tn_fft_op *fft = job->fft;
    const REAL sign = fft->direction == TN_FFT_FORWARD ? -1 : 1;
    NUMBER *roots = run->workspace;
    for (int32_t d = 0; d < fft->dims; roots += fft->length[d++]) {
        for (int64_t k = 0; k < fft->length[d]; k++) {
            roots[k] = OF(root)(k, fft->length[d]);
            roots[k].im *= sign;
        }
    }
    job->slices =
        ((int64_t)run->workspace_bytes - OF(bytes_of_roots)(fft)) / OF(bytes_of_slice)(fft);
    job->slices = job->slices < fft->batch ? job->slices : fft->batch;
    if (job->slices > 1 && run->threads > 1) {
        run->host->parallel_for(run->host->self, job->slices, OF(transform_slice), job);
        return;
    }
    job->slices = 1;
    OF(transform_slice)(job, 0);
}

#undef NUMBER
#undef REAL
#undef OF
#undef MATH
