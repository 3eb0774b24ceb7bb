/* Random numbers: Philox's words made into numbers by the very text that the processor's are made by
 * (src/device/random), which stands before this. OUT is the dtype, KIND what is made: 0 words, 1 uniform
 * numbers, 2 normal ones. A thread makes what comes of one block of four words. */
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
        out[i].bits = tni_f16_nearest(x[i]);
}
DEVICE void make(const u32 w[4], bf16 out[4])
{
    f32 x[4];
    make(w, x);
    for (int i = 0; i < 4; i++)
        out[i].bits = tni_bf16_nearest(x[i]);
}
DEVICE void make(const u32 w[4], f64 out[2])
{
    tni_normals_f64(w[0] | (u64)w[1] << 32, w[2] | (u64)w[3] << 32, &out[0], &out[1]);
}
#endif

enum { EACH = sizeof(OUT) == 8 ? 2 : 4 };

extern "C" __global__ void random_blocks(const cuda_random_args args)
{
    OUT *out = (OUT *)args.out;
    const u64 all = (u64)args.elements, blocks = (all + EACH - 1) / EACH;
    const u64 step = (u64)gridDim.x * blockDim.x;
    const bool wide = (u64)args.out % sizeof(pack<OUT, EACH>) == 0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < blocks; i += step) {
        u32 words[4];
        alignas(16) OUT made[EACH];
        tn_philox_block(args.seed, args.subsequence, args.block + i, words);
        make(words, made);
        if (wide && (i + 1) * EACH <= all) {
            ((pack<OUT, EACH> *)out)[i] = *(const pack<OUT, EACH> *)made;
            continue;
        }
        for (int k = 0; k < EACH; k++) {
            if (i * EACH + k < all)
                out[i * EACH + k] = made[k];
        }
    }
}
