#include "backends.h"

#include "candidates.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

enum { HEAD_SIZE = 128 };

/* How a backend is computed that is no name of a kernel of attention. */
enum { ORDERED, LISTED, PACKED, QUANTIZED, WAYS };

/* A problem of each: its operator, its fields beside h and d, and the device; NULL: the best one. */
static const struct {
    const char *op, *fields, *device;
} ways[] = {[ORDERED] = {"attention-sparse", "l=1024,bq=64,entries=64,slots=1024", NULL},
            [LISTED] = {"attention-sparse", "l=1024,bq=64,out=f32", "cpu:0"},
            [PACKED] = {"attention", "varlen=1024,lse=1,out=f32", "cpu:0"},
            [QUANTIZED] = {"attention-quantized", "l=1024,weights=u8", "cpu:0"}};

#define NO_FP4 "it multiplies 4-bit floats (fp4), and there is no kernel for fp4"

/* The other names: by which way and function, or without one, why nothing computes them. */
static const struct {
    int32_t number, way;
    const char *what;
} others[] = {
    {TN_BACKEND_SLIDING_TILE_ATTN, ORDERED, "tn_attention_video, kind sliding tile"},
    {TN_BACKEND_VIDEO_SPARSE_ATTN, ORDERED, "tn_attention_video, kind sparse"},
    {TN_BACKEND_VIDEO_SPARSE_ATTN_H3, LISTED, "tenon.video.video_sparse_h3_attention, on the CPU"},
    {TN_BACKEND_BSA_ATTN, LISTED, "tenon.video.bsa_attention, on the CPU"},
    {TN_BACKEND_VMOBA_ATTN, PACKED, "tenon.video.vmoba_attention, on the CPU"},
    {TN_BACKEND_SLA_ATTN, LISTED, "tenon.video.sla_attention, on the CPU"},
    {TN_BACKEND_NABLA_ATTN, LISTED, "tenon.video.nabla_attention, on the CPU"},
    {TN_BACKEND_SAGE_ATTN, QUANTIZED, "tn_attention_quantized, on the CPU"},
    {TN_BACKEND_SAGE_ATTN_THREE, WAYS, NO_FP4},
    {TN_BACKEND_ATTN_QAT_INFER, WAYS, NO_FP4},
    {TN_BACKEND_ATTN_QAT_TRAIN, WAYS,
     "it trains with operands rounded to 4-bit floats (fp4), and there is no kernel for fp4"},
    {TN_BACKEND_SAGE_SLA_ATTN, WAYS,
     "there is no kernel in 8 bits for listed blocks; SLA_ATTN computes the same without rounding"},
};

enum { OTHERS = sizeof others / sizeof others[0] };

static size_t find_other(int32_t number)
{
    size_t i = 0;
    while (i < OTHERS && others[i].number != number)
        i++;
    return i;
}

/* Fills a row from a decision on the operator of its way; NULL: none computes it. */
static void read_other(const tn_decision *decision, const char *what, found_backend *out)
{
    const tn_candidate *chosen = decision ? tn_decision_chosen(decision) : NULL;
    const char *message = what;
    if (decision && !chosen)
        (void)tn_decision_status(decision, &message);
    tn_text_fit(out->kernel, sizeof out->kernel, chosen ? chosen->kernel : "");
    tn_text_fit(out->what, sizeof out->what, message);
}

/* Fills a row from a decision on attention. */
static void read_backend(const tn_decision *decision, found_backend *out)
{
    for (size_t i = 0; i < tn_decision_backend_count(decision); i++) {
        const tn_backend *row = tn_decision_backend(decision, i);
        text_line why = {0};
        if (row->family[0] || strcmp(row->name, out->name) != 0)
            continue;
        if (row->why)
            tni_phrase_refusal(row->why, &why);
        else
            tn_text_fit(out->kernel, sizeof out->kernel, row->kernel);
        tn_text_fit(out->what, sizeof out->what, why.text);
    }
    if (!out->kernel[0] && !out->what[0])
        tn_text_fit(out->what, sizeof out->what,
                    strcmp(out->name, "NO_ATTENTION") == 0 ? "the layer computes nothing"
                                                           : "no kernel here has this name");
}

/* Asks for a layer of each way. */
static tn_status explain_ways(const char *device, tn_decision *out[WAYS], tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < WAYS && !status; i++) {
        char problem[128];
        snprintf(problem, sizeof problem, "%s:bf16:h=1,d=%d,%s@%s", ways[i].op, (int)HEAD_SIZE,
                 ways[i].fields, ways[i].device ? ways[i].device : device);
        status = tn_explain(NULL, problem, &out[i], err);
    }
    return status;
}

tn_status backends_gather(found_backends *out, tn_error *err)
{
    tn_decision *attention = NULL, *by_way[WAYS] = {NULL};
    *out = (found_backends){0};
    tn_status status = tn_attention_backend_explain(
        NULL, TN_ARGS(attention_backend, .head_size = HEAD_SIZE, .dtype = TN_BF16), &attention,
        err);
    if (status)
        return status;
    const char *device = tn_device_id(tn_decision_device(attention));
    snprintf(out->problem, sizeof out->problem, "bf16, heads of %d, on %s", (int)HEAD_SIZE, device);
    status = explain_ways(device, by_way, err);
    for (int32_t number = 1; number < TN_BACKEND_COUNT && !status; number++) {
        found_backend *row = &out->rows[out->count++];
        const size_t other = find_other(number);
        row->name = tn_attention_backend_name(number);
        if (other == OTHERS)
            read_backend(attention, row);
        else
            read_other(others[other].way == WAYS ? NULL : by_way[others[other].way],
                       others[other].what, row);
    }
    tn_decision_release(attention);
    for (size_t i = 0; i < WAYS; i++)
        tn_decision_release(by_way[i]);
    return status;
}
