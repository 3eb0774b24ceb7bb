/* The instructions of hopper.cuh on the host, by the positions and addresses that NVIDIA's documentation of PTX states: products
 * of warpgroups, whose operands are read and whose sums are written when they are awaited; copies of TMA, which arrive when their
 * barrier is awaited; barriers in shared memory. So what is read before it was awaited is not there, and what is overwritten
 * before that is wrong. */
enum { HOST_GROUP = 128, HOST_PRODUCTS = 64, HOST_LOADS = 256 };

/* Waits for the other threads of `count`, from thread `first` on. All of them go on in the same turn. */
static unsigned host_meetings[2][HOST_THREADS], host_met[2][HOST_THREADS];
static unsigned long host_meeting_round[2][HOST_THREADS];
static void host_meet(unsigned count)
{
    const unsigned kind = count == HOST_GROUP, first = threadIdx.x / count * count;
    const unsigned meeting = host_meetings[kind][first];
    if (++host_met[kind][first] == count) {
        host_met[kind][first] = 0;
        host_meetings[kind][first]++;
        host_meeting_round[kind][first] = host_rounds;
    }
    do
        host_yield();
    while (meeting == host_meetings[kind][first] || host_rounds == host_meeting_round[kind][first]);
}

#define SHARED_TILES(name) SHARED_MEMORY(name)

/* A barrier in shared memory; it has the 8 bytes of the real one. */
struct host_barrier {
    uint8_t phase, reserved;
    int16_t count, pending_count;
    int16_t reserved_too;
};
static int64_t host_bytes_due[HOST_SHARED / 8]; /* of each barrier */
static host_barrier *host_barrier_at(unsigned at)
{
    if (at % 8 != 0 || at + 8 > HOST_SHARED)
        abort();
    return (host_barrier *)(host_shared + at);
}
static void host_settle(unsigned at)
{
    host_barrier *barrier = host_barrier_at(at);
    if (barrier->pending_count < 0)
        abort(); /* more arrivals than it was initialized for */
    if (barrier->pending_count == 0 && host_bytes_due[at / 8] == 0) {
        barrier->phase ^= 1;
        barrier->pending_count = barrier->count;
    }
}
static void barrier_init(unsigned at, unsigned count)
{
    *host_barrier_at(at) = {0, 0, (int16_t)count, (int16_t)count, 0};
    host_bytes_due[at / 8] = 0;
}
static void barrier_init_fence() {}
static void barrier_expect(unsigned at, unsigned bytes)
{
    host_bytes_due[at / 8] += bytes;
    host_barrier_at(at)->pending_count--;
    host_settle(at);
}
static void barrier_arrive(unsigned at)
{
    host_barrier_at(at)->pending_count--;
    host_settle(at);
}

/* Copies under way. */
struct host_load {
    unsigned to, barrier, bytes;
    const unsigned char *from; /* NULL: zeros */
};
static host_load host_loads[HOST_LOADS];
static unsigned host_loading;

static void host_finish_loads(unsigned barrier)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < host_loading; i++) {
        const host_load one = host_loads[i];
        if (one.barrier != barrier) {
            host_loads[kept++] = one;
            continue;
        }
        if (one.from)
            memcpy(host_shared + one.to, one.from, one.bytes);
        else
            memset(host_shared + one.to, 0, one.bytes);
        host_bytes_due[barrier / 8] -= one.bytes;
    }
    const bool any = kept != host_loading;
    host_loading = kept;
    if (any)
        host_settle(barrier);
}
static void host_start_load(unsigned to, unsigned barrier, unsigned bytes, const void *from)
{
    if (host_loading == HOST_LOADS || to % 16 != 0 || (uintptr_t)from % 16 != 0 ||
        to + bytes > HOST_SHARED)
        abort();
    memset(host_shared + to, 0xFF, bytes); /* not to be read now */
    host_loads[host_loading++] = {to, barrier, bytes, (const unsigned char *)from};
}
static void load_bytes(unsigned to, const void *from, unsigned barrier, unsigned bytes)
{
    host_start_load(to, barrier, bytes, from);
}

