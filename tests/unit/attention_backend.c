/* Which backend computes a layer of attention: names, who asks before whom, strengths, what is refused and
 * why, and that dispatch goes by the same. */
#include "attention_rows.h"
#include "settings_check.h"

#include "os/thread.h"

#define LAYER(on, ...)                                                                    \
    TN_ARGS(attention_backend, .device = described(on), .head_size = 64, .dtype = TN_F32, \
            __VA_ARGS__)

#define PLAIN_LAYER(on) LAYER(on, .heads = 1)

static tn_attention_choice choose(const tn_attention_backend_args *args)
{
    tn_attention_choice choice = {.struct_size = sizeof choice};
    tn_error err = {0};
    if (tn_attention_backend(NULL, args, &choice, &err))
        fail_msg("%s", err.message);
    assert_int_equal(choice.fell_back, choice.why.code != TN_REFUSE_NONE);
    return choice;
}

/* What is taken and who asked for it: "FLASH_ATTN argument". */
static const char *taken(const tn_attention_backend_args *args)
{
    static char text[320];
    tn_attention_choice choice = choose(args);
    snprintf(text, sizeof text, "%s %s%s", choice.name, choice.origin,
             choice.fell_back ? ", fell back" : "");
    return text;
}

static const char *refused(const tn_attention_backend_args *args, tn_status expected)
{
    static tn_error err;
    tn_attention_choice choice = {.struct_size = sizeof choice, .name = "untouched"};
    tn_status status = tn_attention_backend(NULL, args, &choice, &err);
    if (status != expected)
        fail_msg("%s: %s", tn_status_name(status), status ? err.message : choice.name);
    assert_string_equal(choice.name, "untouched");
    return err.message;
}

/* Settings are read once, so each environment has a child. */
static void say_choice(FILE *say, const void *user)
{
    tn_attention_choice choice = {.struct_size = sizeof choice};
    tn_error err = {0};
    (void)setenv("TENON_ATTENTION_BACKEND", user, 1);
    const tn_attention_backend_args *args =
        LAYER("pod", .layer_default = TN_BACKEND_FLASH_ATTN, .heads = 2);
    if (tn_attention_backend(NULL, args, &choice, &err))
        fprintf(say, "%s: %s", tn_status_name(err.status), err.message);
    else
        fprintf(say, "%s %d %s", choice.name, (int)choice.from, choice.origin);
}

static void the_environment_asks(void **state)
{
    (void)state;
    assert_string_equal(child_says(say_choice, "torch_sdpa"),
                        "TORCH_SDPA 2 environment: TENON_ATTENTION_BACKEND");
    assert_string_equal(child_says(say_choice, "prefer:math"),
                        "TORCH_SDPA 2 environment: TENON_ATTENTION_BACKEND");
    assert_string_equal(child_says(say_choice, "prefer:SAGE_ATTN"), "FLASH_ATTN 1 layer");
    assert_string_equal(child_says(say_choice, "any"), "FLASH_ATTN 1 layer");
    assert_string_equal(child_says(say_choice, "FLASH_ATN"),
                        "not-found: attention.backend: no attention backend \"flash_atn\"; did you "
                        "mean FLASH_ATTN?");
    assert_contains(child_says(say_choice, "SAGE_ATTN"),
                    "unsupported: SAGE_ATTN is required (environment: TENON_ATTENTION_BACKEND) but "
                    "cannot be used on tpu:0: library: computed by tn_attention_quantized instead");
}

