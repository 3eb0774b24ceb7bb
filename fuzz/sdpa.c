/* Parameters of scaled-dot-product attention on described devices: every list of conditions gives
 * an answer, each failed condition has a reason, and the first one is named. */
#include "input.h"

#include "device/description.h"
#include "device/platform/platforms.h"
#include "tenon/tenon.h"

int LLVMFuzzerInitialize(int *count, char ***arguments);

static const char devices[] = "[device d0]\nplatform = cuda\ncapability = 9.0\n"
                              "[device d1]\nplatform = cuda\ncapability = 8.0\n"
                              "[device d2]\nplatform = cuda\ncapability = 10.7\n"
                              "[device d3]\nplatform = cuda\nname = untold\n"
                              "[device d4]\nplatform = rocm\narchitecture = gfx942\n"
                              "[device d5]\nplatform = rocm\narchitecture = gfx1101\n"
                              "[device d6]\nplatform = xpu\nname = without kernels\n";
enum { DEVICES = 7, LENGTHS = 8 };
static tn_device *device[DEVICES + 1];

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    tni_platforms *set;
    tni_descriptions *all = NULL;
    (void)count, (void)arguments;
    require(!tni_platforms_process(&set, NULL) &&
            !tni_descriptions_parse(devices, sizeof devices - 1, "fuzz", &all, NULL) &&
            !tni_devices_describe(set, all, "fuzz", NULL));
    tni_descriptions_release(all);
    for (char i = 0; i < DEVICES; i++)
        require(!tn_device_get((const char[]){'d', (char)('0' + i), '\0'}, &device[(int)i], NULL));
    require(!tn_device_get("cpu:0", &device[DEVICES], NULL));
    return 0;
}

static void take_tensor(input *in, tn_dtype usual, int64_t *lengths, tn_sdpa_tensor *out)
{
    static const int64_t shape[] = {2, 4, 64, 64};
    uint8_t choice = take_byte(in);
    int64_t step = 1;
    *out = (tn_sdpa_tensor){.device = choice & 1 ? NULL : device[choice / 2 % (DEVICES + 1)],
                            .lengths = choice & 32 ? lengths : NULL,
                            .nested = choice & 64,
                            .requires_grad = choice & 128};
    out->layout.dtype = (tn_dtype)take_number(in, (int64_t)usual);
    out->layout.rank = (int32_t)take_number(in, 4);
    out->layout.alignment = take_number(in, 64);
    for (int32_t i = TN_OP_RANK_MAX; i-- > 0;) {
        out->layout.shape[i] = take_number(in, i < 4 ? shape[i] : 1);
        out->layout.stride[i] = take_number(in, step);
        step = (int64_t)((uint64_t)step * (uint64_t)out->layout.shape[i]);
    }
    for (int i = 0; i < LENGTHS; i++)
        lengths[i] = take_number(in, 64);
    if (out->lengths && out->layout.shape[0] > LENGTHS)
        out->lengths = NULL;
}

static void require_report(const tn_sdpa_report *report)
{
    int32_t first = -1;
    require(report->count > 0 && report->count <= TN_SDPA_CHECKS_MAX);
    for (size_t i = 0; i < report->count; i++) {
        const tn_sdpa_check *check = &report->checks[i];
        bool fails = check->outcome == TN_SDPA_FAILS;
        require(check->name && check->outcome >= 0 && check->outcome <= TN_SDPA_NOT_ASKED);
        require(fails == (check->why.code != TN_REFUSE_NONE));
        require(!fails || (check->why.what[0] && check->why.text[0]));
        require(memchr(check->why.text, 0, sizeof check->why.text) != NULL);
        first = first < 0 && fails ? (int32_t)i : first;
    }
    require(report->first == first && report->usable == (first < 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tn_dtype dtypes[] = {TN_BF16, TN_F16, TN_F32, TN_F64};
    input in = {data, size};
    int64_t lengths[4][LENGTHS];
    uint8_t choice = take_byte(&in);
    tn_sdpa_params params = {.struct_size = sizeof params,
                             .is_causal = choice & 1,
                             .enable_gqa = choice & 2,
                             .flash = choice / 4 % 8,
                             .permits = choice / 32};
    tn_sdpa_tensor *const of[] = {&params.query, &params.key, &params.value, &params.attn_mask};
    tn_dtype usual = dtypes[take_byte(&in) % 4];
    for (int i = 0; i < 4; i++)
        take_tensor(&in, i < 3 ? usual : take_byte(&in) % 2 ? TN_BOOL : 0, lengths[i], of[i]);
    params.dropout = take_byte(&in) / 240.0;
    params.library_version = take_number(&in, 0);
    tn_status (*const lists[])(const tn_context *, const tn_sdpa_params *, tn_sdpa_report *,
                               tn_error *) = {
        tn_can_use_flash_attention, tn_can_use_efficient_attention, tn_can_use_cudnn_attention};
    for (int i = 0; i < 3; i++) {
        tn_sdpa_report report = {.struct_size = sizeof report};
        tn_error err = {0};
        tn_status status = lists[i](NULL, &params, &report, &err);
        if (status)
            require(status == TN_INVALID_ARGUMENT && err.message[0] && report.count == 0);
        else
            require_report(&report);
    }
    return 0;
}
