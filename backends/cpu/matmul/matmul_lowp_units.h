/* Packing of elements narrower than 32 bits in units: the 4 bytes of one line that a dot product
 * takes at once. A unit is four i8, two i8 widened to i16, or two 16-bit elements, consecutive
 * along k.
 *
 * A panel has its units in one of three orders. `BY_DEPTH`: the units of all its lines for one
 * place along k, then those of the next place. `BY_TWO`: the same, but for two places at once: a
 * line's two units are next to each other. `BY_LINE`: sixteen units along k of each line, as a row
 * of 64 bytes; rows of all lines, then those of the next sixteen places.
 *
 * Squares of LANES lines by LANES places are read in memory order, and transposed in registers if
 * the panel has the other order. */
#ifndef TENON_BACKENDS_CPU_MATMUL_LOWP_UNITS_H
#define TENON_BACKENDS_CPU_MATMUL_LOWP_UNITS_H

#include "../shared/transpose.h"
#include "matmul_panels.h"

enum { BYTES, WIDE_BYTES, PAIRS }; /* kinds of units */
enum { BY_DEPTH, BY_TWO, BY_LINE };
enum { RUN = 16, RUN_BYTES = 64 }; /* units of a line that are contiguous, BY_LINE */

/* Elements of a unit, and bytes of one of them in memory. */
INLINE int64_t unit_elements(int sort)
{
    return sort == BYTES ? 4 : 2;
}

INLINE int64_t unit_element_size(int sort)
{
    return sort == PAIRS ? 2 : 1;
}

/* Transposes the square. */
INLINE void turn_square(vu *x)
{
    vf y[LANES];
    UNROLLED for (int i = 0; i < LANES; i++) y[i] = (vf)x[i];
    transpose_f32(y);
    UNROLLED for (int i = 0; i < LANES; i++) x[i] = (vu)y[i];
}

/* Widens i8 to i16, in order. */
INLINE vu widen_bytes(const char *from)
{
#if defined(__AVX512BW__)
    return (vu)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)from));
#elif defined(__AVX2__)
    return (vu)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)from));
#else
    typedef int8_t bytes __attribute__((vector_size(2 * LANES)));
    typedef int16_t words __attribute__((vector_size(4 * LANES)));
    bytes v;
    memcpy(&v, from, sizeof v);
    return (vu) __builtin_convertvector(v, words);
#endif
}

/* Loads LANES units of a line with contiguous elements; zeros after the last element of the
 * line. */
INLINE vu read_line(int sort, const char *from, int64_t elements)
{
    const int64_t size = unit_element_size(sort), bytes = LANES * unit_elements(sort) * size;
    _Alignas(64) char room[4 * LANES];
    if (elements * size < bytes) {
        memset(room, 0, sizeof room);
        memcpy(room, from, (size_t)(elements * size));
        from = room;
    }
    return sort == WIDE_BYTES ? widen_bytes(from) : (vu)load_i32(from);
}

/* As read_line, for a line whose elements are `along` bytes apart. */
static inline vu read_apart(int sort, const char *from, int64_t along, int64_t elements)
{
    const int64_t size = unit_element_size(sort), most = LANES * unit_elements(sort);
    _Alignas(64) char room[4 * LANES] = {0};
    elements = least(elements, most);
    for (int64_t i = 0; i < elements; i++)
        memcpy(room + i * size, from + i * along, (size_t)size);
    return read_line(sort, room, most);
}

/* Copies fewer than 2 LANES bytes, followed by zeros. */
INLINE void copy_some(char *room, const char *from, int64_t bytes)
{
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    const __mmask32 some = ((__mmask32)1 << bytes) - 1;
    _mm256_store_si256((__m256i *)(void *)room, _mm256_maskz_loadu_epi8(some, from));
#else
    memset(room, 0, 2 * LANES);
    memcpy(room, from, (size_t)bytes);
#endif
}

/* Loads one element of each of LANES contiguous lines into the low bits of units; zeros after the
 * last line. */
INLINE vu read_elements(int sort, const char *from, int64_t lines)
{
    const int64_t size = unit_element_size(sort);
    _Alignas(64) char room[2 * LANES];
    if (lines < LANES) {
        copy_some(room, from, lines * size);
        from = room;
    }
    switch (sort) {
    case BYTES: return (vu)widen_u8(load_u8(from));
    case WIDE_BYTES: return (vu)widen_i8(load_i8(from)) & 0xffff;
    default: return widen_u16(load_u16(from));
    }
}