static void names_and_numbers(void **state)
{
    static const struct {
        int32_t number;
        const char *name;
    } rows[] = {{TN_BACKEND_FLASH_ATTN, "FLASH_ATTN"},
                {TN_BACKEND_SLIDING_TILE_ATTN, "SLIDING_TILE_ATTN"},
                {TN_BACKEND_TORCH_SDPA, "TORCH_SDPA"},
                {TN_BACKEND_SAGE_ATTN, "SAGE_ATTN"},
                {TN_BACKEND_VIDEO_SPARSE_ATTN, "VIDEO_SPARSE_ATTN"},
                {TN_BACKEND_NO_ATTENTION, "NO_ATTENTION"},
                {TN_BACKEND_SAGE_ATTN_THREE, "SAGE_ATTN_THREE"},
                {TN_BACKEND_ATTN_QAT_INFER, "ATTN_QAT_INFER"},
                {TN_BACKEND_ATTN_QAT_TRAIN, "ATTN_QAT_TRAIN"},
                {TN_BACKEND_VIDEO_SPARSE_ATTN_H3, "VIDEO_SPARSE_ATTN_H3"},
                {TN_BACKEND_BSA_ATTN, "BSA_ATTN"},
                {TN_BACKEND_VMOBA_ATTN, "VMOBA_ATTN"},
                {TN_BACKEND_SLA_ATTN, "SLA_ATTN"},
                {TN_BACKEND_SAGE_SLA_ATTN, "SAGE_SLA_ATTN"},
                {TN_BACKEND_NABLA_ATTN, "NABLA_ATTN"}};
    tn_error err = {0};
    int32_t found = 77;
    (void)state;
    assert_int_equal(sizeof rows / sizeof rows[0], TN_BACKEND_COUNT - 1);
    for (int32_t i = 1; i < TN_BACKEND_COUNT; i++) { /* the numbers are the order of the ABI */
        assert_int_equal(rows[i - 1].number, i);
        assert_string_equal(tn_attention_backend_name(i), rows[i - 1].name);
        assert_int_equal(tn_attention_backend_find(rows[i - 1].name, &found, &err), TN_OK);
        assert_int_equal(found, i);
    }
    assert_int_equal(tn_attention_backend_find("torch_Sdpa", &found, &err), TN_OK);
    assert_int_equal(found, TN_BACKEND_TORCH_SDPA);
    assert_string_equal(tn_attention_backend_name(0), "unknown");
    assert_string_equal(tn_attention_backend_name(TN_BACKEND_COUNT), "unknown");
    assert_string_equal(tn_attention_backend_name(-1), "unknown");
    assert_int_equal(tn_attention_backend_find("SAGE_ATN", &found, &err), TN_NOT_FOUND);
    assert_contains(err.message, "no attention backend \"SAGE_ATN\"; did you mean SAGE_ATTN?");
    assert_int_equal(tn_attention_backend_find("flash", &found, &err), TN_NOT_FOUND);
    assert_contains(err.message,
                    "no attention backend \"flash\"; there are FLASH_ATTN, SLIDING_TILE_ATTN");
    assert_contains(err.message, "SAGE_SLA_ATTN, NABLA_ATTN");
    assert_int_equal(tn_attention_backend_find(NULL, &found, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(found, TN_BACKEND_TORCH_SDPA);
}

/* Nobody asks: the fastest kernel that can, by the name it has. */
static void automatic_is_the_fastest(void **state)
{
    (void)state;
    tn_attention_choice choice = choose(PLAIN_LAYER("pod"));
    assert_int_equal(choice.backend, TN_BACKEND_FLASH_ATTN);
    assert_int_equal(choice.sdp, TN_SDP_FLASH);
    assert_int_equal(choice.from, TN_BACKEND_FROM_AUTOMATIC);
    assert_string_equal(choice.name, "FLASH_ATTN");
    assert_string_equal(choice.kernel, "tpu.attention.flash");
    assert_string_equal(choice.origin, "automatic");
    assert_int_equal(choice.fell_back, 0);
    assert_string_equal(choose(LAYER("pod", .mask = TN_MASK_CAUSAL)).name, "FLASH_ATTN");
    assert_string_equal(choose(LAYER("pod", .heads = 4, .groups = 2)).name, "FLASH_ATTN");
    choice = choose(LAYER("pod", .mask_dtype = TN_BOOL));
    assert_int_equal(choice.backend, TN_BACKEND_TORCH_SDPA);
    assert_int_equal(choice.sdp, TN_SDP_MATH);
    assert_string_equal(choice.kernel, "tpu.attention.plain");
    assert_int_equal(choose(LAYER("pod", .mask_dtype = TN_F32)).sdp, TN_SDP_MATH);
    assert_int_equal(choose(LAYER("pod", .dropout = 0.5)).sdp, TN_SDP_MATH);
    assert_int_equal(choose(LAYER("pod", .value_size = 32)).sdp, TN_SDP_MATH);
    choice = choose(PLAIN_LAYER("acme:0")); /* a stranger's platform */
    assert_int_equal(choice.backend, TN_BACKEND_TORCH_SDPA);
    assert_int_equal(choice.sdp, TN_SDP_OVERRIDEABLE);
    choice = choose(
        TN_ARGS(attention_backend, .device = described("pod"), .head_size = 8, .dtype = TN_F64));
    assert_int_equal(choice.backend, TN_BACKEND_NONE);
    assert_string_equal(choice.name, "ACME_ATTN");
    assert_int_equal(choice.sdp, -1);
}

static void a_platform_stands_for_its_first_device(void **state)
{
    const tn_platform *platform = NULL;
    tn_attention_choice choice = {.struct_size = sizeof choice};
    tn_error err = {0};
    (void)state;
    (void)described("pod");
    assert_int_equal(tn_platform_get("tpu", &platform, &err), TN_OK);
    assert_int_equal(tn_attention_backend(NULL,
                                          TN_ARGS(attention_backend, .platform = platform,
                                                  .head_size = 64, .dtype = TN_BF16),
                                          &choice, &err),
                     TN_OK);
    assert_string_equal(choice.kernel, "tpu.attention.flash");
    assert_int_equal(
        tn_attention_backend(NULL, TN_ARGS(attention_backend, .head_size = 64, .dtype = TN_F32),
                             &choice, &err),
        TN_OK); /* "best": the processor, which has attention */
    assert_true(choice.backend == TN_BACKEND_FLASH_ATTN || choice.backend == TN_BACKEND_TORCH_SDPA);
}

/* The call, then settings from the nearest on, then the layer, then nobody. */
static void the_nearest_asks_first(void **state)
{
    tn_scope outer = {0}, inner = {0};
    const tn_attention_backend_args *plain = PLAIN_LAYER("pod");
    const tn_attention_backend_args *layer = LAYER("pod", .layer_default = TN_BACKEND_TORCH_SDPA);
    (void)state;
    assert_string_equal(taken(plain), "FLASH_ATTN automatic");
    assert_string_equal(taken(layer), "TORCH_SDPA layer");
    set("attention.backend=FLASH_ATTN");
    assert_string_equal(taken(layer), "FLASH_ATTN process");
    enter(&outer, "attention.backend=TORCH_SDPA");
    assert_string_equal(taken(plain), "TORCH_SDPA scope");
    assert_int_equal(choose(plain).from, TN_BACKEND_FROM_SETTING);
    enter(&inner, "attention.backend=math");
    assert_string_equal(choose(plain).kernel, "tpu.attention.plain");
    assert_string_equal(taken(LAYER("pod", .backend = TN_BACKEND_FLASH_ATTN)),
                        "FLASH_ATTN argument");
    assert_string_equal(
        taken(LAYER("pod", .backend = TN_BACKEND_FLASH_ATTN, .strength = TN_PREFER)),
        "FLASH_ATTN argument");
    assert_string_equal(taken(LAYER("pod", .backend = TN_BACKEND_AUTOMATIC)),
                        "FLASH_ATTN argument: automatic");
    assert_string_equal(taken(LAYER("pod", .backend = TN_BACKEND_AUTOMATIC,
                                    .layer_default = TN_BACKEND_TORCH_SDPA)),
                        "FLASH_ATTN argument: automatic"); /* it was decided: nobody is asked */
    tn_scope_leave(&inner);
    assert_string_equal(taken(plain), "TORCH_SDPA scope");
    enter(&inner, "attention.backend=any");
    assert_string_equal(taken(layer), "TORCH_SDPA layer");
    tn_scope_leave(&inner);
    tn_scope_leave(&outer);
    assert_string_equal(taken(plain), "FLASH_ATTN process");
    reset("attention.backend");
    assert_string_equal(taken(plain), "FLASH_ATTN automatic");
}

static void a_context_asks_too(void **state)
{
    tn_context *context = derived(NULL, "attention.backend=math");
    tn_attention_choice choice = {.struct_size = sizeof choice};
    (void)state;
    assert_int_equal(tn_attention_backend(context, PLAIN_LAYER("pod"), &choice, NULL), TN_OK);
    assert_string_equal(choice.name, "TORCH_SDPA");
    assert_string_equal(choice.origin, "call");
    assert_string_equal(taken(PLAIN_LAYER("pod")), "FLASH_ATTN automatic");
    tn_context_release(context);
}

static void what_is_required_is_taken_or_refused(void **state)
{
    (void)state;
    assert_contains(
        refused(LAYER("pod", .backend = TN_BACKEND_SAGE_ATTN), TN_UNSUPPORTED),
        "SAGE_ATTN is required (argument) but cannot be used on tpu:0: library: computed by "
        "tn_attention_quantized instead (dense, 8-bit queries and keys)");
    assert_contains(
        refused(LAYER("pod", .backend = TN_BACKEND_FLASH_ATTN, .dropout = 0.1), TN_UNSUPPORTED),
        "feature: the kernel does not support dropout");
    set("cuda.flash_sdp=false");
    assert_contains(refused(LAYER("pod", .backend = TN_BACKEND_FLASH_ATTN), TN_REFUSED),
                    "rule: cuda.flash_sdp is off, set by the process");
    assert_string_equal(taken(LAYER("pod", .backend = TN_BACKEND_TORCH_SDPA)),
                        "TORCH_SDPA argument");
    reset("cuda.flash_sdp");
    set("attention.backend=VMOBA_ATTN");
    assert_contains(refused(PLAIN_LAYER("pod"), TN_UNSUPPORTED),
                    "VMOBA_ATTN is required (process)");
    reset("attention.backend");
    assert_contains(refused(PLAIN_LAYER("bare"), TN_UNSUPPORTED),
                    "xpu:0 has no kernel for attention");
    assert_contains(refused(PLAIN_LAYER("h200"), TN_UNSUPPORTED), " has no kernel for attention");
}

static void what_is_preferred_gives_way_and_says_so(void **state)
{
    (void)state;
    tn_attention_choice choice =
        choose(LAYER("pod", .backend = TN_BACKEND_SAGE_ATTN, .strength = TN_PREFER));
    assert_string_equal(choice.name, "FLASH_ATTN");
    assert_int_equal(choice.from, TN_BACKEND_FROM_AUTOMATIC);
    assert_int_equal(choice.fell_back, 1);
    assert_int_equal(choice.why.code, TN_REFUSE_LIBRARY);
    assert_contains(choice.why.text, "computed by tn_attention_quantized instead");
    choice = choose(
        LAYER("pod", .backend = TN_BACKEND_FLASH_ATTN, .strength = TN_PREFER, .dropout = 0.1));
    assert_string_equal(choice.name, "TORCH_SDPA");
    assert_int_equal(choice.why.code, TN_REFUSE_FEATURE);
    assert_string_equal(choice.why.what, "dropout");
    assert_string_equal(taken(LAYER("pod", .backend = TN_BACKEND_SAGE_ATTN, .strength = TN_PREFER,
                                    .layer_default = TN_BACKEND_TORCH_SDPA)),
                        "TORCH_SDPA layer, fell back");
    assert_string_equal(taken(LAYER("pod", .layer_default = TN_BACKEND_SAGE_ATTN)),
                        "FLASH_ATTN automatic, fell back");
    set("attention.backend=prefer:SAGE_ATTN, TORCH_SDPA");
    assert_string_equal(taken(LAYER("pod", .layer_default = TN_BACKEND_FLASH_ATTN)),
                        "TORCH_SDPA process"); /* one of those that were asked for */
    set("attention.backend=prefer:SAGE_ATTN");
    assert_string_equal(taken(PLAIN_LAYER("pod")), "FLASH_ATTN automatic, fell back");
    reset("attention.backend");
    set("rules=avoid:attention/backend:flash");
    choice = choose(LAYER("pod", .backend = TN_BACKEND_FLASH_ATTN));
    assert_string_equal(choice.name, "FLASH_ATTN"); /* avoided, and all that may be */
    reset("rules");
}

/* A backend that only a stranger's module knows is asked for by its name. */
static void strangers_are_asked_for_too(void **state)
{
    const tn_attention_backend_args *wide =
        TN_ARGS(attention_backend, .device = described("pod"), .head_size = 8, .dtype = TN_F64);
    (void)state;
    set("attention.backend=acme_attn");
    tn_attention_choice choice = choose(wide);
    assert_string_equal(choice.name, "ACME_ATTN");
    assert_int_equal(choice.backend, TN_BACKEND_NONE);
    assert_int_equal(choice.from, TN_BACKEND_FROM_SETTING);
    assert_contains(refused(PLAIN_LAYER("pod"), TN_UNSUPPORTED), "ACME_ATTN is required (process)");
    assert_contains(refused(PLAIN_LAYER("bare"), TN_UNSUPPORTED), "has the name acme_attn");
    set("attention.backend=prefer:acme_attn");
    choice = choose(PLAIN_LAYER("acme:0"));
    assert_int_equal(choice.fell_back, 1);
    assert_contains(choice.why.text, "no kernel has this name");
    set("attention.backend=acme_atn");
    assert_contains(refused(wide, TN_NOT_FOUND), "did you mean ACME_ATTN?");
    reset("attention.backend");
}

static void a_layer_supports_some(void **state)
{
    static const int32_t sdpa[] = {TN_BACKEND_TORCH_SDPA}, sage[] = {TN_BACKEND_SAGE_ATTN};
    static const int32_t both[] = {TN_BACKEND_SAGE_ATTN, TN_BACKEND_FLASH_ATTN};
    (void)state;
    tn_attention_choice choice =
        choose(LAYER("pod", .supported = sdpa, .supported_count = 1)); /* flash, of its family */
    assert_string_equal(choice.name, "TORCH_SDPA");
    assert_int_equal(choice.sdp, TN_SDP_FLASH);
    assert_string_equal(choose(LAYER("pod", .supported = both, .supported_count = 2)).name,
                        "FLASH_ATTN");
    assert_contains(refused(LAYER("pod", .supported = sage, .supported_count = 1), TN_UNSUPPORTED),
                    "no backend that the layer supports (SAGE_ATTN) can be used on tpu:0");
    assert_contains(refused(LAYER("pod", .supported = sdpa, .supported_count = 1,
                                  .backend = TN_BACKEND_FLASH_ATTN),
                            TN_UNSUPPORTED),
                    "FLASH_ATTN is required (argument) but cannot be used on tpu:0: feature: the "
                    "layer does not support it");
    choice = choose(LAYER("pod", .supported = sdpa, .supported_count = 1,
                          .backend = TN_BACKEND_SAGE_ATTN, .strength = TN_PREFER));
    assert_int_equal(choice.fell_back, 1);
    set("attention.backend=prefer:FLASH_ATTN");
    choice = choose(LAYER("pod", .supported = sdpa, .supported_count = 1));
    assert_string_equal(choice.name, "TORCH_SDPA");
    assert_string_equal(choice.origin, "automatic");
    assert_contains(choice.why.text, "the layer does not support it");
    reset("attention.backend");
}

static void a_layer_that_is_trained_has_gradients(void **state)
{
    (void)state;
    tn_attention_choice choice = choose(LAYER("pod", .training = 1));
    assert_string_equal(choice.name, "TORCH_SDPA"); /* flash has none, of which TORCH_SDPA is */
    assert_contains(
        refused(LAYER("pod", .training = 1, .backend = TN_BACKEND_FLASH_ATTN), TN_UNSUPPORTED),
        "feature: the layer needs gradients, and no kernel computes them");
    assert_contains(refused(LAYER("acme:0", .training = 1), TN_UNSUPPORTED), "with gradients");
}

static void no_attention_is_an_answer(void **state)
{
    static const int32_t sdpa[] = {TN_BACKEND_TORCH_SDPA};
    static const int32_t none[] = {TN_BACKEND_TORCH_SDPA, TN_BACKEND_NO_ATTENTION};
    (void)state;
    tn_attention_choice choice = choose(LAYER("pod", .backend = TN_BACKEND_NO_ATTENTION));
    assert_int_equal(choice.backend, TN_BACKEND_NO_ATTENTION);
    assert_string_equal(choice.name, "NO_ATTENTION");
    assert_string_equal(choice.kernel, "");
    assert_int_equal(choice.sdp, -1);
    set("attention.backend=NO_ATTENTION");
    assert_string_equal(taken(PLAIN_LAYER("bare")), "NO_ATTENTION process");
    assert_string_equal(taken(LAYER("pod", .supported = none, .supported_count = 2)),
                        "NO_ATTENTION process");
    assert_contains(refused(LAYER("pod", .supported = sdpa, .supported_count = 1), TN_UNSUPPORTED),
                    "NO_ATTENTION is required (process), but the layer supports only TORCH_SDPA");
    assert_string_equal(taken(LAYER("pod", .backend = TN_BACKEND_AUTOMATIC)),
                        "FLASH_ATTN argument: automatic");
    reset("attention.backend");
    assert_contains(refused(LAYER("pod", .backend = TN_BACKEND_NO_ATTENTION, .strength = TN_PREFER),
                            TN_INVALID_ARGUMENT),
                    "NO_ATTENTION");
    set("attention.backend=prefer:NO_ATTENTION");
    assert_contains(refused(PLAIN_LAYER("pod"), TN_INVALID_ARGUMENT),
                    "NO_ATTENTION must be required");
    set("attention.backend=NO_ATTENTION, math");
    assert_contains(refused(PLAIN_LAYER("pod"), TN_INVALID_ARGUMENT),
                    "NO_ATTENTION must be required");
    reset("attention.backend");
}

static tn_status attend_by(int32_t backend, tn_error *err)
{
    static float data[4][2 * 8];
    const int64_t shape[] = {1, 1, 2, 8};
    tn_tensor t[4] = {{0}};
    tn_device *cpu = NULL;
    assert_int_equal(tn_device_get("cpu:0", &cpu, err), TN_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            tn_tensor_wrap(cpu, data[i], TN_F32, shape, NULL, 4, NULL, NULL, &t[i], err), TN_OK);
    tn_status status = tn_attention(
        NULL,
        TN_ARGS(attention, .q = &t[0], .k = &t[1], .v = &t[2], .out = &t[3], .backend = backend),
        err);
    for (int i = 0; i < 4; i++)
        tn_tensor_release(&t[i]);
    return status;
}

static tn_status attend(tn_error *err)
{
    return attend_by(TN_BACKEND_NONE, err);
}

static void calls_go_by_it(void **state)
{
    tn_error err = {0};
    tn_scope scope = {0};
    tn_fallbacks before = {.struct_size = sizeof before}, after = before;
    (void)state;
    assert_int_equal(attend(&err), TN_OK);
    enter(&scope, "attention.backend=NO_ATTENTION");
    assert_int_equal(attend(&err), TN_REFUSED);
    assert_contains(err.message,
                    "attention is disabled: attention.backend (scope) requests NO_ATTENTION");
    assert_contains(err.message, "attention:f32:");
    tn_scope_leave(&scope);
    assert_int_equal(attend(&err), TN_OK);
    enter(&scope, "attention.backend=NABLA_ATTN");
    assert_int_equal(attend(&err), TN_UNSUPPORTED);
    assert_contains(err.message, "no kernel on cpu has the name NABLA_ATTN, which "
                                 "attention.backend (scope) requests; available: ");
    tn_scope_leave(&scope);
    enter(&scope, "attention.backend=NABLA_ATN");
    assert_int_equal(attend(&err), TN_NOT_FOUND);
    assert_contains(err.message, "did you mean NABLA_ATTN?");
    tn_scope_leave(&scope);
    assert_int_equal(tn_fallbacks_get(&before, &err), TN_OK);
    enter(&scope, "attention.backend=prefer:NABLA_ATTN");
    assert_int_equal(attend(&err), TN_OK);
    tn_scope_leave(&scope);
    assert_int_equal(tn_fallbacks_get(&after, &err), TN_OK);
    assert_int_equal(after.preferred, before.preferred + 1);
    enter(&scope, "attention.backend=TORCH_SDPA");
    assert_int_equal(attend(&err), TN_OK);
    tn_scope_leave(&scope);
}

/* Whether an answer was found anew. */
static bool asks_anew(const tn_attention_backend_args *args)
{
    int before = attention_rows_asked;
    (void)choose(args);
    return attention_rows_asked > before;
}

/* Each change that an answer could follow from gives another question, and taking it back the same. */
static void answers_are_kept_by_all_they_follow_from(void **state)
{
    static const char *const changes[] = {"attention.backend=FLASH_ATTN",
                                          "attention.backend=prefer:FLASH_ATTN",
                                          "cuda.math_sdp=false",
                                          "cuda.sdp_priority=flash",
                                          "cuda.cudnn_sdp=false",
                                          "rules=avoid:attention/backend:math",
                                          "determinism=run-to-run",
                                          "fp32_precision=tf32",
                                          "cuda.matmul.fp32_precision=tf32",
                                          "mkldnn.matmul.fp32_precision=tf32",
                                          "cuda.preferred_rocm_fa_library=ck",
                                          "workspace.limit=1000000",
                                          "cuda.allow_fp16_bf16_reduction_math_sdp=true"};
    static const int32_t some[] = {TN_BACKEND_FLASH_ATTN, TN_BACKEND_TORCH_SDPA};
    const tn_attention_backend_args *plain = LAYER("pod", .heads = 3);
    const tn_attention_backend_args *const others[] = {
        LAYER("pod", .heads = 4),
        LAYER("pod", .heads = 3, .groups = 1),
        LAYER("pod", .heads = 3, .batch = 2),
        LAYER("pod", .heads = 3, .queries = 2),
        LAYER("pod", .heads = 3, .keys = 2),
        LAYER("pod", .heads = 3, .mask = TN_MASK_CAUSAL),
        LAYER("pod", .heads = 3, .mask = TN_MASK_WINDOW, .window_left = 5),
        LAYER("pod", .heads = 3, .mask = TN_MASK_WINDOW, .window_right = 5),
        LAYER("pod", .heads = 3, .backend = TN_BACKEND_FLASH_ATTN),
        LAYER("pod", .heads = 3, .backend = TN_BACKEND_AUTOMATIC),
        LAYER("pod", .heads = 3, .layer_default = TN_BACKEND_FLASH_ATTN),
        LAYER("pod", .heads = 3, .supported = some, .supported_count = 2),
        LAYER("pod", .heads = 3, .supported = some, .supported_count = 1),
        TN_ARGS(attention_backend, .device = described("pod"), .head_size = 64, .heads = 3,
                .dtype = TN_BF16),
        TN_ARGS(attention_backend, .device = described("pod"), .head_size = 72, .heads = 3,
                .dtype = TN_F32)};
    (void)state;
    reset(NULL);
    set("admission=never");
    (void)choose(plain);
    assert_false(asks_anew(plain));
    set("cudnn.benchmark=true"); /* which attention does not read */
    assert_false(asks_anew(plain));
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char key[64];
        (void)asks_anew(plain);
        set(changes[i]);
        if (!asks_anew(plain))
            fail_msg("%s changes nothing", changes[i]);
        assert_false(asks_anew(plain));
        snprintf(key, sizeof key, "%.*s", (int)strcspn(changes[i], "="), changes[i]);
        reset(key);
        assert_string_equal(taken(plain), "FLASH_ATTN automatic");
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (!asks_anew(others[i]))
            fail_msg("layer %zu is taken for another", i);
    }
    reset("cudnn.benchmark");
}

/* The same wish from elsewhere has the same answer, but not the same origin. */
static void an_answer_says_who_asked(void **state)
{
    const tn_attention_backend_args *plain = LAYER("pod", .heads = 5);
    tn_scope scope = {0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        set("attention.backend=FLASH_ATTN");
        assert_string_equal(taken(plain), "FLASH_ATTN process");
        reset("attention.backend");
        enter(&scope, "attention.backend=FLASH_ATTN");
        assert_string_equal(taken(plain), "FLASH_ATTN scope");
        tn_scope_leave(&scope);
    }
}

/* "flash" of tpu.attention.flash; "" when nothing is taken. */
static const char *kernel_for(const char *problem, const char *setting)
{
    static char name[64];
    tn_decision *decision = NULL;
    tn_error err;
    tn_context *context = setting ? derived(NULL, setting) : NULL;
    attention_rows();
    if (tn_explain(context, problem, &decision, &err))
        fail_msg("%s", err.message);
    const tn_candidate *chosen = tn_decision_chosen(decision);
    snprintf(name, sizeof name, "%s", chosen ? strrchr(chosen->kernel, '.') + 1 : "");
    tn_decision_release(decision);
    tn_context_release(context);
    return name;
}

static void switches_and_their_order_govern_dispatch(void **state)
{
    static const char f32[] = "attention:f32:b=1,h=1,l=8,d=8@pod",
                      f16[] = "attention:f16:b=1,h=1,l=8,d=8@pod",
                      bf16[] = "attention:bf16:b=1,h=1,l=8,d=8@pod",
                      back[] = "attention-backward:f32:b=1,h=1,l=8,d=8@pod",
                      merge[] = "attention-merge:f32:b=1,h=1,l=8,d=8@pod",
                      own[] = "attention:f32:b=1,h=1,l=8,d=8@acme:0";
    (void)state;
    assert_string_equal(kernel_for(f32, NULL), "flash");
    assert_string_equal(kernel_for(f32, "cuda.flash_sdp=false"), "plain");
    assert_string_equal(kernel_for(f32, "cuda.math_sdp=false"), "flash");
    assert_string_equal(kernel_for(f32, "cuda.sdp_priority=math"), "plain");
    assert_string_equal(kernel_for(f32, "cuda.sdp_priority=cudnn"), "flash");
    assert_string_equal(kernel_for(f32, "attention.backend=FLASH_ATTN"), "flash");
    assert_string_equal(kernel_for(f32, "attention.backend=flash"), "flash");
    assert_string_equal(kernel_for(f32, "attention.backend=TORCH_SDPA"), "flash");
    assert_string_equal(kernel_for(f32, "attention.backend=math"), "plain");
    assert_string_equal(kernel_for(f32, "attention.backend=forbid:TORCH_SDPA"), "");
    assert_string_equal(kernel_for(f32, "attention.backend=avoid:FLASH_ATTN"), "plain");
    assert_string_equal(kernel_for(f32, "rules=require:attention/backend:Torch_Sdpa"), "flash");
    assert_string_equal(kernel_for(f16, NULL), "plain"); /* sums in 16 bits are not permitted */
    assert_string_equal(kernel_for(f16, "cuda.allow_fp16_bf16_reduction_math_sdp=true"), "narrow");
    assert_string_equal(kernel_for(bf16, NULL), "flash");
    assert_string_equal(kernel_for(bf16, "cuda.allow_fp16_bf16_reduction_math_sdp=true"), "narrow");
    assert_string_equal(kernel_for(back, NULL), "plain");
    assert_string_equal(kernel_for(back, "cuda.math_sdp=false"), "");
    assert_string_equal(kernel_for(back, "attention.backend=TORCH_SDPA"), "plain");
    assert_string_equal(kernel_for(back, "attention.backend=FLASH_ATTN"), "");
    assert_string_equal(kernel_for(merge, "attention.backend=FLASH_ATTN"), "plain");
    assert_string_equal(kernel_for(merge, "attention.backend=NO_ATTENTION"), "");
    assert_string_equal(kernel_for(own, NULL), "own");
    assert_string_equal(kernel_for(own, "cuda.overrideable_sdp=false"), "");
    assert_string_equal(kernel_for(own, "attention.backend=TORCH_SDPA"), "own");
    assert_string_equal(kernel_for(own, "cuda.math_sdp=false"), "own");
}

/* What a call itself asks for takes the place of the setting, and lifts no switch. */
static void problems_ask_too(void **state)
{
    static const char flash[] = "attention:f32:b=1,h=1,l=8,d=8,backend=FLASH_ATTN@pod",
                      family[] = "attention:f32:b=1,h=1,l=8,d=8,backend=TORCH_SDPA@pod",
                      sage[] = "attention:f32:b=1,h=1,l=8,d=8,backend=SAGE_ATTN@pod",
                      none[] = "attention:f32:b=1,h=1,l=8,d=8,backend=NO_ATTENTION@pod",
                      back[] = "attention-backward:f32:b=1,h=1,l=8,d=8,backend=FLASH_ATTN@pod";
    tn_decision *d = NULL;
    const char *message = NULL;
    tn_error err = {0};
    (void)state;
    assert_string_equal(kernel_for(flash, NULL), "flash");
    assert_string_equal(kernel_for(flash, "attention.backend=math"), "flash");
    assert_string_equal(kernel_for(flash, "attention.backend=NO_ATTENTION"), "flash");
    assert_string_equal(kernel_for(flash, "attention.backend=forbid:FLASH_ATTN"), "flash");
    assert_string_equal(kernel_for(flash, "cuda.flash_sdp=false"), "");
    assert_string_equal(kernel_for(flash, "rules=forbid:attention/backend:flash"), "");
    assert_string_equal(kernel_for(family, "attention.backend=math"), "flash");
    assert_string_equal(kernel_for(family, "cuda.sdp_priority=math"), "plain");
    assert_string_equal(kernel_for(sage, NULL), "");
    assert_string_equal(kernel_for(none, NULL), "");
    assert_string_equal(kernel_for(back, NULL), "");
    assert_int_equal(tn_explain(NULL, sage, &d, &err), TN_OK);
    assert_int_equal(tn_decision_status(d, &message), TN_UNSUPPORTED);
    assert_contains(message, "no kernel on tpu has the name SAGE_ATTN, which the problem requests; "
                             "available: FLASH_ATTN, TORCH_SDPA");
    tn_decision_release(d);
    assert_int_equal(tn_explain(NULL, none, &d, &err), TN_OK);
    assert_int_equal(tn_decision_status(d, &message), TN_REFUSED);
    assert_contains(message, "attention is disabled: the problem requests NO_ATTENTION");
    tn_decision_release(d);
    assert_int_equal(tn_explain(NULL,
                                "attention:f32:b=1,h=1,l=8,d=8,softcap=9,backend=FLASH_ATTN@pod",
                                &d, &err),
                     TN_OK);
    assert_int_equal(tn_decision_status(d, &message), TN_REFUSED);
    assert_contains(message, "tpu.attention.flash: feature: the kernel does not support softcap");
    tn_decision_release(d);
}

/* A plan that was made for one request does not stand for another. */
static void calls_ask_too(void **state)
{
    tn_error err = {0};
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(attend_by(TN_BACKEND_NONE, &err), TN_OK);
        assert_int_equal(attend_by(TN_BACKEND_TORCH_SDPA, &err), TN_OK);
        assert_int_equal(attend_by(TN_BACKEND_NO_ATTENTION, &err), TN_REFUSED);
        assert_int_equal(attend_by(TN_BACKEND_VMOBA_ATTN, &err), TN_UNSUPPORTED);
        assert_contains(err.message, "backend=VMOBA_ATTN");
        assert_int_equal(attend_by(TN_BACKEND_COUNT, &err), TN_INVALID_ARGUMENT);
    }
}

