/* Random numbers: Philox words are converted to numbers by the same source as on the CPU (src/device/random),
 * which precedes this text. OUT is the dtype; KIND is 0 for words, 1 for uniform numbers, 2 for normal ones. A
 * thread computes the numbers of one block of four words. Narrow floats are rounded to nearest even, as on the
 * CPU, by the device's instructions. */
DEVICE void make(const u32 w[4], u32 out[4])
{
    for (int i = 0; i < 4; i++)
        out[i] = w[i];
}

#if KIND == 1
DEVICE void make(const u32 w[4], f32 out[4])
{
    for (int i = 0; i < 4; i++)
        out[i] = tni_uniform_f32(w[i]);
}
DEVICE void make(const u32 w[4], f16 out[4])
{
    for (int i = 0; i < 4; i++)
        out[i].bits = tni_uniform_f16(w[i]);
}
DEVICE void make(const u32 w[4], bf16 out[4])
{
    for (int i = 0; i < 4; i++)
        out[i].bits = tni_uniform_bf16(w[i]);
}
DEVICE void make(const u32 w[4], f64 out[2])
{
    out[0] = tni_uniform_f64(w[0] | (u64)w[1] << 32);
    out[1] = tni_uniform_f64(w[2] | (u64)w[3] << 32);
}
#elif KIND == 2
DEVICE void make(const u32 w[4], f32 out[4])
{
    tni_normals_f32(w[0], w[1], &out[0], &out[1]);
    tni_normals_f32(w[2], w[3], &out[2], &out[3]);
}
DEVICE void make(const u32 w[4], f16 out[4])
{
    f32 x[4];
    make(w, x);
    for (int i = 0; i < 4; i++)
        out[i] = f16_of(x[i]);
}
DEVICE void make(const u32 w[4], bf16 out[4])
{
    f32 x[4];
    make(w, x);
    for (int i = 0; i < 4; i++)
        out[i] = bf16_of(x[i]);
}
DEVICE void make(const u32 w[4], f64 out[2])
{
    tni_normals_f64(w[0] | (u64)w[1] << 32, w[2] | (u64)w[3] << 32, &out[0], &out[1]);
}
#endif

enum { EACH = sizeof(OUT) == 8 ? 2 : 4 };

DEVICE void make_block(const cuda_random_args &args, INDEX i, OUT out[EACH])
{
    u32 words[4];
    tn_philox_block(args.seed, args.subsequence, args.block + i, words);
    make(words, out);
}

/* Complete blocks are written at once if `out` is aligned to them; the rest one number at a time. */
extern "C" __global__ void random_blocks(const cuda_random_args args)
{
    typedef pack<OUT, EACH> numbers;
    OUT *out = (OUT *)args.out;
    const INDEX all = (INDEX)args.elements, blocks = (all + EACH - 1) / EACH;
    const INDEX whole = (u64)args.out % sizeof(numbers) == 0 ? all / EACH : 0;
    const INDEX step = (INDEX)gridDim.x * blockDim.x;
    INDEX i = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < whole; i += step) {
        numbers made;
        make_block(args, i, made.of);
        ((numbers *)out)[i] = made;
    }
    for (; i < blocks; i += step) {
        OUT made[EACH];
        make_block(args, i, made);
        for (INDEX k = i * EACH; k < all && k < i * EACH + EACH; k++)
            out[k] = made[k - i * EACH];
    }
}
