/* Steps of loops whose sums take up nearly all vector registers of Arm. */
#ifndef TENON_BACKENDS_CPU_STEPS_H
#define TENON_BACKENDS_CPU_STEPS_H

#include "mask.h"

#if defined(__aarch64__)

/* Loads that follow are not moved before this: they would take registers from the sums. */
#define STEP_ENDS() __asm__ volatile("" ::: "memory")

/* sum + x[lane] y; `lane` is a constant. */
INLINE vf fma_lane_f32(vf x, const int lane, vf y, vf sum)
{
    const float32x4_t a = (float32x4_t)x, b = (float32x4_t)y, c = (float32x4_t)sum;
    switch (lane) {
    case 0: return (vf)vfmaq_laneq_f32(c, b, a, 0);
    case 1: return (vf)vfmaq_laneq_f32(c, b, a, 1);
    case 2: return (vf)vfmaq_laneq_f32(c, b, a, 2);
    default: return (vf)vfmaq_laneq_f32(c, b, a, 3);
    }
}

INLINE vd fma_lane_f64(vd x, const int lane, vd y, vd sum)
{
    const float64x2_t a = (float64x2_t)x, b = (float64x2_t)y, c = (float64x2_t)sum;
    return (vd)(lane == 0 ? vfmaq_laneq_f64(c, b, a, 0) : vfmaq_laneq_f64(c, b, a, 1));
}

#else
#define STEP_ENDS() ((void)0)
#endif

#endif