/* Who asks for a backend has said nothing of the switches, which stay off. A nearer order comes
 * before a farther preference. */
static void a_request_lifts_no_switch(void **state)
{
    static const char f32[] = "attention:f32:b=1,h=1,l=8,d=8@pod";
    tn_scope scope = {0};
    (void)state;
    set("cuda.flash_sdp=false");
    assert_string_equal(kernel_for(f32, "attention.backend=TORCH_SDPA"), "plain");
    assert_string_equal(kernel_for(f32, "attention.backend=FLASH_ATTN"), "");
    assert_string_equal(kernel_for(f32, "attention.backend=flash"), "");
    assert_string_equal(kernel_for(f32, "cuda.flash_sdp=true"), "flash");
    assert_string_equal(kernel_for(f32, "rules=permit:attention/backend:flash"), "flash");
    assert_string_equal(kernel_for(f32, "rules=permit:attention/flash"), "flash");
    assert_string_equal(kernel_for(f32, "rules=permit:attention/backend:math"), "plain");
    reset("cuda.flash_sdp");
    set("cuda.sdp_priority=math");
    assert_string_equal(kernel_for(f32, "attention.backend=prefer:TORCH_SDPA"), "plain");
    assert_string_equal(kernel_for(f32, "attention.backend=TORCH_SDPA"), "plain");
    assert_string_equal(kernel_for(f32, "attention.backend=prefer:FLASH_ATTN"), "flash");
    enter(&scope, "attention.backend=prefer:FLASH_ATTN");
    assert_string_equal(kernel_for(f32, NULL), "flash");
    assert_string_equal(kernel_for(f32, "cuda.sdp_priority=math"), "plain");
    tn_scope_leave(&scope);
    reset("cuda.sdp_priority");
}

