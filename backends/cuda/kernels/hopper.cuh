/* Instructions of Hopper GPUs (sm_90a): products of warpgroups, copies of tiles, barriers in shared memory. Must follow mma.cuh,
 * and uses its DTYPE and its addresses in shared memory.
 *
 * A warpgroup is 128 threads. Its products are asynchronous: between wgmma_begin and the wait for their group, the
 * accumulators and registers that they read must not be touched.
 *
 * Thread t of a warpgroup has, of an accumulator of 64 rows by N columns, of row 16 (t / 32) + t % 32 / 4 + 8 r and column
 * 8 g + 2 (t % 4) + e, element 4 g + 2 r + e. */

/* The description of an operand in shared memory with rows of 128 bytes, swizzled in units of 8 rows: the distance of
 * units along the other dimension is `leading` (only if columns are contiguous), and along rows 1024 bytes. */
DEVICE u64 tile_of(u32 address, u32 leading)
{
    return (u64)((address & 0x3FFFFu) >> 4) | (u64)(leading >> 4) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

#ifdef __CUDA_ARCH__

/* The block's dynamic shared memory, where tiles can be swizzled. */
#define SHARED_TILES(name) extern __shared__ __align__(1024) u8 name[]

#define WGMMA_1 "%0,%1,%2,%3,%4,%5,%6,%7"
#define WGMMA_2 WGMMA_1 "," "%8,%9,%10,%11,%12,%13,%14,%15"
#define WGMMA_3 WGMMA_2 "," "%16,%17,%18,%19,%20,%21,%22,%23"
#define WGMMA_4 WGMMA_3 "," "%24,%25,%26,%27,%28,%29,%30,%31"
#define WGMMA_5 WGMMA_4 "," "%32,%33,%34,%35,%36,%37,%38,%39"
#define WGMMA_6 WGMMA_5 "," "%40,%41,%42,%43,%44,%45,%46,%47"
#define WGMMA_7 WGMMA_6 "," "%48,%49,%50,%51,%52,%53,%54,%55"
#define WGMMA_8 WGMMA_7 "," "%56,%57,%58,%59,%60,%61,%62,%63"
#define WGMMA_9 WGMMA_8 "," "%64,%65,%66,%67,%68,%69,%70,%71"
#define WGMMA_10 WGMMA_9 "," "%72,%73,%74,%75,%76,%77,%78,%79"
#define WGMMA_11 WGMMA_10 "," "%80,%81,%82,%83,%84,%85,%86,%87"
#define WGMMA_12 WGMMA_11 "," "%88,%89,%90,%91,%92,%93,%94,%95"
#define WGMMA_13 WGMMA_12 "," "%96,%97,%98,%99,%100,%101,%102,%103"
#define WGMMA_14 WGMMA_13 "," "%104,%105,%106,%107,%108,%109,%110,%111"
#define WGMMA_15 WGMMA_14 "," "%112,%113,%114,%115,%116,%117,%118,%119"
#define WGMMA_16 WGMMA_15 "," "%120,%121,%122,%123,%124,%125,%126,%127"

#define WGMMA_OCTET(d, i) \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
        "+f"(d[i + 7])
#define WGMMA_OF_1(d) WGMMA_OCTET(d, 0)
#define WGMMA_OF_2(d) WGMMA_OF_1(d), WGMMA_OCTET(d, 8)
#define WGMMA_OF_3(d) WGMMA_OF_2(d), WGMMA_OCTET(d, 16)
#define WGMMA_OF_4(d) WGMMA_OF_3(d), WGMMA_OCTET(d, 24)
#define WGMMA_OF_5(d) WGMMA_OF_4(d), WGMMA_OCTET(d, 32)
#define WGMMA_OF_6(d) WGMMA_OF_5(d), WGMMA_OCTET(d, 40)
#define WGMMA_OF_7(d) WGMMA_OF_6(d), WGMMA_OCTET(d, 48)
#define WGMMA_OF_8(d) WGMMA_OF_7(d), WGMMA_OCTET(d, 56)
#define WGMMA_OF_9(d) WGMMA_OF_8(d), WGMMA_OCTET(d, 64)
#define WGMMA_OF_10(d) WGMMA_OF_9(d), WGMMA_OCTET(d, 72)
#define WGMMA_OF_11(d) WGMMA_OF_10(d), WGMMA_OCTET(d, 80)
#define WGMMA_OF_12(d) WGMMA_OF_11(d), WGMMA_OCTET(d, 88)
#define WGMMA_OF_13(d) WGMMA_OF_12(d), WGMMA_OCTET(d, 96)
#define WGMMA_OF_14(d) WGMMA_OF_13(d), WGMMA_OCTET(d, 104)
#define WGMMA_OF_15(d) WGMMA_OF_14(d), WGMMA_OCTET(d, 112)
#define WGMMA_OF_16(d) WGMMA_OF_15(d), WGMMA_OCTET(d, 120)

/* product_of_tiles: sums (+)= A B^T, both operands in shared memory with contiguous rows; if not `add`, the sums are
 * overwritten. product_of_weights: sums (+)= A B, A in four registers, the columns of B contiguous. product_of_columns: sums (+)=
 * A^T B, the columns of both contiguous in shared memory. All take a step of 16. */
#define WGMMA(octets, n, a, b, p, a0, a1, a2, a3, rb, rp)                                                             \
    DEVICE void product_of_tiles(f32 (&sums)[8 * octets], u64 left, u64 right, int add)                               \
    {                                                                                                                 \
        asm volatile("{.reg .pred p; setp.ne.b32 p, " p ", 0;\n"                                                      \
                     "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." DTYPE "." DTYPE " {" WGMMA_##octets "}, " a      \
                     ", " b ", p, 1, 1, 0, 0;}"                                                                       \
                     : WGMMA_OF_##octets(sums)                                                                        \
                     : "l"(left), "l"(right), "r"(add));                                                              \
    }                                                                                                                 \
    DEVICE void product_of_weights(f32 (&sums)[8 * octets], const u32 *left, u64 right, int add)                      \
    {                                                                                                                 \
        asm volatile("{.reg .pred p; setp.ne.b32 p, " rp ", 0;\n"                                                     \
                     "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." DTYPE "." DTYPE " {" WGMMA_##octets "}, {" a0    \
                     "," a1 "," a2 "," a3 "}, " rb ", p, 1, 1, 1;}"                                                   \
                     : WGMMA_OF_##octets(sums)                                                                        \
                     : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(add));                 \
    }                                                                                                                 \
    DEVICE void product_of_columns(f32 (&sums)[8 * octets], u64 left, u64 right, int add)                             \
    {                                                                                                                 \
        asm volatile("{.reg .pred p; setp.ne.b32 p, " p ", 0;\n"                                                      \
                     "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." DTYPE "." DTYPE " {" WGMMA_##octets "}, " a      \
                     ", " b ", p, 1, 1, 1, 1;}"                                                                       \
                     : WGMMA_OF_##octets(sums)                                                                        \
                     : "l"(left), "l"(right), "r"(add));                                                              \
    }
WGMMA(4, "64", "%32", "%33", "%34", "%32", "%33", "%34", "%35", "%36", "%37")
WGMMA(5, "80", "%40", "%41", "%42", "%40", "%41", "%42", "%43", "%44", "%45")
WGMMA(6, "96", "%48", "%49", "%50", "%48", "%49", "%50", "%51", "%52", "%53")
WGMMA(7, "112", "%56", "%57", "%58", "%56", "%57", "%58", "%59", "%60", "%61")
WGMMA(8, "128", "%64", "%65", "%66", "%64", "%65", "%66", "%67", "%68", "%69")
WGMMA(9, "144", "%72", "%73", "%74", "%72", "%73", "%74", "%75", "%76", "%77")
WGMMA(10, "160", "%80", "%81", "%82", "%80", "%81", "%82", "%83", "%84", "%85")
WGMMA(11, "176", "%88", "%89", "%90", "%88", "%89", "%90", "%91", "%92", "%93")
WGMMA(12, "192", "%96", "%97", "%98", "%96", "%97", "%98", "%99", "%100", "%101")
WGMMA(13, "208", "%104", "%105", "%106", "%104", "%105", "%106", "%107", "%108", "%109")
WGMMA(14, "224", "%112", "%113", "%114", "%112", "%113", "%114", "%115", "%116", "%117")
WGMMA(15, "240", "%120", "%121", "%122", "%120", "%121", "%122", "%123", "%124", "%125")
WGMMA(16, "256", "%128", "%129", "%130", "%128", "%129", "%130", "%131", "%132", "%133")

DEVICE void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/* Waits until at most LEFT groups are unfinished. */
template <int LEFT> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"); }

/* Orders the compiler's use of accumulators after a wait. */
template <int N> DEVICE void wgmma_fence_sums(f32 (&sums)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(sums[i])::"memory");
}

