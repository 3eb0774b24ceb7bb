#include "table.h"

#include "base/number.h"
#include "base/words.h"
#include "os/thread.h"

#include <inttypes.h>

#define LIST(name, settable_count, other_words, ...)                                        \
    static const char *const name##_words[] = {__VA_ARGS__, NULL};                          \
    static const tni_word_list list_##name = {                                              \
        name##_words,                                                                       \
        settable_count ? settable_count : sizeof name##_words / sizeof name##_words[0] - 1, \
        other_words}

static const char *const blas_others[] = {"hipblas", "cublas", "hipblaslt", "cublaslt", NULL};
static const char *const linalg_others[] = {"hipsolver", "cusolver", NULL};
static const char *const verbose_others[] = {"0", "off", "1", "on", "2", "creation", NULL};
static const char *const mkl_others[] = {"0", "off", "1", "on", NULL};

LIST(fp32, 0, NULL, "none", "ieee", "tf32", "bf16");
LIST(fp32_cuda, 0, NULL, "none", "ieee", "tf32");
LIST(matmul_precision, 3, NULL, "highest", "high", "medium", "mixed");
LIST(blas, 0, blas_others, "default", "cublas", "cublaslt", "ck");
LIST(linalg, 0, linalg_others, "default", "cusolver", "magma");
LIST(rocm_fa, 0, NULL, "default", "aotriton", "ck");
LIST(sdp, 0, NULL, "flash", "mem_efficient", "math", "cudnn", "overrideable");
LIST(depthwise, 0, NULL, "auto", "cudnn", "native");
LIST(verbose, 0, verbose_others, "off", "on", "creation");
LIST(verbose_mkl, 0, mkl_others, "off", "on");
LIST(engine, 0, NULL, "default", "fbgemm", "qnnpack", "onednn", "x86");
LIST(einsum, 0, NULL, "auto", "greedy", "optimal");
LIST(determinism, 0, NULL, "any", "run-to-run", "batch-invariant", "cross-device");
LIST(admission, 0, NULL, "auto", "always", "never");
LIST(isa, 0, NULL, "all", "baseline", "avx2", "avx512", "avx512-vnni", "avx512-bf16", "avx512-fp16",
     "amx", "neon", "neon-dotprod", "neon-bf16", "sve", "sve2");
LIST(pool, 0, NULL, "own", "openmp");

#define KIND_BOOL      TN_VALUE_BOOL, 0
#define KIND_INT       TN_VALUE_INT, 0
#define KIND_BYTES     TN_VALUE_BYTES, 0
#define KIND_WORD      TN_VALUE_WORD, 0
#define KIND_ORDER     TN_VALUE_ORDER, 0
#define KIND_RULE      TN_VALUE_RULE, 0
#define KIND_RULES     TN_VALUE_RULES, 0
#define KIND_VIEW_BOOL TN_VALUE_BOOL, 1
#define KIND_VIEW_WORD TN_VALUE_WORD, 1

/* In this order: list of words, word of the default, prefix of selectors. */
#define TEXTS_BOOL(x)      NULL, NULL, NULL
#define TEXTS_VIEW_BOOL(x) NULL, NULL, NULL
#define TEXTS_RULES(x)     NULL, NULL, NULL
#define TEXTS_INT(x)       NULL, x, NULL
#define TEXTS_BYTES(x)     NULL, x, NULL
#define TEXTS_RULE(x)      NULL, NULL, x
#define TEXTS_WORD(x)      &list_##x, NULL, NULL
#define TEXTS_ORDER(x)     &list_##x, NULL, NULL
#define TEXTS_VIEW_WORD(x) &list_##x, NULL, NULL

typedef struct source {
    const char *key;
    int32_t kind, view;
    const tni_word_list *words;
    const char *word, *prefix;
    int64_t standard, least, most;
    const char *since, *effect;
} source;

static const source sources[] = {
#define SOURCE(kind, NAME, name, key, words, standard, least, most, since, effect) \
    {key, KIND_##kind, TEXTS_##kind(words), standard, least, most, since, effect},
    TN_SETTING_LIST(SOURCE)
#undef SOURCE
};

enum { TEXT_MOST = 192, VARIABLE_MOST = 80 };

/* Built once from the list above, so that derived texts are not written by hand. */
static struct {
    tni_setting_row rows[TN_SETTING_COUNT];
    const char *keys[TN_SETTING_COUNT];
    char variables[TN_SETTING_COUNT][VARIABLE_MOST];
    char allowed[TN_SETTING_COUNT][TEXT_MOST];
    char standards[TN_SETTING_COUNT][TEXT_MOST];
} table;
static tni_once made = TNI_ONCE_INIT;

static const char *const kind_names[] = {"bool", "int", "bytes", "word", "order", "rule", "rules"};

/* Settings that act on registers and threads shared by the whole process. */
static bool is_process_only(tn_setting setting)
{
    return setting == TN_SETTING_CPU_THREADS || setting == TN_SETTING_CPU_ISA_MASK ||
           setting == TN_SETTING_CPU_POOL;
}

static void name_variable(const char *key, char *out)
{
    size_t used = (size_t)snprintf(out, VARIABLE_MOST, "TENON_");
    for (; *key; key++)
        out[used++] = (char)(*key == '.'                  ? '_'
                             : *key >= 'a' && *key <= 'z' ? *key - 'a' + 'A'
                                                          : *key);
    out[used] = '\0';
}

static void list_words(const tni_word_list *list, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < list->settable && used < TEXT_MOST; i++)
        used +=
            (size_t)snprintf(out + used, TEXT_MOST - used, "%s%s", i ? ", " : "", list->words[i]);
}

