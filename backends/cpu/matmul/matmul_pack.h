/* Packs lines into panels of `width` lines, a constant. Contiguous lines are copied, lines that are
 * contiguous along k are transposed in registers, all others are packed element by element. Include
 * after a family (shared/family_f32_inc.h). */
#ifndef TENON_BACKENDS_CPU_MATMUL_PACK_H
#define TENON_BACKENDS_CPU_MATMUL_PACK_H

enum { F(PACK_ROWS) = 8 }; /* rows along k that are read at once */

/* Mask of the lanes of vector `v` that n lines use. */
INLINE F(mask) F(reach)(int64_t n, int v)
{
    int64_t left = n - (int64_t)v * WIDTH;
    return F(mask_first)(left < 0 ? 0 : left < WIDTH ? left : WIDTH);
}

/* Packs one element of each of n lines, padded with zeros. */
SPECIAL void F(pack_row)(REAL *to, const REAL *from, int64_t n, const int width)
{
    UNROLLED for (int v = 0; v * WIDTH < width; v++)
    {
        const REAL *at = from + v * WIDTH;
        bool whole = (v + 1) * WIDTH <= width;
        VECTOR x = whole && n == width ? F(load)(at) : F(load_some)(at, F(reach)(n, v));
        if (whole)
            F(store)(to + v * WIDTH, x);
        else
            F(store_some)(to + v * WIDTH, F(reach)(width, v), x);
    }
}

SPECIAL void F(pack_together)(const tni_mm_pack *job, const int width)
{
    for (int64_t first = 0; first < job->depth; first += F(PACK_ROWS)) {
        int64_t end = first + F(PACK_ROWS) < job->depth ? first + F(PACK_ROWS) : job->depth;
        char *panel = job->to;
        for (int64_t line = 0; line < job->lines; line += width, panel += job->panel) {
            int64_t n = job->lines - line < width ? job->lines - line : width;
            const char *from = job->from + line * (int64_t)sizeof(REAL);
            REAL *to = (REAL *)(void *)panel;
            if (n == width)
                for (int64_t p = first; p < end; p++) {
                    const char *const at = from + p * job->along;
                    tni_mm_fetch_ahead(at, F(PACK_ROWS) * job->along,
                                       width * (int64_t)sizeof(REAL));
                    F(pack_row)(to + p * width, (const REAL *)(const void *)at, width, width);
                }
            else
                for (int64_t p = first; p < end; p++)
                    F(pack_row)
            (to + p * width, (const REAL *)(const void *)(from + p * job->along), n, width);
        }
    }
}

/* Packs a square of `lanes` lines (a constant) by WIDTH elements. Unless `whole`, only n lines and
 * m elements of it exist. */
SPECIAL void F(pack_square)(const tni_mm_pack *job, const char *from, int64_t n, int64_t m,
                            REAL *to, const bool whole, const int lanes, const int width)
{
    VECTOR x[WIDTH];
    UNROLLED for (int i = 0; i < WIDTH; i++)
    {
        const REAL *line = (const REAL *)(const void *)(from + i * job->across);
        x[i] = (VECTOR){0};
        if (whole && i < lanes)
            x[i] = F(load)(line);
        else if (i < n)
            x[i] = F(load_some)(line, F(mask_first)(m));
    }
    F(transpose)(x);
    UNROLLED for (int i = 0; i < WIDTH; i++)
    {
        if (lanes == WIDTH && (whole || i < m))
            F(store)(to + i * width, x[i]);
        else if (whole || i < m)
            F(store_some)(to + i * width, F(mask_first)(lanes), x[i]);
    }
}

/* Packs `lanes` lines of a panel from `line` on. */
SPECIAL void F(pack_strip)(const tni_mm_pack *job, int64_t line, REAL *to, const int lanes,
                           const int width)
{
    const char *from = job->from + line * job->across;
    int64_t left = job->lines - line, n = left < lanes ? (left > 0 ? left : 0) : lanes, p = 0;
    if (n == lanes)
        for (; p + WIDTH <= job->depth; p += WIDTH)
            F(pack_square)
    (job, from + p * (int64_t)sizeof(REAL), lanes, WIDTH, to + p * width, true, lanes, width);
    for (; p < job->depth; p += WIDTH)
        F(pack_square)
    (job, from + p * (int64_t)sizeof(REAL), n, job->depth - p < WIDTH ? job->depth - p : WIDTH,
     to + p * width, false, lanes, width);
}

SPECIAL void F(pack_transposed)(const tni_mm_pack *job, const int width)
{
    char *panel = job->to;
    for (int64_t line = 0; line < job->lines; line += width, panel += job->panel) {
        REAL *to = (REAL *)(void *)panel;
        UNROLLED for (int i = 0; i < width; i += WIDTH)
            F(pack_strip)(job, line + i, to + i, width - i < WIDTH ? width - i : WIDTH, width);
    }
}

SPECIAL void F(pack_strided)(const tni_mm_pack *job, const int width)
{
    char *panel = job->to;
    for (int64_t line = 0; line < job->lines; line += width, panel += job->panel) {
        for (int64_t i = 0; i < width; i++) {
            REAL *to = (REAL *)(void *)panel + i;
            const char *from = job->from + (line + i) * job->across;
            if (line + i < job->lines)
                for (int64_t p = 0; p < job->depth; p++)
                    to[p * width] = *(const F(loose) *)(const void *)(from + p * job->along);
            else
                for (int64_t p = 0; p < job->depth; p++)
                    to[p * width] = 0;
        }
    }
}

SPECIAL void F(pack)(const tni_mm_pack *job, const int width)
{
    if (job->across == (int64_t)sizeof(REAL))
        F(pack_together)(job, width);
    else if (job->along == (int64_t)sizeof(REAL))
        F(pack_transposed)(job, width);
    else
        F(pack_strided)(job, width);
}

#endif
