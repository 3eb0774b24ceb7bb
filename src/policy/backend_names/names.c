#include "names.h"

#include "base/words.h"
#include "device/platform/known.h"
#include "tenon/sdpa.h"

const char *const tni_attention_backends[TN_BACKEND_COUNT + 1] = {
    [TN_BACKEND_FLASH_ATTN] = "FLASH_ATTN",
    [TN_BACKEND_SLIDING_TILE_ATTN] = "SLIDING_TILE_ATTN",
    [TN_BACKEND_TORCH_SDPA] = "TORCH_SDPA",
    [TN_BACKEND_SAGE_ATTN] = "SAGE_ATTN",
    [TN_BACKEND_VIDEO_SPARSE_ATTN] = "VIDEO_SPARSE_ATTN",
    [TN_BACKEND_NO_ATTENTION] = "NO_ATTENTION",
    [TN_BACKEND_SAGE_ATTN_THREE] = "SAGE_ATTN_THREE",
    [TN_BACKEND_ATTN_QAT_INFER] = "ATTN_QAT_INFER",
    [TN_BACKEND_ATTN_QAT_TRAIN] = "ATTN_QAT_TRAIN",
    [TN_BACKEND_VIDEO_SPARSE_ATTN_H3] = "VIDEO_SPARSE_ATTN_H3",
    [TN_BACKEND_BSA_ATTN] = "BSA_ATTN",
    [TN_BACKEND_VMOBA_ATTN] = "VMOBA_ATTN",
    [TN_BACKEND_SLA_ATTN] = "SLA_ATTN",
    [TN_BACKEND_SAGE_SLA_ATTN] = "SAGE_SLA_ATTN",
    [TN_BACKEND_NABLA_ATTN] = "NABLA_ATTN",
};

static const char *const abouts[TN_BACKEND_COUNT] = {
    [TN_BACKEND_FLASH_ATTN] = "dense, without storing scores",
    [TN_BACKEND_SLIDING_TILE_ATTN] = "windows of tiles of a video",
    [TN_BACKEND_TORCH_SDPA] = "dense, one of its family",
    [TN_BACKEND_SAGE_ATTN] = "dense, 8-bit queries and keys",
    [TN_BACKEND_VIDEO_SPARSE_ATTN] = "the best blocks of a video",
    [TN_BACKEND_NO_ATTENTION] = "rejects every call",
    [TN_BACKEND_SAGE_ATTN_THREE] = "dense, 4-bit: needs the fp4 of NVIDIA Blackwell",
    [TN_BACKEND_ATTN_QAT_INFER] = "dense, 4-bit, for inference",
    [TN_BACKEND_ATTN_QAT_TRAIN] = "dense, as if 4-bit, for training",
    [TN_BACKEND_VIDEO_SPARSE_ATTN_H3] = "the best blocks, packed with text",
    [TN_BACKEND_BSA_ATTN] = "sparse in queries and keys",
    [TN_BACKEND_VMOBA_ATTN] = "a mixture of blocks of a video",
    [TN_BACKEND_SLA_ATTN] = "sparse and linear together",
    [TN_BACKEND_SAGE_SLA_ATTN] = "sparse and linear together, quantised",
    [TN_BACKEND_NABLA_ATTN] = "blocks by their share of the weight",
};

static const char video[] = "tn_attention_video", python_video[] = "tenon.video in Python";

/* What computes those that the operator attention has no kernel for. */
static const char *const elsewhere[TN_BACKEND_COUNT] = {
    [TN_BACKEND_SLIDING_TILE_ATTN] = video, [TN_BACKEND_SAGE_ATTN] = "tn_attention_quantized",
    [TN_BACKEND_VIDEO_SPARSE_ATTN] = video, [TN_BACKEND_VIDEO_SPARSE_ATTN_H3] = python_video,
    [TN_BACKEND_BSA_ATTN] = python_video,   [TN_BACKEND_VMOBA_ATTN] = python_video,
    [TN_BACKEND_SLA_ATTN] = python_video,   [TN_BACKEND_NABLA_ATTN] = python_video,
};

