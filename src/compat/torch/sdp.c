/* The controls of the family: scopes for its switches and its order, and whether its kernels are
 * available. */
#include "policy/backend_names/names.h"

#include "dispatch/judge.h"
#include "os/cpu.h"
#include "os/cpu_level.h"
#include "settings/table.h"
#include "tenon/sdpa.h"

/* Writes "math,flash" followed by the others in their previous order. */
static void write_order(const int32_t *first, size_t count, const int32_t *before, char *out,
                        size_t size)
{
    uint32_t named = 0;
    size_t used = 0;
    for (size_t i = 0; i < count + TNI_SDP_COUNT && used < size; i++) {
        int32_t sdp = i < count ? first[i] : before[i - count];
        if (named >> sdp & 1)
            continue;
        named |= UINT32_C(1) << sdp;
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "", tni_sdp_word(sdp));
    }
}

/* Returns the order in effect for the calling thread, by TN_SDP_... */
static void read_order(int32_t out[TNI_SDP_COUNT])
{
    char text[128];
    int64_t digits = 0;
    const tni_setting_row *row = tni_setting_row_of(TN_SETTING_CUDA_SDP_PRIORITY);
    (void)tn_setting_write(NULL, TN_SETTING_CUDA_SDP_PRIORITY, text, sizeof text);
    (void)tni_order_parse(row, text, &digits, "", NULL); /* the table's own text */
    for (int32_t i = 0; i < TNI_SDP_COUNT; i++, digits >>= 4)
        out[i] = (int32_t)(digits & 15) - 1;
}

tn_status tn_sdpa_kernel_enter(tn_scope *scope, const int32_t *backends, size_t count,
                               int32_t set_priority, tn_error *err)
{
    static const char where[] = "tn_sdpa_kernel_enter";
    tn_change changes[TNI_SDP_COUNT + 1];
    int32_t before[TNI_SDP_COUNT];
    char order[128];
    uint32_t on = 0;
    if (!backends || count == 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "the list is empty; to disable attention, set "
                       "attention.backend=NO_ATTENTION");
    for (size_t i = 0; i < count; i++) {
        if (!tni_sdp_word(backends[i]))
            return tn_fail(
                err, TN_INVALID_ARGUMENT, 0, where,
                "backends[%zu]: expected TN_SDP_..., 0 (flash) to %d (overrideable), got %d", i,
                TNI_SDP_COUNT - 1, (int)backends[i]);
        on |= UINT32_C(1) << backends[i];
    }
    for (int32_t i = 0; i < TNI_SDP_COUNT; i++)
        changes[i] = (tn_change){.setting = tni_sdp_switch(i), .value = on >> i & 1};
    read_order(before);
    write_order(backends, count, before, order, sizeof order);
    changes[TNI_SDP_COUNT] = tn_with_cuda_sdp_priority(order);
    return tn_scope_enter(scope, changes, TNI_SDP_COUNT + (set_priority ? 1 : 0), err);
}

tn_status tn_sdp_kernel_enter(tn_scope *scope, int32_t flash, int32_t math, int32_t mem_efficient,
                              int32_t cudnn, tn_error *err)
{
    const tn_change changes[] = {
        tn_with_cuda_flash_sdp(flash != 0), tn_with_cuda_math_sdp(math != 0),
        tn_with_cuda_mem_efficient_sdp(mem_efficient != 0), tn_with_cuda_cudnn_sdp(cudnn != 0)};
    return tn_scope_enter(scope, changes, sizeof changes / sizeof changes[0], err);
}

/* Whether a kernel could run on a device of its platform, as far as known without trying. */
static bool could_run(const tni_kernel *kernel, tn_refusal *why)
{
    tn_library_state state = {.struct_size = sizeof state};
    bool is_cpu = strcmp(kernel->row->platform, "cpu") == 0;
    uint64_t lacks = kernel->row->cpu_needs & ~tni_cpu_reported();
    char words[96];
    if (is_cpu && lacks) {
        tni_cpu_features_write(lacks, words, sizeof words);
        return tni_refuse(why, TN_REFUSE_DEVICE, "instructions", 1, 0, "%s needs %s",
                          kernel->row->name, words);
    }
    if (!kernel->row->library)
        return true;
    if (is_cpu && !tni_mask_permits(kernel->row, why))
        return false;
    if (!kernel->library || tn_library_state_get(kernel->library, NULL, &state, NULL))
        return tni_refuse(why, TN_REFUSE_LIBRARY, kernel->row->library, 1, 0,
                          "no module provides %s", kernel->row->library);
    return state.available != TN_AVAILABLE_NO ||
           tni_refuse(why, TN_REFUSE_LIBRARY, kernel->row->library, 1, 0, "%s", state.reason);
}

/* Finds the first kernel of the platform that has the backend's name, or uses the library, and
 * could run. Exactly one of `backend` and `library` is NULL. */
static tn_status find_kernel(const char *platform, const char *backend, const char *library,
                             int32_t *out, tn_refusal *out_why, tn_error *err)
{
    const tni_kernel *const *kernels = NULL;
    tn_refusal why = {.struct_size = sizeof why};
    tn_status status = tni_kernels_of(platform, TN_OP_ATTENTION, &kernels, err);
    bool found = false;
    if (status)
        return status;
    (void)tni_refuse(&why, TN_REFUSE_LIBRARY, "kernel", 1, 0,
                     "no module has a kernel for %s %s %s%s", platform,
                     backend ? "named" : "that uses", backend ? backend : library,
                     *kernels ? "" : ": none has any kernel of attention for that platform");
    for (; *kernels && !found; kernels++) {
        const tni_candidate *names = &(*kernels)->names;
        bool is = backend ? tni_backend_is(names, backend) : strcmp(names->library, library) == 0;
        found = is && could_run(*kernels, &why);
        if (found) {
            why = (tn_refusal){.struct_size = sizeof why};
            tn_text_fit(why.text, sizeof why.text, names->kernel);
        }
    }
    *out = found;
    if (out_why) {
        why.struct_size = out_why->struct_size;
        *out_why = why;
    }
    return TN_OK;
}

static tn_status check_out(const int32_t *out, const tn_refusal *out_why, const char *where,
                           tn_error *err)
{
    if (!out || (out_why && !TN_HAS(out_why, tn_refusal, text)))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s",
                       out ? "out_why->struct_size is too small" : "out is NULL");
    return TN_OK;
}

tn_status tn_is_flash_attention_available(const tn_platform *platform, int32_t *out,
                                          tn_refusal *out_why, tn_error *err)
{
    tn_status status = check_out(out, out_why, "tn_is_flash_attention_available", err);
    if (!status && !platform)
        status = tn_platform_current(&platform, err);
    return status ? status
                  : find_kernel(tn_platform_name(platform), tni_sdp_word(TN_SDP_FLASH), NULL, out,
                                out_why, err);
}

tn_status tn_is_ck_sdpa_available(int32_t *out, tn_refusal *out_why, tn_error *err)
{
    tn_status status = check_out(out, out_why, "tn_is_ck_sdpa_available", err);
    return status ? status : find_kernel("rocm", NULL, "ck", out, out_why, err);
}