/* Adds the bytes of each unit to `total`. */
INLINE vu add_bytes(vu total, vu x)
{
#if defined(__AVX512VNNI__)
    return (vu)_mm512_dpbusd_epi32((__m512i)total, _mm512_set1_epi8(1), (__m512i)x);
#elif defined(__AVXVNNI__)
    return (vu)_mm256_dpbusd_avx_epi32((__m256i)total, _mm256_set1_epi8(1), (__m256i)x);
#else
    for (int shift = 0; shift < 32; shift += 8)
        total += (vu)((vi)(x << (24 - (uint32_t)shift)) >> 24);
    return total;
#endif
}

/* Loads one unit of each of LANES contiguous lines, from at most `elements` elements. */
INLINE vu read_across(int sort, const char *from, int64_t along, int64_t lines, int64_t elements)
{
    vu v = read_elements(sort, from, lines);
    if (elements > 1)
        v |= read_elements(sort, from + along, lines) << (sort == BYTES ? 8 : 16);
    if (sort == BYTES && elements > 2)
        v |= read_elements(sort, from + 2 * along, lines) << 16;
    if (sort == BYTES && elements > 3)
        v |= read_elements(sort, from + 3 * along, lines) << 24;
    return v;
}

/* Whether the lines are contiguous, and the elements of one line are not. */
INLINE bool lies_across(int sort, const tni_mm_pack *job)
{
    return job->across == unit_element_size(sort) && job->along != unit_element_size(sort);
}

/* Places that are read at once if lines are contiguous: eight rows of memory. */
INLINE int strip_places(int sort)
{
    return (int)(8 / unit_elements(sort));
}

/* Reads incomplete squares, and elements that are contiguous in neither direction; fills with
 * zeros. Not inlined, so that an object has it only once. */
static __attribute__((noinline)) void read_edge(int sort, const tni_mm_pack *job, const char *from,
                                                int64_t lines, int64_t elements, int places, vu *x)
{
    const int64_t per = unit_elements(sort);
    const bool together = job->along == unit_element_size(sort);
    for (int u = 0; u < places; u++) {
        const char *line = from + u * job->across, *place = from + u * per * job->along;
        if (lies_across(sort, job))
            x[u] = lines > 0 && u * per < elements
                       ? read_across(sort, place, job->along, lines, elements - u * per)
                       : (vu){0};
        else if (u < lines)
            x[u] = together ? read_line(sort, line, elements)
                            : read_apart(sort, line, job->along, elements);
        else
            x[u] = (vu){0};
    }
}

/* Converts a square as it was read, with a vector for each place if `across` and else for each line,
 * to vectors of two lines by two places, in the order in which BY_TWO writes them. */
INLINE void join_two(bool across, int places, vu *x)
{
#if defined(__aarch64__)
    if (across) {
        UNROLLED for (int u = 0; u < places; u += 2)
        {
            const uint32x4_t a = (uint32x4_t)x[u], b = (uint32x4_t)x[u + 1];
            x[u] = (vu)vzip1q_u32(a, b);
            x[u + 1] = (vu)vzip2q_u32(a, b);
        }
        return;
    }
    const uint64x2_t a = (uint64x2_t)x[0], b = (uint64x2_t)x[1];
    const uint64x2_t c = (uint64x2_t)x[2], d = (uint64x2_t)x[3];
    x[0] = (vu)vzip1q_u64(a, b);
    x[1] = (vu)vzip1q_u64(c, d);
    x[2] = (vu)vzip2q_u64(a, b);
    x[3] = (vu)vzip2q_u64(c, d);
#else
    (void)across, (void)places, (void)x;
#endif
}

/* Reads `want` lines from line i of the job on, and `places` places from q on. These counts and
 * `across` (lines are contiguous) are constants. Fewer places than LANES are allowed only with
 * `across`, and not BY_LINE. */
INLINE void read_square(int sort, int order, bool across, int want, int places,
                        const tni_mm_pack *job, int64_t i, int64_t q, vu *x)
{
    const int64_t per = unit_elements(sort), most = places * per;
    const char *from = job->from + i * job->across + q * per * job->along;
    const int64_t lines = least(job->lines - i, LANES), elements = job->depth - q * per;
    if (across && lines == LANES && elements >= most)
        UNROLLED for (int u = 0; u < places; u++) x[u] =
            read_across(sort, from + u * per * job->along, job->along, LANES, per);
    else if (!across && lines >= want && elements >= most && job->along == unit_element_size(sort))
        UNROLLED for (int u = 0; u < places; u++) x[u] =
            u < want ? read_line(sort, from + u * job->across, most) : (vu){0};
    else
        read_edge(sort, job, from, least(lines, across ? LANES : want), elements, places, x);
    if (order == BY_TWO)
        join_two(across, places, x);
    else if (across != (order == BY_DEPTH))
        turn_square(x);
}

