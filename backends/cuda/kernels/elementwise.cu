/* Elementwise ops: unary, binary, cast, fill, and copies of a dtype. COMPUTE(a, b) is the function, in the
 * type W in which elements are computed; INPUTS is the number of inputs; with WRAPS integers wrap around,
 * else they saturate; VECTOR elements are processed at once if all operands are dense and aligned. */
typedef work<IN>::type W;

#if INPUTS == 2
#define SECOND(b) widened<IN>(b)
#else
#define SECOND(b) (W)0
#endif

template <typename T> DEVICE OUT computed(T a, T b, const cuda_each_args &args)
{
#if INPUTS == 0
    return narrowed<OUT>(args.value);
#else
    W result = COMPUTE(widened<IN>(a), SECOND(b));
#if WRAPS
    return (OUT)result;
#else
    return narrowed<OUT>(result);
#endif
#endif
}

/* All operands must be dense and aligned to VECTOR elements. */
extern "C" __global__ void dense(const cuda_each_args args)
{
    typedef pack<IN, VECTOR> in_pack;
    typedef pack<OUT, VECTOR> out_pack;
    const IN *in = (const IN *)args.data[0], *other = (const IN *)args.data[2];
    OUT *out = (OUT *)args.data[1];
    const INDEX all = (INDEX)args.elements, packs = all / VECTOR;
    const INDEX first = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
    const INDEX step = (INDEX)gridDim.x * blockDim.x;
    in_pack a = {}, b = {};
    out_pack c;
    for (INDEX i = first; i < packs; i += step) {
#if INPUTS > 0
        a = ((const in_pack *)in)[i];
#endif
#if INPUTS > 1
        b = ((const in_pack *)other)[i];
#endif
        for (int k = 0; k < VECTOR; k++)
            c.of[k] = computed<IN>(a.of[k], b.of[k], args);
        put(out + i * VECTOR, c);
    }
    for (INDEX i = packs * VECTOR + first; i < all; i += step)
        out[i] = computed<IN>(INPUTS > 0 ? in[i] : a.of[0], INPUTS > 1 ? other[i] : b.of[0], args);
}

/* Any strides. */
extern "C" __global__ void strided(const cuda_each_args args)
{
    const IN *in = (const IN *)args.data[0], *other = (const IN *)args.data[2];
    OUT *out = (OUT *)args.data[1];
    const INDEX all = (INDEX)args.elements, step = (INDEX)gridDim.x * blockDim.x;
    for (INDEX i = (INDEX)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        INDEX left = i;
        i64 at_in = 0, at_out = 0, at_other = 0;
        for (int d = args.rank - 1; d >= 0; d--) {
            INDEX size = (INDEX)args.size[d], next = left / size;
            i64 here = (i64)(left - next * size);
            at_in += here * args.stride[0][d];
            at_out += here * args.stride[1][d];
            at_other += here * args.stride[2][d];
            left = next;
        }
        IN a = {}, b = {};
        if (INPUTS > 0)
            a = in[at_in];
        if (INPUTS > 1)
            b = other[at_other];
        out[at_out] = computed<IN>(a, b, args);
    }
}
