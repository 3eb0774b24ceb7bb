/* What all blocks of a fill share. Included by each instruction set after its `vector` and `spread`. */
struct plan {
    vector key0[TN_PHILOX_ROUNDS], key1[TN_PHILOX_ROUNDS];
    vector mix, mix0, mix2, word3;
};

static struct plan plan_of(const tni_fill_source *source)
{
    tni_philox_start begun = tni_philox_begin(source->seed, source->subsequence, source->block);
    uint32_t key0 = (uint32_t)source->seed, key1 = (uint32_t)(source->seed >> 32);
    struct plan plan = {.mix = spread(begun.mix),
                        .mix0 = spread(begun.mix0),
                        .mix2 = spread(begun.mix2),
                        .word3 = spread(begun.word3)};
    for (int i = 0; i < TN_PHILOX_ROUNDS; i++) {
        plan.key0[i] = spread(key0);
        plan.key1[i] = spread(key1);
        key0 += TN_PHILOX_STEP_0;
        key1 += TN_PHILOX_STEP_1;
    }
    return plan;
}