/* A preference counts as a fallback only where it would have come first. */
static void an_order_is_no_list_of_wishes(void **state)
{
    static const struct {
        const char *setting;
        int64_t more;
    } rows[] = {
        {"cuda.sdp_priority=flash", 1},
        {"cuda.sdp_priority=overrideable", 0},
        {"attention.backend=prefer:FLASH_ATTN", 1},
        {"attention.backend=prefer:TORCH_SDPA", 0}}; /* which it is, by another of the family */
    tn_error err = {0};
    (void)state;
    (void)described("acme:0");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_fallbacks before = {.struct_size = sizeof before}, after = before;
        tn_context *context = derived(NULL, rows[i].setting);
        assert_int_equal(tn_fallbacks_get(&before, &err), TN_OK);
        if (tn_prepare(context, "attention:f32:b=1,h=1,l=8,d=8@acme:0", &err))
            fail_msg("%s", err.message);
        assert_int_equal(tn_fallbacks_get(&after, &err), TN_OK);
        assert_int_equal(after.preferred - before.preferred, rows[i].more);
        tn_context_release(context);
    }
}

/* The reference is the plain computation, whatever else the processor has. */
static void the_reference_counts_as_math(void **state)
{
    static const char problem[] = "attention:f32:b=1,h=1,l=8,d=8@cpu:0";
    tn_context *context = derived(NULL, "cuda.math_sdp=false");
    tn_decision *decision = NULL;
    bool seen = false;
    (void)state;
    attention_rows();
    assert_int_equal(tn_explain(context, problem, &decision, NULL), TN_OK);
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        const tn_candidate *candidate = tn_decision_candidate(decision, i);
        if (strcmp(candidate->kernel, "cpu.attention.ref") != 0)
            continue;
        seen = true;
        assert_int_equal(candidate->why->code, TN_REFUSE_RULE);
        assert_string_equal(candidate->why->text, "cuda.math_sdp is off, set by the call");
    }
    assert_true(seen);
    tn_decision_release(decision);
    tn_context_release(context);
}