static void list_numbers(const tni_setting_row *row, char *out)
{
    char most[24] = "";
    if (row->most != INT64_MAX)
        snprintf(most, sizeof most, "%" PRId64, row->most);
    snprintf(out, TEXT_MOST, "%s%" PRId64 "%s%s%s%s%s", most[0] ? "" : "at least ", row->least,
             most[0] ? " to " : "", most, row->kind == TN_VALUE_BYTES ? ", with k m g t" : "",
             row->word ? ", or " : "", row->word ? row->word : "");
}

static void list_allowed(const tni_setting_row *row, char *out)
{
    switch (row->kind) {
    case TN_VALUE_BOOL: snprintf(out, TEXT_MOST, "true, false"); break;
    case TN_VALUE_INT:
    case TN_VALUE_BYTES: list_numbers(row, out); break;
    case TN_VALUE_RULE: snprintf(out, TEXT_MOST, "any, or [strength:]name, name ..."); break;
    case TN_VALUE_RULES: snprintf(out, TEXT_MOST, "strength:selector, ..."); break;
    default: list_words(row->words, out); break;
    }
}

static size_t write_order(const tni_setting_row *row, int64_t value, char *out, size_t size)
{
    size_t used = 0;
    if (value == 0)
        return (size_t)snprintf(out, size, "%s", row->facts.standard);
    for (; value; value >>= 4)
        used += (size_t)snprintf(used < size ? out + used : NULL, used < size ? size - used : 0,
                                 "%s%s", used ? ", " : "", row->words->words[(value & 15) - 1]);
    return used;
}

size_t tni_value_write(const tni_setting_row *row, int64_t value, char *out, size_t size)
{
    char number[24];
    switch (row->kind) {
    case TN_VALUE_BOOL: return (size_t)snprintf(out, size, "%s", value ? "true" : "false");
    case TN_VALUE_WORD: return (size_t)snprintf(out, size, "%s", row->words->words[value]);
    case TN_VALUE_ORDER: return write_order(row, value, out, size);
    default: break;
    }
    if (row->word && value == row->standard)
        return (size_t)snprintf(out, size, "%s", row->word);
    if (row->kind == TN_VALUE_BYTES)
        tni_number_write_units(value, number);
    else
        snprintf(number, sizeof number, "%" PRId64, value);
    return (size_t)snprintf(out, size, "%s", number);
}

static void make_row(tn_setting i)
{
    const source *from = &sources[i];
    tni_setting_row *row = &table.rows[i];
    *row = (tni_setting_row){.kind = from->kind,
                             .words = from->words,
                             .word = from->word,
                             .prefix = from->prefix,
                             .standard = from->standard,
                             .least = from->least,
                             .most = from->most};
    table.keys[i] = from->key;
    name_variable(from->key, table.variables[i]);
    list_allowed(row, table.allowed[i]);
    if (row->kind == TN_VALUE_RULE)
        snprintf(table.standards[i], TEXT_MOST, "any");
    else if (row->kind == TN_VALUE_ORDER)
        list_words(row->words, table.standards[i]);
    else if (row->kind != TN_VALUE_RULES)
        tni_value_write(row, row->standard, table.standards[i], TEXT_MOST);
    row->facts = (tn_setting_facts){.struct_size = sizeof row->facts,
                                    .key = from->key,
                                    .kind = kind_names[from->kind],
                                    .standard = table.standards[i],
                                    .environment = table.variables[i],
                                    .allowed = table.allowed[i],
                                    .effect = from->effect,
                                    .since = from->since,
                                    .view = from->view,
                                    .process_only = is_process_only(i)};
}

static void build_table(void)
{
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++)
        make_row(i);
}

const tni_setting_row *tni_setting_row_of(tn_setting setting)
{
    tni_once_run(&made, build_table);
    return setting >= 0 && setting < TN_SETTING_COUNT ? &table.rows[setting] : NULL;
}

const tn_setting_facts *tn_setting_info(tn_setting setting)
{
    const tni_setting_row *row = tni_setting_row_of(setting);
    return row ? &row->facts : NULL;
}

tn_setting tni_setting_find(const char *key)
{
    tni_once_run(&made, build_table);
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        if (strcmp(table.keys[i], key) == 0)
            return i;
    }
    return -1;
}

tn_setting tni_setting_of_variable(const char *name)
{
    tni_once_run(&made, build_table);
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        if (strcmp(table.variables[i], name) == 0)
            return i;
    }
    return -1;
}

tn_status tni_setting_unknown(const char *key, const char *where, tn_error *err)
{
    char hint[TNI_HINT];
    tni_once_run(&made, build_table);
    return tn_fail(err, TN_NOT_FOUND, 0, where,
                   "unknown setting \"%.80s\"; `tenon settings` lists them%s", key,
                   tni_words_hint(tni_words_nearest(key, table.keys, TN_SETTING_COUNT), hint));
}

tn_status tn_setting_get(const char *key, tn_setting *out, tn_error *err)
{
    static const char where[] = "tn_setting_get";
    if (!key || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", key ? "out" : "the key");
    tn_setting found = tni_setting_find(key);
    if (found < 0)
        return tni_setting_unknown(key, where, err);
    *out = found;
    return TN_OK;
}

const char *tn_level_name(int32_t level)
{
    static const char *const names[] = {"default", "file",  "environment",
                                        "process", "scope", "call"};
    bool known = level >= 0 && (size_t)level < sizeof names / sizeof names[0];
    return known ? names[level] : "unknown";
}
