/* Instructions of tensor cores of capability 8.0 and later: products of a warp, reads of their operands from shared memory,
 * and copies to shared memory that run ahead; and conversions, which hopper.cuh's kernels use too. IN is the operands' type,
 * and DTYPE its name in PTX: "f16" or "bf16". Addresses in shared memory are 32-bit.
 *
 * With g = lane / 4 and x = lane % 4, a lane has of the 16 by 8 sums, in this order, row g, columns 2 x and 2 x + 1, and
 * row g + 8, the same columns; of the left operand, 16 by 16, pairs of a row: row g, columns 2 x, 2 x + 1; row g + 8, the
 * same; row g, columns 2 x + 8, 2 x + 9; row g + 8, the same; of the right operand, 16 by 8, pairs of a column g: rows
 * 2 x, 2 x + 1; rows 2 x + 8, 2 x + 9. The first of a pair is in the lower half. */
#ifdef __CUDA_ARCH__

/* The block's dynamic shared memory. */
#define SHARED_MEMORY(name) extern __shared__ __align__(16) u8 name[]

DEVICE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

/* sums += left right. */
DEVICE void add_product(f32 (&sums)[4], const u32 (&left)[4], u32 right0, u32 right1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." DTYPE "." DTYPE ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
}

/* Reads four 8 by 8 matrices of 16-bit elements. Lane i gives the address of row i % 8 of matrix i / 8, 16 bytes; of each
 * matrix it gets the pair 2 x, 2 x + 1 of row g; transposed, of column g. */
DEVICE void read_matrices(u32 (&out)[4], u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
}
DEVICE void read_transposed(u32 (&out)[4], u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
}

/* Two elements of 16 bits; the first is in the lower half. */
DEVICE u32 narrow_pair(f32 first, f32 second)
{
    u32 both;
    asm("cvt.rn." DTYPE "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

/* 2^x, with an error of about 2^-22 of it; below 2^-126 it is 0. */
DEVICE f32 exp2_of(f32 x)
{
    f32 y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Copies 16 bytes from global to shared memory; of these the first `bytes` are read, the others become 0. */
DEVICE void copy_ahead(u32 to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

/* Ends a group of this thread's copies; waits until at most LEFT of its groups are unfinished. */
DEVICE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> DEVICE void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

#endif

/* Converts an element of 16 bits, the lower half of `bits`. */
DEVICE f32 widen_bits(u32 bits)
{
    IN one;
    one.bits = (u16)bits;
    return widened<IN>(one);
}
