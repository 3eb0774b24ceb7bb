/* Kernels of f32 and f64 attention and its backward pass, compiled for each instruction set and
 * dtype: the build defines ISA, and either REAL_F32 or REAL_F64. */
#include "../shared/transpose.h"
#include "attention_kernels.h"
#include "attention_sets.h"
#include "attention_weights.h"

#define HEIGHTS_6(X)  X(1) X(2) X(3) X(4) X(5) X(6)
#define HEIGHTS_8(X)  HEIGHTS_6(X) X(7) X(8)
#define HEIGHTS_14(X) HEIGHTS_8(X) X(9) X(10) X(11) X(12) X(13) X(14)
#if LANES == 16
#define TILE_ROWS   14
#define EACH_HEIGHT HEIGHTS_14
#elif defined(__aarch64__) /* and a vector of each row of A */
#define TILE_ROWS   8
#define EACH_HEIGHT HEIGHTS_8
#else
#define TILE_ROWS   6
#define EACH_HEIGHT HEIGHTS_6
#endif
#define COLUMNS (2 * WIDTH)

#define NAME_(dtype, isa) tni_at_##dtype##_##isa
#define NAME(dtype, isa)  NAME_(dtype, isa)

#if defined(REAL_F32)
#include "../shared/family_f32_inc.h"
#define TYPE     TN_F32
#define SET      NAME(f32, ISA)
#define BACK_SET NAME(back_f32, ISA)
#else
#include "../shared/family_f64_inc.h"
#define TYPE     TN_F64
#define SET      NAME(f64, ISA)
#define BACK_SET NAME(back_f64, ISA)
#endif

#include "attention_pack.h"
#include "attention_tiles.h"

#include "attention_steps.h"

#include "attention_few.h"
#include "attention_finish.h"

#include "attention_backward_steps.h"

const tni_at_set SET = {
    .rows = TILE_ROWS,
    .keys = COLUMNS,
    .columns = COLUMNS,
    .lanes = WIDTH,
    .real = sizeof(REAL),
    .few = TILE_ROWS < 8 ? TILE_ROWS : 8,
    .whole = 1,
    .panels = 16,
    .in_place = true,
    .q_row = F(q_row),
    .k_panel = F(k_panel),
    .v_line = COLUMNS * sizeof(REAL),
    .room = TILE_ROWS * F(SCORE_ROW) * sizeof(REAL),
    .pack_rows = F(pack_rows),
    .pack = F(pack),
    .step = F(step),
    .few_step = F(few_step),
#if defined(REAL_F32)
    .few_step_bf16 = F(few_step_bf16),
    .few_step_f16 = F(few_step_f16),
#endif
    .merge = F(merge),
    .weigh = F(weigh_whole),
    .finish = F(finish),
};