static const tn_backend *backend_in(const tn_decision *decision, const char *name)
{
    for (size_t i = 0; i < tn_decision_backend_count(decision); i++) {
        if (strcmp(tn_decision_backend(decision, i)->name, name) == 0)
            return tn_decision_backend(decision, i);
    }
    fail_msg("no backend %s", name);
    return NULL;
}

static void assert_backend(const tn_decision *decision, const char *name, int32_t verdict,
                           int32_t code, const char *text)
{
    const tn_backend *backend = backend_in(decision, name);
    const char *found = backend->why ? backend->why->text : "";
    if (backend->verdict != verdict || (backend->why ? backend->why->code : 0) != code ||
        !strstr(found, text))
        fail_msg("%s: %s, %s: %s", name, tn_verdict_name(backend->verdict),
                 tn_refusal_name(backend->why ? backend->why->code : 0), found);
}

static tn_decision *explained(const char *problem, const char *setting)
{
    tn_decision *decision = NULL;
    tn_error err;
    tn_context *context = setting ? derived(NULL, setting) : NULL;
    attention_rows();
    if (tn_explain(context, problem, &decision, &err))
        fail_msg("%s", err.message);
    tn_context_release(context);
    return decision;
}

static void every_backend_has_its_reason(void **state)
{
    static const char problem[] = "attention:f32:b=1,h=2,l=64,d=32@pod";
    (void)state;
    tn_decision *d = explained(problem, NULL);
    assert_int_equal(tn_decision_backend_count(d), TN_BACKEND_COUNT - 1 + 5 + 1);
    assert_null(tn_decision_backend(d, tn_decision_backend_count(d)));
    assert_backend(d, "FLASH_ATTN", TN_VERDICT_CHOSEN, 0, "");
    assert_backend(d, "TORCH_SDPA", TN_VERDICT_ADMITTED, 0, "");
    assert_backend(d, "flash", TN_VERDICT_CHOSEN, 0, "");
    assert_backend(d, "math", TN_VERDICT_ADMITTED, 0, "");
    assert_string_equal(backend_in(d, "math")->family, "TORCH_SDPA");
    assert_string_equal(backend_in(d, "math")->kernel, "tpu.attention.plain");
    assert_int_equal(backend_in(d, "math")->number, TN_SDP_MATH);
    assert_backend(d, "cudnn", TN_VERDICT_REFUSED, TN_REFUSE_LIBRARY,
                   "no kernel on tpu: only cuda can have it");
    assert_backend(d, "mem_efficient", TN_VERDICT_REFUSED, TN_REFUSE_LIBRARY,
                   "only cuda and rocm can have it");
    assert_backend(d, "NO_ATTENTION", TN_VERDICT_REFUSED, TN_REFUSE_RULE, "used only on request");
    assert_backend(d, "ATTN_QAT_INFER", TN_VERDICT_REFUSED, TN_REFUSE_LIBRARY,
                   "no kernel on tpu yet");
    assert_backend(d, "BSA_ATTN", TN_VERDICT_REFUSED, TN_REFUSE_LIBRARY,
                   "computed by tenon.video in Python instead");
    assert_backend(d, "ACME_ATTN", TN_VERDICT_REFUSED, TN_REFUSE_DTYPE, "it computes with f64");
    for (size_t i = 0; i < tn_decision_backend_count(d); i++) {
        const tn_backend *backend = tn_decision_backend(d, i);
        assert_int_equal(backend->why != NULL, backend->verdict == TN_VERDICT_REFUSED);
        assert_null(backend->conditions);
    }
    tn_decision_release(d);
    d = explained(problem, "attention.backend=TORCH_SDPA");
    assert_backend(d, "TORCH_SDPA", TN_VERDICT_CHOSEN, 0, "");
    assert_backend(d, "FLASH_ATTN", TN_VERDICT_ADMITTED, 0, "");
    assert_backend(d, "flash", TN_VERDICT_CHOSEN, 0, "");
    tn_decision_release(d);
    d = explained(problem, "cuda.flash_sdp=false");
    assert_backend(d, "FLASH_ATTN", TN_VERDICT_REFUSED, TN_REFUSE_RULE, "cuda.flash_sdp is off");
    assert_backend(d, "flash", TN_VERDICT_REFUSED, TN_REFUSE_RULE, "cuda.flash_sdp is off");
    assert_backend(d, "TORCH_SDPA", TN_VERDICT_CHOSEN, 0, "");
    tn_decision_release(d);
    d = explained(problem, "attention.backend=NO_ATTENTION");
    assert_backend(d, "NO_ATTENTION", TN_VERDICT_CHOSEN, 0, "");
    assert_backend(d, "math", TN_VERDICT_REFUSED, TN_REFUSE_RULE,
                   "attention.backend (call) requests NO_ATTENTION");
    tn_decision_release(d);
    d = explained("matmul:f32:m=8,n=8,k=8@cpu:0", NULL);
    assert_int_equal(tn_decision_backend_count(d), 0);
    tn_decision_release(d);
    assert_int_equal(tn_decision_backend_count(NULL), 0);
}