template <int COUNT> DEVICE void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT)); }
template <int COUNT> DEVICE void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT)); }

DEVICE void barrier_init(u32 barrier, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
DEVICE void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void barrier_expect(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
DEVICE void barrier_arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Waits for the end of the phase with this parity. */
DEVICE void barrier_wait(u32 barrier, u32 parity)
{
    asm volatile("{.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* Copies a box of a tensor of four dimensions. */
DEVICE void load_box(const void *map, u32 to, u32 barrier, int column, int row, int head, int batch)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(
                     to),
                 "l"(map), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(batch)
                 : "memory");
}

/* Copies contiguous bytes, a multiple of 16. */
DEVICE void load_bytes(u32 to, const void *from, u32 barrier, u32 bytes)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
                 "r"(bytes), "r"(barrier)
                 : "memory");
}

/* Named barriers of groups of threads of a block. */
DEVICE void group_sync(int barrier, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); }
DEVICE void group_arrive(int barrier, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/* Returns whether `is` is true for any of the threads. */
DEVICE bool group_any(int barrier, int threads, bool is)
{
    u32 any;
    asm volatile("{.reg .pred p, q; setp.ne.u32 p, %3, 0;\n"
                 "barrier.cta.red.or.pred q, %1, %2, p; selp.u32 %0, 1, 0, q;}"
                 : "=r"(any)
                 : "r"(barrier), "r"(threads), "r"((u32)is)
                 : "memory");
    return any;
}

/* Reads from shared memory. */
DEVICE void read_words(u32 (&to)[4], u32 from)
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from));
}
DEVICE void read_floats(f32 (&to)[2], u32 from)
{
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "r"(from));
}
DEVICE u16 read_bits(u32 from)
{
    u16 bits;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(bits) : "r"(from));
    return bits;
}

#endif
