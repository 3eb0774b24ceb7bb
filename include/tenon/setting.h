/* Settings: every switch, by number, with its type, its range and the source of its value.
 *
 * A value comes from the nearest level that has one:
 *     call         a context made for the call
 *     scope        this thread's scopes, the innermost first
 *     process      tn_settings_change and tn_settings_set
 *     environment  TENON_<KEY>, read once
 *     file         $TENON_CONFIG, else $XDG_CONFIG_HOME/tenon/config, read once
 *     default      the table's
 * Reading changes nothing, never fails and never blocks. A value that is refused changes nothing.
 *
 * Thread-safety: Safe. */
#ifndef TENON_SETTING_H
#define TENON_SETTING_H

#include "base.h"
#include "settings_table.h"

TN_BEGIN_DECLS

/* TN_SETTING_FP32_PRECISION, ...: a row's number. */
typedef int32_t tn_setting;
enum {
#define TN_SETTING_ENUM_(kind, NAME, name, key, words, standard, least, most, since, effect) \
    TN_SETTING_##NAME,
    TN_SETTING_LIST(TN_SETTING_ENUM_)
#undef TN_SETTING_ENUM_
        TN_SETTING_COUNT
};

/* The kinds of values; settings_table.h describes them. */
enum {
    TN_VALUE_BOOL = 0,
    TN_VALUE_INT,
    TN_VALUE_BYTES,
    TN_VALUE_WORD,
    TN_VALUE_ORDER,
    TN_VALUE_RULE,
    TN_VALUE_RULES
};

/* Numbers of the words of WORD and ORDER settings. */
enum { TN_FP32_NONE = 0, TN_FP32_IEEE, TN_FP32_TF32, TN_FP32_BF16 };
enum { TN_DETERMINISM_ANY = 0, TN_RUN_TO_RUN, TN_BATCH_INVARIANT, TN_CROSS_DEVICE };
enum {
    TN_MATMUL_PRECISION_HIGHEST = 0,
    TN_MATMUL_PRECISION_HIGH,
    TN_MATMUL_PRECISION_MEDIUM,
    TN_MATMUL_PRECISION_MIXED /* read only: no single word describes the two underlying rows */
};
enum { TN_BLAS_DEFAULT = 0, TN_BLAS_CUBLAS, TN_BLAS_CUBLASLT, TN_BLAS_CK };
enum { TN_LINALG_DEFAULT = 0, TN_LINALG_CUSOLVER, TN_LINALG_MAGMA };
enum { TN_ROCM_FA_DEFAULT = 0, TN_ROCM_FA_AOTRITON, TN_ROCM_FA_CK };
enum { TN_SDP_FLASH = 0, TN_SDP_MEM_EFFICIENT, TN_SDP_MATH, TN_SDP_CUDNN, TN_SDP_OVERRIDEABLE };
enum { TN_DEPTHWISE_AUTO = 0, TN_DEPTHWISE_CUDNN, TN_DEPTHWISE_NATIVE };
enum { TN_VERBOSE_OFF = 0, TN_VERBOSE_ON, TN_VERBOSE_CREATION };
enum {
    TN_ENGINE_DEFAULT = 0,
    TN_ENGINE_FBGEMM,
    TN_ENGINE_QNNPACK,
    TN_ENGINE_ONEDNN,
    TN_ENGINE_X86
};
enum { TN_EINSUM_AUTO = 0, TN_EINSUM_GREEDY, TN_EINSUM_OPTIMAL };
enum { TN_ADMISSION_AUTO = 0, TN_ADMISSION_ALWAYS, TN_ADMISSION_NEVER };
enum { TN_POOL_OWN = 0, TN_POOL_OPENMP };

/* Strength of a rule; see rule.h. */
enum { TN_PERMIT = 0, TN_REQUIRE, TN_PREFER, TN_AVOID, TN_FORBID };

/* One change of one setting. Frozen at 24 bytes. Made by tn_with_... or tn_setting_parse. */
typedef struct tn_change {
    tn_setting setting;
    int32_t strength; /* for RULE and RULES */
    int64_t value;    /* for all others     */
    const char *
        text; /* for ORDER, RULE and RULES: must stay valid until the call with the change returns */
} tn_change;

TN_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(tn_change) == 24, "tn_change is frozen at 24 bytes");