/* A machine that is not here, for which no module brings kernels: upstream's conditions are told. */
static void described_devices_have_conditions(void **state)
{
    (void)state;
    tn_decision *d = explained("attention:bf16:b=1,h=24,l=4096,d=128,mask=causal@h200", NULL);
    assert_null(tn_decision_chosen(d));
    assert_backend(d, "flash", TN_VERDICT_REFUSED, TN_REFUSE_LIBRARY,
                   "no kernel on cuda yet; PyTorch's other conditions hold");
    assert_backend(d, "FLASH_ATTN", TN_VERDICT_REFUSED, TN_REFUSE_LIBRARY, "no kernel on cuda yet");
    assert_backend(d, "mem_efficient", TN_VERDICT_REFUSED, TN_REFUSE_LIBRARY, "conditions hold");
    assert_backend(d, "cudnn", TN_VERDICT_REFUSED, TN_REFUSE_LIBRARY, "conditions hold");
    const tn_sdpa_report *report = backend_in(d, "flash")->conditions;
    assert_non_null(report);
    assert_string_equal(report->checks[report->first].name, "kernel");
    assert_null(backend_in(d, "math")->conditions);
    tn_decision_release(d);

    d = explained("attention:f32:b=1,h=24,lq=8,lk=16,d=320,mask=bool@h200", NULL);
    assert_backend(
        d, "flash", TN_VERDICT_REFUSED, TN_REFUSE_FEATURE,
        "flash does not support a mask tensor; use is_causal; and no kernel on cuda yet");
    assert_backend(d, "mem_efficient", TN_VERDICT_REFUSED, TN_REFUSE_LIBRARY, "conditions hold");
    assert_backend(d, "cudnn", TN_VERDICT_REFUSED, TN_REFUSE_DTYPE, "supported: f16, bf16");
    tn_decision_release(d);

    d = explained("attention:bf16:b=1,h=8,hk=2,l=64,d=64@mi300x", NULL);
    assert_backend(d, "flash", TN_VERDICT_REFUSED, TN_REFUSE_LIBRARY, "conditions hold");
    assert_backend(d, "mem_efficient", TN_VERDICT_REFUSED, TN_REFUSE_SHAPE,
                   "groups are not supported");
    assert_backend(d, "cudnn", TN_VERDICT_REFUSED, TN_REFUSE_DEVICE, "cuDNN: expected cuda");
    tn_decision_release(d);

    d = explained("attention:bf16:varlen=64;64,h=8,d=64@h200", NULL); /* packed is nested */
    assert_backend(d, "cudnn", TN_VERDICT_REFUSED, TN_REFUSE_FEATURE, "CUDNN_NESTED");
    tn_decision_release(d);
    d = explained("attention-backward:bf16:b=1,h=8,l=64,d=200@sm86", NULL); /* is training */
    assert_backend(d, "flash", TN_VERDICT_REFUSED, TN_REFUSE_FEATURE,
                   "gradients are not supported");
    tn_decision_release(d);
    d = explained("attention:bf16:b=1,h=8,l=64,d=64,softcap=30@h200", NULL);
    assert_null(backend_in(d, "flash")->conditions); /* which upstream's attention does not have */
    tn_decision_release(d);
}

