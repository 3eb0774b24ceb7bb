/* Writes the state of each row of queries to the workspace, from where TMA copies it: lse and delta in arrays of their own, of
 * padded rows of each head. */
enum { THREADS = 256, PARTS = 8, ROWS = THREADS / PARTS };

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_backward_states(const __grid_constant__ backward_hopper_args args)
{
    const cuda_attention_args &of = args.at.of;
    const u32 blocks = (u32)args.padded / ROWS, number = blockIdx.x / blocks, b = number / (u32)of.heads;
    const int query = (int)((blockIdx.x - number * blocks) * ROWS + threadIdx.x / PARTS), part = (int)threadIdx.x % PARTS;
    const sequence s = sequence_of(of, (int)b);
    const view v = {query, (int)(number - b * (u32)of.heads), 0, 0};
    state mine = {nothing(), 0};
    if (query < s.queries)
        mine = state_of<PARTS>(args.at, s, v, part);
#pragma unroll
    for (int other = 1; other < PARTS; other *= 2)
        mine.delta += __shfl_xor_sync(0xFFFFFFFFu, mine.delta, other);
    if (part == 0) {
        args.lse[number * args.padded + query] = mine.lse;
        args.delta[number * args.padded + query] = mine.delta;
    }
}