static const char *const words[TNI_SDP_COUNT] = {[TN_SDP_FLASH] = "flash",
                                                 [TN_SDP_MEM_EFFICIENT] = "mem_efficient",
                                                 [TN_SDP_MATH] = "math",
                                                 [TN_SDP_CUDNN] = "cudnn",
                                                 [TN_SDP_OVERRIDEABLE] = "overrideable"};

static const char family[] = "TORCH_SDPA";

static bool is_numbered(int32_t number)
{
    return number > 0 && number < TN_BACKEND_COUNT;
}

const char *tni_backend_name(int32_t number)
{
    return is_numbered(number) ? tni_attention_backends[number] : NULL;
}

const char *tni_backend_about(int32_t number)
{
    return is_numbered(number) ? abouts[number] : NULL;
}

const char *tni_backend_elsewhere(int32_t number)
{
    return is_numbered(number) ? elsewhere[number] : NULL;
}

int32_t tni_backend_number(const char *name)
{
    for (int32_t i = 1; i < TN_BACKEND_COUNT; i++) {
        if (tni_words_same(tni_attention_backends[i], name))
            return i;
    }
    return TN_BACKEND_NONE;
}

const char *tni_sdp_word(int32_t sdp)
{
    return sdp >= 0 && sdp < TNI_SDP_COUNT ? words[sdp] : NULL;
}

tn_setting tni_sdp_switch(int32_t sdp)
{
    static const tn_setting of[TNI_SDP_COUNT] = {
        [TN_SDP_FLASH] = TN_SETTING_CUDA_FLASH_SDP,
        [TN_SDP_MEM_EFFICIENT] = TN_SETTING_CUDA_MEM_EFFICIENT_SDP,
        [TN_SDP_MATH] = TN_SETTING_CUDA_MATH_SDP,
        [TN_SDP_CUDNN] = TN_SETTING_CUDA_CUDNN_SDP,
        [TN_SDP_OVERRIDEABLE] = TN_SETTING_CUDA_OVERRIDEABLE_SDP};
    return of[sdp];
}

const char *tn_attention_backend_name(int32_t backend)
{
    const char *name = tni_backend_name(backend);
    return name ? name : "unknown";
}

const char *tn_sdp_name(int32_t sdp)
{
    const char *word = tni_sdp_word(sdp);
    return word ? word : "unknown";
}

const char *tni_backend_spelling(const char *name)
{
    int32_t number = tni_backend_number(name);
    return number ? tni_backend_name(number) : name;
}

static const char flash_attn[] = "FLASH_ATTN";
static const char cudnn[] = "cudnn";

/* A backend of this name also has these names. cuDNN's attention also has the name FLASH_ATTN, for
 * the GPUs and problems that CUDA's own kernel with this name does not support. It obeys
 * cuda.cudnn_sdp, not cuda.flash_sdp. */
static const struct others {
    const char *name;
    const char *other[3];
} others[] = {
    {flash_attn, {"flash", family}}, {"flash", {flash_attn, family}},
    {"mem_efficient", {family}},     {"math", {family}},
    {cudnn, {flash_attn, family}},   {"overrideable", {family}},
    {"ref", {"math", family}},
};

static const struct others *find_others(const char *name)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (tni_words_same(others[i].name, name))
            return &others[i];
    }
    return NULL;
}

static bool is_out_of_tree(const char *platform)
{
    for (int32_t kind = TN_PLATFORM_CPU; kind < TN_PLATFORM_OOT; kind++) {
        if (strcmp(tni_known_get(kind)->word, platform) == 0)
            return false;
    }
    return true;
}

const char *tni_backend_op(const tn_kernel_row *row)
{
    return row->op == TN_OP_ATTENTION_BACKWARD ? "attention" : NULL;
}

