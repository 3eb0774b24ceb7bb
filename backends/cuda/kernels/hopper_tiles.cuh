/* Tiles in shared memory as TMA writes them for the tensor cores of Hopper: chunks of 64 columns, so rows of 128 bytes, whose
 * units of 16 bytes are swizzled. Must follow hopper.cuh. */

/* Looks for elements that are not finite in BYTES bytes from `from` on; each thread of a warpgroup looks at a part, and gets a
 * number that is not 0 if it found one. Adding 1 to an exponent of all ones overflows into the sign bit. */
template <int BYTES> DEVICE u32 find_nonfinite_part(u32 from)
{
    const bool is_bf16 = sizeof DTYPE == sizeof "bf16";
    const u32 exponents = is_bf16 ? 0x7F807F80u : 0x7C007C00u, one = is_bf16 ? 0x00800080u : 0x04000400u;
    u32 found = 0;
#pragma unroll 4
    for (int at = threadIdx.x % 128 * 16; at < BYTES; at += 128 * 16) {
        u32 w[4];
        read_words(w, from + at);
#pragma unroll
        for (int i = 0; i < 4; i++)
            found |= (w[i] & exponents) + one;
    }
    return found & 0x80008000u;
}

/* Returns the bits of an element of a tile whose chunks have CHUNK_BYTES bytes. */
template <int CHUNK_BYTES> DEVICE u16 bits_at(u32 tile, int row, int column)
{
    u32 at = column / 64 * CHUNK_BYTES + row * 128 + column % 64 * 2;
    at ^= (at >> 3) & 0x70;
    return read_bits(tile + at);
}

/* Frees a buffer for the thread that loads: a warp's part. */
DEVICE void release(u32 barrier)
{
    if (threadIdx.x % 32 == 0)
        barrier_arrive(barrier);
}

/* The four lanes of a row transpose their words: lane x receives word x of each of them. */
DEVICE void transpose_words(u32 (&words)[4])
{
    const int x = threadIdx.x % 4;
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & bit)
                continue;
            const u32 got = __shfl_xor_sync(0xFFFFFFFFu, x & bit ? words[i] : words[i + bit], bit);
            words[i] = x & bit ? got : words[i];
            words[i + bit] = x & bit ? words[i + bit] : got;
        }
    }
}