/* A tensor map: the words that `cuda.numbers` writes in place of the driver. */
struct host_tile {
    const unsigned char *memory;
    unsigned long long sizes[4], strides[4], rows;
};
static unsigned host_swizzle(unsigned at)
{
    return at ^ (at >> 7 & 7) << 4;
}
static void load_box(const void *map, unsigned to, unsigned barrier, int column, int row, int head,
                     int batch)
{
    host_tile tile;
    enum { UNITS = 8, UNIT = 16 };
    memcpy(&tile, map, sizeof tile);
    if (to % 1024 != 0)
        abort();
    for (unsigned r = 0; r < tile.rows; r++) {
        for (unsigned u = 0; u < UNITS; u++) {
            const unsigned long long first = (unsigned long long)column + u * UNIT / 2,
                                     at = (unsigned long long)row + r;
            const bool is = first < tile.sizes[0] && at < tile.sizes[1] &&
                            (unsigned)head < tile.sizes[2] && (unsigned)batch < tile.sizes[3];
            host_start_load(host_swizzle(to + r * 128 + u * UNIT), barrier, UNIT,
                            is ? tile.memory + first * 2 + at * tile.strides[1] +
                                     head * tile.strides[2] + batch * tile.strides[3]
                               : NULL);
            if (host_loading > HOST_LOADS / 2) { /* they may arrive at any time */
                host_load *one = &host_loads[--host_loading];
                if (one->from)
                    memcpy(host_shared + one->to, one->from, UNIT);
                else
                    memset(host_shared + one->to, 0, UNIT);
                host_bytes_due[barrier / 8] -= UNIT;
            }
        }
    }
}

/* A warp waits together; the thread that loads waits alone. */
static void barrier_wait(unsigned at, unsigned parity)
{
    const bool is_loader = threadIdx.x < HOST_GROUP;
    while (host_barrier_at(at)->phase == parity) {
        host_finish_loads(at);
        if (host_barrier_at(at)->phase == parity)
            host_yield();
    }
    if (!is_loader)
        host_meet(32);
}

template <int COUNT> static void take_registers() {}
template <int COUNT> static void give_registers() {}
static void group_sync(int, int)
{
    abort(); /* the barriers of the kernels that take turns are not here */
}
static void group_arrive(int, int)
{
    abort();
}
static bool group_any(int, int, bool is)
{
    const unsigned first = threadIdx.x / HOST_GROUP * HOST_GROUP;
    bool any = false;
    host_lanes[threadIdx.x] = is;
    host_meet(HOST_GROUP);
    for (unsigned t = first; t < first + HOST_GROUP; t++)
        any = any || host_lanes[t];
    host_meet(HOST_GROUP);
    return any;
}

static void read_words(uint32_t (&to)[4], unsigned from)
{
    memcpy(to, host_shared + from, sizeof to);
}
static void read_floats(float (&to)[2], unsigned from)
{
    memcpy(to, host_shared + from, sizeof to);
}
static uint16_t read_bits(unsigned from)
{
    uint16_t bits;
    memcpy(&bits, host_shared + from, sizeof bits);
    return bits;
}

/* Products of a thread that were not awaited. */
enum host_product_kind { HOST_TILES, HOST_WEIGHTS, HOST_COLUMNS };
struct host_product {
    host_product_kind kind;
    float *sums;
    unsigned columns, group;
    const uint32_t *weights;
    uint64_t left, right;
    bool add, is_bf16;
};
static host_product host_products[HOST_THREADS][HOST_PRODUCTS];
static unsigned host_started[HOST_THREADS], host_committed[HOST_THREADS];
static uint32_t host_weights[HOST_THREADS][4];
static float host_a[HOST_THREADS / HOST_GROUP][64][16], host_b[HOST_THREADS / HOST_GROUP][16][256];

static void host_begin_products(host_product one)
{
    const unsigned me = threadIdx.x;
    if (host_started[me] == HOST_PRODUCTS)
        abort();
    one.group = host_committed[me];
    host_products[me][host_started[me]++] = one;
}

/* An element of an operand with swizzled rows of 128 bytes: row `outer` and step `k` with contiguous rows; with contiguous
 * columns, column `outer` of row `k`. */
