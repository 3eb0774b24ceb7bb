/* Attention for video: the tokens are a grid of frames, rows and columns (the canvas), which is cut
 * into tiles of neighbouring tokens. Each tile of queries sees some tiles of keys.
 *
 * Thread-safety: Safe, if no other thread writes to the tensors. */
#ifndef TENON_ATTENTION_VIDEO_H
#define TENON_ATTENTION_VIDEO_H

#include "attention_sparse.h"

TN_BEGIN_DECLS

/* tn_attention_video_args.kind:
 *
 * TN_VIDEO_SLIDING_TILE  A tile sees the tiles in a window around it, which is counted in tiles.
 *     Along each axis these are the tiles within window / 2 (rounded down) of the centre: the
 *     query's tile, or at the ends of the canvas the nearest tile for which the window fits. A
 *     window that is larger than the canvas sees all of it. Tokens behind those of the canvas are
 *     text: every token sees them, and they see every token.
 * TN_VIDEO_SPARSE        A tile (cube) sees the tiles that matter most. The coarse stage is
 *     attention of the means of the queries, keys and values of each tile, rounded to their dtype.
 *     Each tile of queries selects the `keep` tiles of keys with the greatest coarse scores; of
 *     equal scores the first ones, and NaN is less than all others. The fine stage is attention
 *     over the tokens of the selected tiles. out = coarse stage * gate + fine stage. */
enum { TN_VIDEO_SLIDING_TILE = 0, TN_VIDEO_SPARSE, TN_VIDEO_COUNT };

/* q, k, v and out are as those of attention.h, in the raster order of the canvas: the token of frame
 * t, row h and column w is (t * rows + h) * columns + w. No copy of them in another order is made.
 * Tiles at the ends of the canvas may have fewer tokens.
 *
 * The call needs memory for tables, of 4 bytes for each slot of a tile and 4 for each tile that a
 * tile sees; sparse ones also memory proportional to queries * size. Tensors must be in memory that
 * the host can access.
 * Required operands: q, k, v; writes out. */
typedef struct tn_attention_video_args {
    size_t struct_size;
    const tn_tensor *q;
    const tn_tensor *k;
    const tn_tensor *v;
    const tn_tensor *out;
    const tn_tensor *gate;  /* sparse: of out's shape and q's dtype; NULL: 1 */
    const int64_t *canvas;  /* three numbers: frames, rows, columns; sliding: 0 is valid, too */
    const int64_t *tile;    /* three numbers; NULL: 6, 8, 8, sparse 4, 4, 4 */
    const int64_t *windows; /* sliding: three numbers for each of window_count windows */
    int64_t keep;           /* sparse: tiles to select, at least 1; 0: as `sparsity` says */
    double sparsity;        /* sparse: 0 to 1; keep is ceil((1 - sparsity) * tiles), at least 1 */
    double scale;           /* 0: 1 / sqrt(size), unless TN_ATTENTION_SET_SCALE is in `set` */
    int32_t kind;           /* TN_VIDEO_... */
    int32_t window_count;   /* sliding: 1, or one for each head of q */
    int32_t layout;         /* TN_LAYOUT_... of q, k, v, out, gate */
    uint32_t set;
    tn_stream *stream; /* NULL: the calling thread's current stream of the tensors' device */
    void *workspace;   /* memory on that device for tables and intermediate results, aligned to 64
                          bytes; NULL: allocated */
    uint64_t workspace_bytes;  /* its size; 0 if, and only if, workspace is NULL */
    const tn_tensor *selected; /* sparse: i32 [batch, heads, tiles, keep], contiguous; receives the
                                  tiles that each tile of queries selects, ascending; or NULL. If it
                                  is given and out is NULL, only the selection is computed, and v
                                  and gate are not read */
} tn_attention_video_args;
TN_ENDS_WITH(tn_attention_video_args, selected);

/* Fails with TN_INVALID_ARGUMENT for a wrong geometry, naming the numbers; with TN_UNSUPPORTED if the
 * tensors are not in memory that the host can access or no kernel computes a part; with TN_REFUSED if
 * settings exclude every kernel of a part. If it fails, out is unchanged, unless a kernel fails. */
TN_API tn_status tn_attention_video(const tn_context *context, const tn_attention_video_args *args,
                                    tn_error *err);

/* A call of an operator that a call consists of; one of several equal ones. */
typedef struct tn_attention_video_part {
    size_t struct_size;
    const char *stage;   /* "attention", "means", "scores", ...; static text */
    const char *problem; /* as tn_explain accepts it */
    const char *kernel;  /* "" if none can compute it */
} tn_attention_video_part;
TN_ENDS_WITH(tn_attention_video_part, kernel);

/* What a call consists of. Its strings are valid as long as it exists. */
typedef struct tn_attention_video_plan tn_attention_video_plan;
typedef struct tn_attention_video_info {
    size_t struct_size;
    int64_t tiles;            /* of the canvas */
    int64_t blocks;           /* the tiles, and the blocks of text, of as many tokens as a tile */
    int64_t slots;            /* of all blocks; some of the last tiles may be empty */
    int64_t keep;             /* tiles that each tile selects; 0 for sliding tiles */
    double density;           /* share of all pairs of blocks that is computed */
    uint64_t workspace_bytes; /* of tables and intermediate results */
    size_t parts;
} tn_attention_video_info;
TN_ENDS_WITH(tn_attention_video_info, parts);

/* Explains a call: the kernels of its parts. The data of tensors may be NULL: then 64-byte alignment
 * is assumed. The data is not read. */
TN_API tn_status tn_attention_video_explain(const tn_context *context,
                                            const tn_attention_video_args *args,
                                            tn_attention_video_plan **out, tn_error *err);
TN_API void tn_attention_video_plan_release(tn_attention_video_plan *plan); /* accepts NULL */

/* Set out->struct_size first. */
TN_API tn_status tn_attention_video_info_get(const tn_attention_video_plan *plan,
                                             tn_attention_video_info *out, tn_error *err);
TN_API const tn_attention_video_part *
tn_attention_video_part_get(const tn_attention_video_plan *plan, size_t index);

/* The tables of a canvas, for tn_attention_sparse: the blocks are the tiles, in raster order, and then
 * blocks of text, of as many tokens as a tile. A tile's tokens are in its first slots, in raster
 * order; the other slots are empty and have a token of the tile. Each pointer is to memory that is
 * filled, or NULL. */
typedef struct tn_attention_video_tables {
    size_t struct_size;
    int64_t text;    /* set by the caller: number of tokens of text */
    int64_t blocks;  /* set by the call, like the next two */
    int64_t slots;   /* of all blocks */
    int64_t entries; /* blocks that the blocks of all windows see; 0 without windows */
    int32_t *order;  /* [slots]: the token of each slot */
    int32_t *sizes;  /* [blocks]: slots that are not empty */
    int32_t *starts; /* [window_count][blocks + 1] */
    int32_t *listed; /* [entries]: the blocks that each block sees, ascending */
} tn_attention_video_tables;
TN_ENDS_WITH(tn_attention_video_tables, listed);

/* Reads only kind, canvas, tile, windows and window_count of `args`; any number of windows is valid.
 * Set io->struct_size and io->text first; with NULL pointers, the call returns the numbers. */
TN_API tn_status tn_attention_video_tables_get(const tn_attention_video_args *args,
                                               tn_attention_video_tables *io, tn_error *err);

TN_END_DECLS

#endif
