/* Row-wise ops. GROUP threads share a row: a warp, or the whole block of 256. If PER is above 0, each thread
 * holds PER elements of the row in registers, so that it is read once, and FULL says that they are exactly
 * the row's; if PER is 0, the row is longer and is read again in each pass. A thread has VECTOR neighbouring
 * elements at a time, which are read and written at once if AT_ONCE; PER is a multiple of VECTOR. */
enum { GROUPS = BLOCK / GROUP };

/* Less than every finite number. */
DEVICE f32 lowest(f32) { return -__int_as_float(0x7F800000); }
DEVICE f64 lowest(f64) { return -__longlong_as_double(0x7FF0000000000000ll); }

/* Combines the values of all threads of a group. Every thread gets the result. */
template <typename JOIN, typename A> DEVICE A together(A value)
{
    return combined<JOIN, GROUP>(value);
}

/* Reads N neighbours, at once if WHOLE. */
template <int N, bool WHOLE, typename A, typename T>
DEVICE void read_some(const T *from, i64 first, i64 along, A *out)
{
    if (WHOLE) {
        pack<T, N> some = *(const pack<T, N> *)(from + first);
        for (int v = 0; v < N; v++)
            out[v] = (A)widened<T>(some.of[v]);
    } else {
        for (int v = 0; v < N; v++)
            out[v] = (A)widened<T>(from[(first + v) * along]);
    }
}

template <int N, bool WHOLE, typename A, typename T>
DEVICE void write_some(T *to, i64 first, i64 along, const A *values)
{
    if (WHOLE) {
        pack<T, N> some;
        for (int v = 0; v < N; v++)
            some.of[v] = narrowed<T>(values[v]);
        put(to + first, some);
    } else {
        for (int v = 0; v < N; v++)
            to[(first + v) * along] = narrowed<T>(values[v]);
    }
}

#if PER > 0
/* Returns the index in the row of the k-th element that a thread holds; has_place says whether the
 * row has it. */
DEVICE int place(int lane, int k)
{
    return ((k / VECTOR) * GROUP + lane) * VECTOR + k % VECTOR;
}

DEVICE bool has_place(const cuda_rows_args &args, int lane, int k)
{
    return FULL || place(lane, k) < (int)args.size;
}

/* Reads a thread's part of a row; elements beyond the row's end are `rest`. */
template <typename A, typename T>
DEVICE void read_row(const T *from, const cuda_rows_args &args, int operand, int lane, A rest, A *out)
{
    enum { SOME = AT_ONCE ? VECTOR : 1 };
    for (int k = 0; k < PER; k += SOME) {
        if (has_place(args, lane, k)) {
            read_some<SOME, AT_ONCE>(from, place(lane, k), args.along[operand], out + k);
        } else {
            for (int v = 0; v < SOME; v++)
                out[k + v] = rest;
        }
    }
}

template <typename A, typename T>
DEVICE void write_row(T *to, const cuda_rows_args &args, int operand, int lane, const A *values)
{
    enum { SOME = AT_ONCE ? VECTOR : 1 };
    for (int k = 0; k < PER; k += SOME) {
        if (has_place(args, lane, k))
            write_some<SOME, AT_ONCE>(to, place(lane, k), args.along[operand], values + k);
    }
}
#endif