/* How a set packs one operand; all fields are constants. */
typedef struct packing {
    int sort, order;
    int width;     /* lines of a panel */
    int units;     /* of a group */
    uint32_t flip; /* bits of every unit to invert */
    bool sums;     /* after the units, for each line: -128 times the sum of its bytes, as i32 */
} packing;

/* Destination of the units of one panel, from its line `first` on. */
typedef struct slot {
    char *panel;
    int first;
    int64_t units; /* of the panel */
} slot;

INLINE void write_square(packing it, const vu *x, int places, slot to, int64_t q)
{
    const int want = it.width - to.first < LANES ? it.width - to.first : LANES;
    if (it.order == BY_LINE) {
        char *at = to.panel + (q / RUN * it.width + to.first) * RUN_BYTES + q % RUN * 4;
        UNROLLED for (int u = 0; u < want; u++) memcpy(at + u * RUN_BYTES, &x[u], sizeof x[u]);
        return;
    }
    if (it.order == BY_TWO) { /* panels are whole vectors, and have whole pairs of places */
        for (int64_t u = 0; u < least(places, to.units - q); u++)
            store_i32(to.panel + ((q + u / 2 * 2) * it.width + 2 * to.first) * 4 +
                          u % 2 * (int64_t)sizeof x[u],
                      (vi)x[u]);
        return;
    }
    char *at = to.panel + (q * it.width + to.first) * 4;
    if (to.units - q >= places)
        UNROLLED for (int u = 0; u < places; u++)
            memcpy(at + u * it.width * 4, &x[u], 4 * (size_t)want);
    else
        for (int64_t u = 0; u < to.units - q; u++)
            memcpy(at + u * it.width * 4, &x[u], 4 * (size_t)want);
}

INLINE void add_sums(packing it, const vu *x, int places, slot to, int64_t q)
{
    char *at = to.panel + (to.units * it.width + to.first) * 4;
    vu total = {0};
    UNROLLED for (int u = 0; u < places; u++) total = add_bytes(total, x[u]);
    total = (q > 0 ? (vu)load_i32(at) : (vu){0}) - 128 * total;
    store_i32(at, (vi)total);
}

/* Packs places q to `end` of a strip of the lines from line i of the job on. */
INLINE void pack_strip(packing it, const tni_mm_pack *job, int64_t i, slot to, int64_t q,
                       int64_t end, bool across, int places)
{
    const int want = it.width - to.first < LANES ? it.width - to.first : LANES;
    for (; q < end; q += places) {
        vu x[LANES];
        read_square(it.sort, it.order, across, want, places, job, i + to.first, q, x);
        if (it.sums)
            add_sums(it, x, places, to, q);
        UNROLLED for (int u = 0; u < places; u++) x[u] ^= it.flip;
        write_square(it, x, places, to, q);
    }
}

/* Packs these places for a whole panel, which has at most three squares side by side. */
INLINE void pack_panel(packing it, const tni_mm_pack *job, int64_t i, int64_t q, int64_t end,
                       int64_t units, bool across, int places)
{
    slot to = {job->to + i / it.width * job->panel, 0, units};
    pack_strip(it, job, i, to, q, end, across, places);
    to.first = LANES;
    if (it.width > LANES)
        pack_strip(it, job, i, to, q, end, across, places);
    to.first = 2 * LANES;
    if (it.width > 2 * LANES)
        pack_strip(it, job, i, to, q, end, across, places);
}

/* Prefetches the elements that the next strip of places has beside a panel from line i on. */
INLINE void fetch_strip(int sort, const tni_mm_pack *job, int64_t i, int64_t q, int places)
{
    const int64_t per = unit_elements(sort), rows = places * per;
    if (i * unit_element_size(sort) % RUN_BYTES == 0)
        for (int64_t r = 0; r < rows; r++)
            tni_mm_fetch_ahead(job->from + i * job->across, (q * per + rows + r) * job->along, 1);
}

/* Packs an operand; memory is read sequentially in either layout. */
INLINE void pack_units(packing it, const tni_mm_pack *job)
{
    const int64_t group = it.units * unit_elements(it.sort);
    const int64_t units = parts(job->depth, group) * it.units;
    const int places = it.order == BY_LINE ? LANES : strip_places(it.sort);
    if (lies_across(it.sort, job)) {
        for (int64_t q = 0; q < units; q += places)
            for (int64_t i = 0; i < job->lines; i += it.width) {
                fetch_strip(it.sort, job, i, q, places);
                pack_panel(it, job, i, q, least(q + places, units), units, true, places);
            }
        return;
    }
    for (int64_t i = 0; i < job->lines; i += it.width)
        pack_panel(it, job, i, 0, units, units, false, LANES);
}

#endif