static float host_element(uint64_t of, bool is_columns, unsigned outer, unsigned k, bool is_bf16)
{
    const unsigned start = (unsigned)(of & 0x3FFF) << 4,
                   leading = (unsigned)(of >> 16 & 0x3FFF) << 4,
                   stride = (unsigned)(of >> 32 & 0x3FFF) << 4;
    if (of >> 62 != 1 || (of >> 49 & 7) != 0)
        abort();
    const unsigned at =
        is_columns ? start + outer / 64 * leading + k / 8 * stride + k % 8 * 128 + outer % 64 * 2
                   : start + outer / 8 * stride + outer % 8 * 128 + k * 2;
    return host_widened(read_bits(host_swizzle(at)), is_bf16);
}

static void host_run_product(const host_product &one)
{
    const unsigned me = threadIdx.x, group = me / HOST_GROUP, first = group * HOST_GROUP,
                   mine = me % HOST_GROUP;
    if (one.kind == HOST_WEIGHTS)
        memcpy(host_weights[me], one.weights, sizeof host_weights[me]);
    for (unsigned i = mine; i < one.columns * 16; i += HOST_GROUP)
        host_b[group][i % 16][i / 16] =
            host_element(one.right, one.kind != HOST_TILES, i / 16, i % 16, one.is_bf16);
    for (unsigned i = mine; one.kind != HOST_WEIGHTS && i < 64 * 16; i += HOST_GROUP)
        host_a[group][i / 16][i % 16] =
            host_element(one.left, one.kind == HOST_COLUMNS, i / 16, i % 16, one.is_bf16);
    host_meet(HOST_GROUP);
    for (unsigned i = mine; one.kind == HOST_WEIGHTS && i < 64 * 16; i += HOST_GROUP) {
        const unsigned row = i / 16, k = i % 16;
        const uint32_t both =
            host_weights[first + row / 16 * 32 + row % 8 * 4 + k % 8 / 2][row % 16 / 8 + k / 8 * 2];
        host_a[group][row][k] = host_widened((uint16_t)(both >> k % 2 * 16), one.is_bf16);
    }
    host_meet(HOST_GROUP);
    for (unsigned i = 0; i < one.columns / 2; i++) {
        const unsigned row = mine / 32 * 16 + mine % 32 / 4 + i / 2 % 2 * 8,
                       column = i / 4 * 8 + mine % 4 * 2 + i % 2;
        float sum = one.add ? one.sums[i] : 0;
        for (unsigned k = 0; k < 16; k++)
            sum += host_a[group][row][k] * host_b[group][k][column];
        one.sums[i] = sum;
    }
    host_meet(HOST_GROUP);
}

static void wgmma_begin() {}
static void wgmma_commit()
{
    host_committed[threadIdx.x]++;
}
template <int LEFT> static void wgmma_wait()
{
    const unsigned me = threadIdx.x, count = host_started[me];
    unsigned done = 0;
    host_meet(HOST_GROUP);
    while (done < count && host_products[me][done].group + LEFT < host_committed[me])
        host_run_product(host_products[me][done++]);
    host_started[me] -= done;
    memmove(host_products[me], host_products[me] + done,
            host_started[me] * sizeof host_products[me][0]);
}
template <int N> static void wgmma_fence_sums(float (&)[N]) {}

#define HOST_IS_BF16 (sizeof DTYPE == sizeof "bf16")
template <int N>
static void host_product_of(host_product_kind kind, float (&sums)[N], const uint32_t *weights,
                            uint64_t left, uint64_t right, int add, bool is_bf16)
{
    host_begin_products({kind, sums, 2 * N, 0, weights, left, right, add != 0, is_bf16});
}
#define product_of_tiles(sums, left, right, add) \
    host_product_of(HOST_TILES, sums, NULL, left, right, add, HOST_IS_BF16)
#define product_of_columns(sums, left, right, add) \
    host_product_of(HOST_COLUMNS, sums, NULL, left, right, add, HOST_IS_BF16)
#define product_of_weights(sums, left, right, add) \
    host_product_of(HOST_WEIGHTS, sums, left, 0, right, add, HOST_IS_BF16)