static void a_layer_can_be_explained(void **state)
{
    static const int32_t sdpa[] = {TN_BACKEND_TORCH_SDPA};
    tn_decision *d = NULL;
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_attention_backend_explain(
                         NULL, LAYER("pod", .supported = sdpa, .supported_count = 1), &d, &err),
                     TN_OK);
    assert_string_equal(tn_decision_problem(d), "attention:f32:b=1,h=1,l=1024,d=64@tpu:0");
    assert_backend(d, "TORCH_SDPA", TN_VERDICT_CHOSEN, 0, "");
    assert_backend(d, "FLASH_ATTN", TN_VERDICT_REFUSED, TN_REFUSE_FEATURE,
                   "the layer does not support it");
    tn_decision_release(d);
    assert_int_equal(
        tn_attention_backend_explain(
            NULL, LAYER("pod", .training = 1, .backend = TN_BACKEND_SAGE_ATTN), &d, &err),
        TN_OK);
    assert_null(tn_decision_chosen(d));
    assert_backend(d, "FLASH_ATTN", TN_VERDICT_REFUSED, TN_REFUSE_RULE, "another one is required");
    tn_decision_release(d);
    assert_int_equal(tn_attention_backend_explain(NULL, LAYER("pod", .training = 1), &d, &err),
                     TN_OK);
    assert_backend(d, "FLASH_ATTN", TN_VERDICT_REFUSED, TN_REFUSE_FEATURE, "gradients");
    assert_backend(d, "TORCH_SDPA", TN_VERDICT_CHOSEN, 0, "");
    assert_backend(d, "flash", TN_VERDICT_CHOSEN, 0, ""); /* with the gradients of math */
    tn_decision_release(d);
    assert_int_equal(tn_attention_backend_explain(NULL, PLAIN_LAYER("pod"), NULL, &err),
                     TN_INVALID_ARGUMENT);
}