const char *const *tni_backend_others(const tn_kernel_row *row)
{
    static const char *const stranger[] = {"overrideable", family, NULL};
    if (row->op != TN_OP_ATTENTION && row->op != TN_OP_ATTENTION_BACKWARD)
        return NULL;
    const struct others *found = row->backend ? find_others(row->backend) : NULL;
    if (found)
        return found->other;
    return is_out_of_tree(row->platform) ? stranger : NULL;
}

bool tni_backend_is(const tni_candidate *candidate, const char *name)
{
    if (tni_words_same(candidate->backend, name))
        return true;
    for (const char *const *it = candidate->backend_others; it && *it; it++) {
        if (tni_words_same(*it, name))
            return true;
    }
    return false;
}

bool tni_backend_is_borrowed(const tni_candidate *candidate, const char *name)
{
    return tni_words_same(candidate->backend, cudnn) && tni_words_same(name, flash_attn);
}

int32_t tni_backend_sdp(const tni_candidate *candidate)
{
    for (int32_t sdp = 0; sdp < TNI_SDP_COUNT; sdp++) {
        if (tni_backend_is(candidate, words[sdp]))
            return sdp;
    }
    return -1;
}

tni_candidate tni_sdp_candidate(int32_t sdp, const char *platform)
{
    return (tni_candidate){.op = "attention",
                           .kernel = "",
                           .library = sdp == TN_SDP_CUDNN ? words[sdp] : "",
                           .library_other = "",
                           .backend = words[sdp],
                           .backend_others = find_others(words[sdp])->other,
                           .platform = platform,
                           .language = ""};
}

/* Returns the backend name of a row of attention; "" for every other row. */
static const char *name_of(const tni_kernel *kernel)
{
    bool is_attention =
        kernel->row->op == TN_OP_ATTENTION || kernel->row->op == TN_OP_ATTENTION_BACKWARD;
    return is_attention ? kernel->names.backend : "";
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (tni_words_same(names[i], name))
            return true;
    }
    return false;
}

/* Lists the numbered names and the family. Returns their number. */
enum { OWN_NAMES = TN_BACKEND_COUNT - 1 + TNI_SDP_COUNT };
static size_t list_own(const char *out[OWN_NAMES])
{
    size_t count = 0;
    for (int32_t i = 1; i < TN_BACKEND_COUNT; i++)
        out[count++] = tni_backend_name(i);
    for (int32_t i = 0; i < TNI_SDP_COUNT; i++)
        out[count++] = words[i];
    return count;
}

bool tni_backend_is_known(const char *name)
{
    const tni_kernel *kernel;
    const char *own[OWN_NAMES];
    bool known = is_among(name, own, list_own(own));
    for (size_t i = 0; !known && (kernel = tni_kernel_at(i)); i++)
        known = tni_words_same(name_of(kernel), name);
    return known;
}

tn_status tni_backend_unknown(const char *name, const char *where, tn_error *err)
{
    enum { MOST = 64 };
    const tni_kernel *kernel;
    const char *names[MOST];
    char hint[TNI_OFFER];
    size_t count = list_own(names);
    for (size_t i = 0; count < MOST && (kernel = tni_kernel_at(i)); i++) {
        const char *more = name_of(kernel);
        if (more[0] && !is_among(more, names, count))
            names[count++] = more;
    }
    return tn_fail(err, TN_NOT_FOUND, 0, where,
                   "attention.backend: no attention backend \"%.60s\"%s", name,
                   tni_words_offer(name, names, count, hint));
}

tn_status tn_attention_backend_find(const char *name, int32_t *out, tn_error *err)
{
    static const char where[] = "tn_attention_backend_find";
    char hint[TNI_OFFER];
    if (!name || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", name ? "out" : "the name");
    int32_t number = tni_backend_number(name);
    if (!number)
        return tn_fail(
            err, TN_NOT_FOUND, 0, where, "no attention backend \"%.60s\"%s", name,
            tni_words_offer(name, tni_attention_backends + 1, TN_BACKEND_COUNT - 1, hint));
    *out = number;
    return TN_OK;
}
