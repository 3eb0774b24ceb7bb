/* Copies before and after Fourier transforms by a library: between any strides, with a factor, conjugation, and the
 * symmetry that half spectra of real numbers have. NUMBER is f32 or f64; COMPLEX says whether elements are pairs of
 * these. */
#if COMPLEX
struct __align__(2 * sizeof(NUMBER)) element {
    NUMBER real, imaginary;
};
#else
typedef NUMBER element;
#endif

/* An element's offsets, and that of its mirror image. */
struct place {
    i64 from, mirror, to;
    bool symmetric;
};

template <typename INDEX> DEVICE place place_of(const cuda_fft_copy_args &args, INDEX number)
{
    place at = {0, 0, 0, false};
    for (int d = args.rank - 1; d >= 0; d--) {
        const INDEX size = (INDEX)args.size[d], next = d > 0 ? number / size : 0;
        const i64 i = (i64)(number - next * size);
        const bool is_last = d == args.rank - 1, turns = !is_last && d >= args.rank - args.dims;
        if (is_last)
            at.symmetric = (args.symmetric & 1 && i == 0) || (args.symmetric & 2 && i == args.size[d] - 1);
        at.from += i * args.stride[0][d];
        at.to += i * args.stride[1][d];
        at.mirror += (turns && i > 0 ? args.size[d] - i : i) * args.stride[0][d];
        number = next;
    }
    return at;
}

DEVICE void copy_element(const cuda_fft_copy_args &args, const place &at)
{
    element x = ((const element *)args.from)[at.from];
    const NUMBER scale = (NUMBER)args.scale;
#if COMPLEX
    if (at.symmetric) {
        const element y = ((const element *)args.from)[at.mirror];
        x.real = (NUMBER)0.5 * x.real + (NUMBER)0.5 * y.real;
        x.imaginary = (NUMBER)0.5 * x.imaginary - (NUMBER)0.5 * y.imaginary;
    }
    x.real *= scale;
    x.imaginary *= args.conjugate ? -scale : scale;
#else
    x *= scale;
#endif
    ((element *)args.to)[at.to] = x;
}

template <typename INDEX> DEVICE void copy_all(const cuda_fft_copy_args &args)
{
    const INDEX step = (INDEX)gridDim.x * blockDim.x;
    for (INDEX i = (INDEX)blockIdx.x * blockDim.x + threadIdx.x; i < (INDEX)args.elements; i += step)
        copy_element(args, place_of(args, i));
}

extern "C" __global__ void __launch_bounds__(256) fft_copy(const cuda_fft_copy_args args)
{
    if (args.elements < 1ll << 31)
        copy_all<u32>(args);
    else
        copy_all<u64>(args);
}