static void wrong_layers_are_refused(void **state)
{
    static const int32_t wrong[] = {TN_BACKEND_TORCH_SDPA, 0};
    static const struct {
        tn_attention_backend_args args;
        const char *text;
    } rows[] = {
        {{.backend = TN_BACKEND_COUNT}, "backend: expected a backend number from -1 to 15, got 16"},
        {{.backend = -2}, "got -2"},
        {{.layer_default = 16}, "layer_default: expected a backend number from 0 to 15, got 16"},
        {{.layer_default = TN_BACKEND_NO_ATTENTION}, "layer_default cannot be NO_ATTENTION"},
        {{.supported = wrong, .supported_count = 2},
         "supported: expected a backend number from 1 to 15"},
        {{.supported = wrong}, "both supported and supported_count"},
        {{.supported_count = 1}, "both supported and supported_count"},
        {{.backend = 1, .strength = TN_FORBID}, "expected strength 0, TN_REQUIRE or TN_PREFER"},
        {{.reserved = 1}, "reserved"},
        {{.window_left = 4}, "window_left and window_right: expected mask TN_MASK_WINDOW, got 0"},
        {{.window_right = -1, .mask = TN_MASK_CAUSAL}, "expected mask TN_MASK_WINDOW, got 1"},
        {{.mask = 9}, "mask"},
        {{.head_size = -1}, "d"},
        {{.heads = 3, .groups = 2}, "heads"},
        {{.dropout = 1.5}, "dropout"},
    };
    tn_attention_choice choice = {.struct_size = sizeof choice}, small = {.struct_size = 8};
    tn_error err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_attention_backend_args args = rows[i].args;
        args.struct_size = sizeof args;
        args.device = described("pod");
        args.head_size = args.head_size ? args.head_size : 64;
        args.dtype = TN_F32;
        assert_contains(refused(&args, TN_INVALID_ARGUMENT), rows[i].text);
    }
    assert_int_equal(tn_attention_backend(NULL, NULL, &choice, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_attention_backend(NULL, PLAIN_LAYER("pod"), NULL, &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(tn_attention_backend(NULL, PLAIN_LAYER("pod"), &small, &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(
        tn_attention_backend(NULL,
                             TN_ARGS(attention_backend, .device = described("pod"), .head_size = 8),
                             &choice, &err),
        TN_INVALID_ARGUMENT);
    assert_contains(err.message, "dtype");
}

/* A scope is its thread's alone. */
typedef struct worker {
    tni_thread thread;
    int number;
    tn_device *device;
    long wrong;
} worker;

static void ask_in_a_scope(void *user)
{
    worker *self = user;
    static const int32_t math[] = {TN_SDP_MATH};
    for (int i = 0; i < (test_reduced() ? 50 : 500); i++) {
        tn_scope scope = {0};
        tn_attention_choice choice = {.struct_size = sizeof choice};
        if (self->number % 2)
            self->wrong += tn_sdpa_kernel_enter(&scope, math, 1, i % 2, NULL) != TN_OK;
        self->wrong += tn_attention_backend(NULL,
                                            TN_ARGS(attention_backend, .device = self->device,
                                                    .head_size = 64, .dtype = TN_F32),
                                            &choice, NULL) != TN_OK;
        self->wrong += choice.sdp != (self->number % 2 ? TN_SDP_MATH : TN_SDP_FLASH);
        tn_scope_leave(&scope);
    }
}

static void scopes_are_their_threads_alone(void **state)
{
    enum { WORKERS = 4 };
    worker workers[WORKERS];
    (void)state;
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker){.number = i, .device = described("pod")};
        assert_int_equal(tni_thread_create(&workers[i].thread, ask_in_a_scope, &workers[i], NULL),
                         TN_OK);
    }
    for (int i = 0; i < WORKERS; i++) {
        tni_thread_join(workers[i].thread);
        assert_int_equal(workers[i].wrong, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_asks), /* first: nothing was read yet */
        cmocka_unit_test(names_and_numbers),
        cmocka_unit_test(automatic_is_the_fastest),
        cmocka_unit_test(a_platform_stands_for_its_first_device),
        cmocka_unit_test(the_nearest_asks_first),
        cmocka_unit_test(a_context_asks_too),
        cmocka_unit_test(what_is_required_is_taken_or_refused),
        cmocka_unit_test(what_is_preferred_gives_way_and_says_so),
        cmocka_unit_test(strangers_are_asked_for_too),
        cmocka_unit_test(a_layer_supports_some),
        cmocka_unit_test(a_layer_that_is_trained_has_gradients),
        cmocka_unit_test(no_attention_is_an_answer),
        cmocka_unit_test(calls_go_by_it),
        cmocka_unit_test(answers_are_kept_by_all_they_follow_from),
        cmocka_unit_test(an_answer_says_who_asked),
        cmocka_unit_test(switches_and_their_order_govern_dispatch),
        cmocka_unit_test(problems_ask_too),
        cmocka_unit_test(calls_ask_too),
        cmocka_unit_test(a_request_lifts_no_switch),
        cmocka_unit_test(an_order_is_no_list_of_wishes),
        cmocka_unit_test(the_reference_counts_as_math),
        cmocka_unit_test(every_backend_has_its_reason),
        cmocka_unit_test(described_devices_have_conditions),
        cmocka_unit_test(a_layer_can_be_explained),
        cmocka_unit_test(wrong_layers_are_refused),
        cmocka_unit_test(scopes_are_their_threads_alone),
    };
    forget_settings();
    (void)setenv("TENON_CACHE", "", 1);
    return run_suite("unit.attention_backend", tests);
}