/* For calls that take changes: tn_scope_enter(&scope, TN_CHANGES(tn_with_inference(1)), &err). C
 * only; in other languages pass an array and its count. */
#define TN_CHANGES(...) \
    (const tn_change[]){__VA_ARGS__}, (sizeof((const tn_change[]){__VA_ARGS__}) / sizeof(tn_change))

struct tn_context; /* context.h; NULL is the calling thread's */

/* Returns the value: 0 or 1, a number, bytes, or the number of a word; 0 for RULE, RULES and ORDER.
 * A precision row without its own value has TN_FP32_NONE; tn_setting_resolved returns the value
 * that then applies, never TN_FP32_NONE, and for every other row the same as tn_setting_value. 0
 * for an invalid setting number. */
TN_API int64_t tn_setting_value(const struct tn_context *context, tn_setting setting);
TN_API int64_t tn_setting_resolved(const struct tn_context *context, tn_setting setting);

/* A pair of functions for every row: tn_with_fp32_precision(TN_FP32_IEEE),
 * tn_get_fp32_precision(context), ... tn_with_matmul_library(TN_PREFER, "mkl,openblas"): best
 * first. tn_with_cuda_sdp_priority("math"). tn_with_rules(TN_FORBID, "library:cudnn") adds one
 * rule; tn_with_rule is another name for it. */
