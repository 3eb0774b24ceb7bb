/* Attention for video by its sizes, as `tenon explain` takes it:
 *
 *     attention-video:DTYPE:kind=sliding-tile,canvas=30x48x80,tile=6x8x8,window=3x3x3,h=24,d=128[@DEVICE]
 */
#ifndef TENON_CLI_VIDEO_PROBLEM_H
#define TENON_CLI_VIDEO_PROBLEM_H

#include "tenon/tenon.h"

#include <stdbool.h>

typedef struct video_problem {
    char *text; /* canonical, with the device */
    tn_dtype dtype;
    tn_device *device;
    int64_t canvas[3], tile[3];
    int64_t *windows; /* window_count times three numbers */
    int64_t batch, heads, groups, size, text_tokens, gate;
    int64_t shapes[2][4]; /* of q, out and gate; of k and v */
    tn_tensor like_q, like_k;
    tn_attention_video_args args;
    tn_attention_video_plan *plan;
    tn_attention_video_info info;
} video_problem;

/* Whether a problem is attention for video. */
bool video_problem_is(const char *text);

/* Parses a problem and explains its parts. The caller releases *out. */
tn_status video_problem_create(const char *text, video_problem **out, tn_error *err);
void video_problem_release(video_problem *of); /* accepts NULL */

#endif
