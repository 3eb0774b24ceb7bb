/* Dropout mask, from the same random numbers as on the CPU (tn_attention_keeps): a thread writes the results of one
 * Philox block of four words, 16 bits each. `out` must be aligned to 8 bytes. */
DEVICE u16 kept(const cuda_dropout_args &args, u32 word)
{
    return (u16)(word >> 8 >= args.least ? args.one : 0);
}

extern "C" __global__ void dropout_kept(const cuda_dropout_args args)
{
    typedef pack<u16, 4> numbers;
    const u32 all = (u32)args.elements, blocks = (all + 3) / 4;
    const u32 step = (u32)gridDim.x * blockDim.x;
    u16 *out = (u16 *)args.out;
    for (u32 i = (u32)blockIdx.x * blockDim.x + threadIdx.x; i < blocks; i += step) {
        u32 words[4];
        numbers made;
        tn_philox_block(args.seed, 0, args.block + i, words);
        for (int k = 0; k < 4; k++)
            made.of[k] = kept(args, words[k]);
        if (i * 4 + 4 <= all) {
            put(out + i * 4, made);
            continue;
        }
        for (u32 k = i * 4; k < all; k++)
            out[k] = made.of[k - i * 4];
    }
}