#define TN_SETTING_NUMBER_(type, NAME, name)                           \
    static inline tn_change tn_with_##name(type value)                 \
    {                                                                  \
        tn_change change = {TN_SETTING_##NAME, 0, value, NULL};        \
        return change;                                                 \
    }                                                                  \
    static inline type tn_get_##name(const struct tn_context *context) \
    {                                                                  \
        return (type)tn_setting_value(context, TN_SETTING_##NAME);     \
    }
#define TN_SETTING_RULE_(NAME, name)                                               \
    static inline tn_change tn_with_##name(int32_t strength, const char *selector) \
    {                                                                              \
        tn_change change = {TN_SETTING_##NAME, strength, 0, selector};             \
        return change;                                                             \
    }
#define TN_SETTING_MAKE_BOOL(NAME, name)      TN_SETTING_NUMBER_(int32_t, NAME, name)
#define TN_SETTING_MAKE_INT(NAME, name)       TN_SETTING_NUMBER_(int64_t, NAME, name)
#define TN_SETTING_MAKE_BYTES(NAME, name)     TN_SETTING_NUMBER_(int64_t, NAME, name)
#define TN_SETTING_MAKE_WORD(NAME, name)      TN_SETTING_NUMBER_(int32_t, NAME, name)
#define TN_SETTING_MAKE_VIEW_BOOL(NAME, name) TN_SETTING_NUMBER_(int32_t, NAME, name)
#define TN_SETTING_MAKE_VIEW_WORD(NAME, name) TN_SETTING_NUMBER_(int32_t, NAME, name)
#define TN_SETTING_MAKE_RULE(NAME, name)      TN_SETTING_RULE_(NAME, name)
#define TN_SETTING_MAKE_RULES(NAME, name)     TN_SETTING_RULE_(NAME, name)
#define TN_SETTING_MAKE_ORDER(NAME, name)                     \
    static inline tn_change tn_with_##name(const char *order) \
    {                                                         \
        tn_change change = {TN_SETTING_##NAME, 0, 0, order};  \
        return change;                                        \
    }
#define TN_SETTING_MAKE_(kind, NAME, name, key, words, standard, least, most, since, effect) \
    TN_SETTING_MAKE_##kind(NAME, name)
TN_SETTING_LIST(TN_SETTING_MAKE_)
#undef TN_SETTING_MAKE_

static inline tn_change tn_with_rule(int32_t strength, const char *selector)
{
    return tn_with_rules(strength, selector);
}

/* Describes a row as text. Static. */
typedef struct tn_setting_facts {
    size_t struct_size;
    const char *key;         /* "cuda.matmul.allow_tf32"                                 */
    const char *kind;        /* "bool", "int", "bytes", "word", "order", "rule", "rules" */
    const char *standard;    /* the default, as text                                     */
    const char *environment; /* "TENON_CUDA_MATMUL_ALLOW_TF32"                           */
    const char *allowed;     /* "none, ieee, tf32, bf16"; "0 to 1024, or auto"           */
    const char *effect;
    const char *since;
    int32_t view;         /* 1: a view, without its own value          */
    int32_t process_only; /* 1: cannot be changed by a scope or a call */
} tn_setting_facts;
TN_ENDS_WITH(tn_setting_facts, process_only);

/* NULL for an invalid setting number. */
TN_API const tn_setting_facts *tn_setting_info(tn_setting setting);

/* Finds a setting by its key. TN_NOT_FOUND names the closest match. */
TN_API tn_status tn_setting_get(const char *key, tn_setting *out, tn_error *err);

/* Parses "fp32_precision=ieee" into a change; the text of the change, if any, points into `text`.
 * Blanks around key and value are ignored. TN_NOT_FOUND for the key, TN_INVALID_ARGUMENT for the
 * value; the message has the allowed ones and the closest match. */
TN_API tn_status tn_setting_parse(const char *text, tn_change *out, tn_error *err);

/* Write the value in the form that can be parsed: "ieee", "64m", "require:cublaslt". Return the
 * length of the full text without the terminator; text longer than `size` is truncated. */
TN_API size_t tn_setting_write(const struct tn_context *context, tn_setting setting, char *out,
                               size_t size);
TN_API size_t tn_setting_write_resolved(const struct tn_context *context, tn_setting setting,
                                        char *out, size_t size);

/* Where a value comes from. */
enum {
    TN_LEVEL_DEFAULT = 0,
    TN_LEVEL_FILE,
    TN_LEVEL_ENVIRONMENT,
    TN_LEVEL_PROCESS,
    TN_LEVEL_SCOPE,
    TN_LEVEL_CALL
};
TN_API const char *tn_level_name(int32_t level); /* "default", ..., "call"; "unknown" */

typedef struct tn_origin {
    size_t struct_size;
    int32_t level;   /* TN_LEVEL_... */
    tn_setting from; /* row of the resolved value: another one if it is inherited or read through
                        a view */
    char text[256];  /* "environment: TENON_FP32_PRECISION"; "scope, through fp32_precision" */
} tn_origin;
TN_ENDS_WITH(tn_origin, text);

/* Set out->struct_size first. */
TN_API tn_status tn_setting_origin(const struct tn_context *context, tn_setting setting,
                                   tn_origin *out, tn_error *err);

/* The components whose code reads a setting: "matmul", "platform.inference_mode". NULL past the end.
 * Static text. */
TN_API const char *tn_setting_reader(tn_setting setting, size_t index);

/* Whether another value of a setting can change anything in this process, with the modules that are
 * loaded. */
typedef struct tn_setting_use {
    size_t struct_size;
    int32_t used; /* 1: some reader below */
    int32_t reserved;
    uint64_t readers; /* a bit for each index of tn_setting_reader: that reader is affected */
    char reason[240]; /* why nothing changes; "" if used */
} tn_setting_use;
TN_ENDS_WITH(tn_setting_use, reason);

/* Set out->struct_size first. Discovers modules. TN_INVALID_ARGUMENT for an invalid number. */
TN_API tn_status tn_setting_use_get(tn_setting setting, tn_setting_use *out, tn_error *err);

/* Applies all changes to the whole process, or none of them. Threads see them at their next read;
 * running work keeps the values it started with. Fails with TN_REFUSED if the settings are frozen
 * or rules contradict each other. */
TN_API tn_status tn_settings_change(const tn_change *changes, size_t count, tn_error *err);
TN_API tn_status tn_settings_set(const char *text, tn_error *err); /* "key=value" */

/* Removes the process's value of one key, or of all if NULL. */
TN_API tn_status tn_settings_reset(const char *key, tn_error *err);

/* Forbids all further changes at the process level, by any function; scopes and contexts still
 * work. It cannot be undone. */
TN_API void tn_settings_freeze(void);
TN_API int32_t tn_settings_frozen(void);

/* Errors found when the environment and the file were read, one line each, with the closest match.
 * NULL past the end. Valid as long as the process. */
TN_API const char *tn_settings_problem(size_t index);

/* The file that was read, or would have been; "" if there is no home folder for one. */
TN_API const char *tn_settings_file(void);

/* Writes "key=value" into that file, keeps its other lines, and creates the file and its folder if
 * needed. Does not change the settings of this process. */
TN_API tn_status tn_settings_save(const char *text, tn_error *err);

TN_END_DECLS

#endif
