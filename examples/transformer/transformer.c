/* A transformer in C: reads the weights of a Llama-like model, computes a prompt (prefill), then
 * produces one token after another (decode), with a cache of keys and values.
 *
 *     python3 make_weights.py weights.safetensors
 *     ./transformer weights.safetensors --prompt 1,2,3 --tokens 32
 *
 * Tenon computes everything, on the device of --device. This program holds the weights, makes views
 * and calls operators. */
#include "safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Leaves a function at its label `done`, with its variable `status` set, if the call fails. */
#define TRY(call)              \
    do {                       \
        if ((status = (call))) \
            goto done;         \
    } while (0)

typedef struct layer {
    tn_tensor attention_norm, query, key, value, attention_out;
    tn_tensor mlp_norm, gate, up, down;
    tn_tensor keys, values; /* the cache: [positions, key heads * head size] */
} layer;

typedef struct model {
    tn_device *device;
    tn_dtype dtype;
    int64_t layer_count, hidden, inner, vocabulary, positions;
    int64_t heads, key_heads, head_size;
    double norm_epsilon, rotary_base;
    layer *layers;
    tn_tensor embedding, final_norm, head; /* `head` computes the logits of the next token */
    tn_tensor cos, sin;                    /* of rotary embedding: [positions, 1, head size / 2] */
} model;

/* Memory for a step of `count` tokens: activations, and views of them by attention heads. */
typedef struct activations {
    int64_t count;
    tn_tensor x, normed, query, key, attended, gate, up; /* [count, ...] */
    tn_tensor query_heads, key_heads, attended_heads;    /* [1, count, heads, head size] */
    tn_tensor last, last_normed, logits, probabilities;  /* of the last token: [1, ...] */
} activations;

static tn_status create(const model *m, tn_dtype dtype, int64_t rows, int64_t columns,
                        tn_tensor *out, tn_error *err)
{
    const int64_t shape[] = {rows, columns};
    return tn_tensor_create(m->device, dtype, shape, 2, out, err);
}

/* [rows, heads * size] as [1, rows, heads, size], as attention and rotary embedding need it. */
static tn_status split_heads(const tn_tensor *tensor, int64_t heads, tn_tensor *out, tn_error *err)
{
    const int64_t shape[] = {1, tensor->shape[0], heads, tensor->shape[1] / heads};
    return tn_tensor_reshape(tensor, shape, 4, out, err);
}

/* --- weights --------------------------------------------------------------------------------- */

/* Copies a matrix of the file to the device; rows 0: a vector. A size of -1 is taken from the file. */
static tn_status load(const model *m, const st_file *file, const char *name, int64_t rows,
                      int64_t columns, tn_tensor *out, tn_error *err)
{
    const st_tensor *found = st_find(file, name);
    const int32_t ndim = rows == 0 ? 1 : 2;
    if (!found)
        return tn_fail(err, TN_NOT_FOUND, 0, "load", "the file has no tensor %s", name);
    if (found->dtype != m->dtype)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "load", "%s: expected dtype %s, got %s", name,
                       tn_dtype_name(m->dtype), tn_dtype_name(found->dtype));
    if (found->ndim != ndim || (rows > 0 && found->shape[0] != rows) ||
        (columns >= 0 && found->shape[ndim - 1] != columns))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "load",
                       "%s: expected %lld x %lld (-1: any), got %d dimensions, %lld x %lld", name,
                       (long long)rows, (long long)columns, (int)found->ndim,
                       (long long)found->shape[0], (long long)found->shape[ndim - 1]);
    tn_status status = tn_tensor_create(m->device, m->dtype, found->shape, ndim, out, err);
    return status ? status : tn_tensor_write(out, found->data, found->bytes, err);
}

static tn_status load_layer(model *m, const st_file *file, int64_t index, tn_error *err)
{
    const int64_t queries = m->heads * m->head_size, keys = m->key_heads * m->head_size;
    layer *l = &m->layers[index];
    const struct {
        const char *name;
        tn_tensor *to;
        int64_t rows, columns;
    } weights[] = {
        {"input_layernorm", &l->attention_norm, 0, m->hidden},
        {"self_attn.q_proj", &l->query, queries, m->hidden},
        {"self_attn.k_proj", &l->key, keys, m->hidden},
        {"self_attn.v_proj", &l->value, keys, m->hidden},
        {"self_attn.o_proj", &l->attention_out, m->hidden, queries},
        {"post_attention_layernorm", &l->mlp_norm, 0, m->hidden},
        {"mlp.gate_proj", &l->gate, m->inner, m->hidden},
        {"mlp.up_proj", &l->up, m->inner, m->hidden},
        {"mlp.down_proj", &l->down, m->hidden, m->inner},
    };
    tn_status status = TN_OK;
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
        char name[96];
        snprintf(name, sizeof name, "model.layers.%" PRId64 ".%s.weight", index, weights[i].name);
        TRY(load(m, file, name, weights[i].rows, weights[i].columns, weights[i].to, err));
    }
    TRY(create(m, m->dtype, m->positions, keys, &l->keys, err));
    TRY(create(m, m->dtype, m->positions, keys, &l->values, err));
done:
    return status;
}

/* The angles of rotary embedding: position / base^(2 i / head size). */
static tn_status make_rotary(model *m, tn_error *err)
{
    const int64_t half = m->head_size / 2, count = m->positions * half;
    const int64_t shape[] = {m->positions, 1, half}; /* broadcasts over the heads */
    const uint64_t bytes = (uint64_t)count * sizeof(float);
    float *numbers = malloc(2 * bytes);
    tn_status status = TN_OK;
    if (!numbers)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "make_rotary", "no memory for the angles");
    for (int64_t i = 0; i < count; i++) {
        const double power = -2.0 * (double)(i % half) / (double)m->head_size;
        const double angle = (double)(i / half) * pow(m->rotary_base, power);
        numbers[i] = (float)cos(angle);
        numbers[count + i] = (float)sin(angle);
    }
    TRY(tn_tensor_create(m->device, TN_F32, shape, 3, &m->cos, err));
    TRY(tn_tensor_create(m->device, TN_F32, shape, 3, &m->sin, err));
    TRY(tn_tensor_write(&m->cos, numbers, bytes, err));
    TRY(tn_tensor_write(&m->sin, numbers + count, bytes, err));
done:
    free(numbers);
    return status;
}

/* The number of rows of a matrix of the file; 0 if there is no such matrix. */
static int64_t count_rows(const st_file *file, const char *name)
{
    const st_tensor *found = st_find(file, name);
    return found && found->ndim == 2 ? found->shape[0] : 0;
}

static double read_number(const st_file *file, const char *key, double otherwise)
{
    const char *text = st_metadata(file, key);
    return text ? strtod(text, NULL) : otherwise;
}

/* Shapes give all sizes but the number of heads, which is in the metadata or in `heads`. */
static tn_status find_sizes(model *m, const st_file *file, int64_t heads, tn_error *err)
{
    const st_tensor *embedding = st_find(file, "model.embed_tokens.weight");
    const int64_t queries = count_rows(file, "model.layers.0.self_attn.q_proj.weight");
    const int64_t keys = count_rows(file, "model.layers.0.self_attn.k_proj.weight");
    char name[64];
    m->heads = heads > 0 ? heads : (int64_t)read_number(file, "heads", 0);
    if (!embedding || embedding->ndim != 2 || m->heads < 1 || queries < 1 ||
        queries % (2 * m->heads) != 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "find_sizes",
                       "expected model.embed_tokens.weight, model.layers.0.self_attn.q_proj.weight "
                       "and a number of heads that divides its %lld rows, got %lld heads; pass "
                       "--heads",
                       (long long)queries, (long long)m->heads);
    m->dtype = embedding->dtype;
    m->vocabulary = embedding->shape[0];
    m->hidden = embedding->shape[1];
    m->head_size = queries / m->heads;
    m->key_heads = keys / m->head_size;
    m->inner = count_rows(file, "model.layers.0.mlp.gate_proj.weight");
    m->rotary_base = read_number(file, "rope_theta", 10000);
    m->norm_epsilon = read_number(file, "norm_epsilon", 1e-5);
    do
        snprintf(name, sizeof name, "model.layers.%" PRId64 ".self_attn.q_proj.weight",
                 ++m->layer_count);
    while (st_find(file, name));
    if (m->vocabulary < 1 || m->key_heads < 1 || m->heads % m->key_heads != 0 || m->inner < 1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "find_sizes",
                       "expected key heads that divide the heads, and an mlp, got %lld heads, %lld "
                       "key heads, %lld rows of mlp.gate_proj",
                       (long long)m->heads, (long long)m->key_heads, (long long)m->inner);
    return TN_OK;
}

static tn_status load_model(model *m, const st_file *file, int64_t heads, tn_error *err)
{
    tn_status status;
    TRY(find_sizes(m, file, heads, err));
    m->layers = calloc((size_t)m->layer_count, sizeof *m->layers);
    if (!m->layers)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "load_model", "no memory for the layers");
    for (int64_t i = 0; i < m->layer_count; i++)
        TRY(load_layer(m, file, i, err));
    TRY(load(m, file, "model.embed_tokens.weight", m->vocabulary, m->hidden, &m->embedding, err));
    TRY(load(m, file, "model.norm.weight", 0, m->hidden, &m->final_norm, err));
    if (st_find(file, "lm_head.weight"))
        TRY(load(m, file, "lm_head.weight", m->vocabulary, m->hidden, &m->head, err));
    else /* many models use one matrix for both */
        TRY(tn_tensor_view(&m->embedding, &m->head, err));
    TRY(make_rotary(m, err));
done:
    return status;
}

/* Releasing a tensor that was never created does nothing, so this also follows a failure. */
static void release_model(model *m)
{
    for (int64_t i = 0; m->layers && i < m->layer_count; i++) {
        layer *l = &m->layers[i];
        tn_tensor *const all[] = {&l->attention_norm, &l->query, &l->key,   &l->value,
                                  &l->attention_out,  &l->gate,  &l->up,    &l->down,
                                  &l->mlp_norm,       &l->keys,  &l->values};
        for (size_t t = 0; t < sizeof all / sizeof all[0]; t++)
            tn_tensor_release(all[t]);
    }
    tn_tensor_release(&m->embedding);
    tn_tensor_release(&m->final_norm);
    tn_tensor_release(&m->head);
    tn_tensor_release(&m->cos);
    tn_tensor_release(&m->sin);
    free(m->layers);
}

/* --- one step -------------------------------------------------------------------------------- */

static tn_status create_activations(const model *m, int64_t count, activations *a, tn_error *err)
{
    const int64_t queries = m->heads * m->head_size, keys = m->key_heads * m->head_size;
    tn_status status;
    a->count = count;
    TRY(create(m, m->dtype, count, m->hidden, &a->x, err));
    TRY(create(m, m->dtype, count, m->hidden, &a->normed, err));
    TRY(create(m, m->dtype, count, queries, &a->query, err));
    TRY(create(m, m->dtype, count, keys, &a->key, err));
    TRY(create(m, m->dtype, count, queries, &a->attended, err));
    TRY(create(m, m->dtype, count, m->inner, &a->gate, err));
    TRY(create(m, m->dtype, count, m->inner, &a->up, err));
    TRY(split_heads(&a->query, m->heads, &a->query_heads, err));
    TRY(split_heads(&a->key, m->key_heads, &a->key_heads, err));
    TRY(split_heads(&a->attended, m->heads, &a->attended_heads, err));
    TRY(tn_tensor_slice(&a->x, 0, -1, TN_SLICE_END, 1, &a->last, err));
    TRY(create(m, m->dtype, 1, m->hidden, &a->last_normed, err));
    TRY(create(m, TN_F32, 1, m->vocabulary, &a->logits, err));
    TRY(create(m, TN_F32, 1, m->vocabulary, &a->probabilities, err));
done:
    return status;
}

static void release_activations(activations *a)
{
    tn_tensor *const all[] = {&a->x,         &a->normed,         &a->query,
                              &a->key,       &a->attended,       &a->gate,
                              &a->up,        &a->last,           &a->query_heads,
                              &a->key_heads, &a->attended_heads, &a->last_normed,
                              &a->logits,    &a->probabilities};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tn_tensor_release(all[i]);
}

/* x = the rows of the embedding that the tokens name. */
static tn_status embed(const model *m, const activations *a, const int64_t *tokens, tn_error *err)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < a->count && !status; i++) {
        tn_tensor from = {0}, to = {0};
        TRY(tn_tensor_select(&m->embedding, 0, tokens[i], &from, err));
        TRY(tn_tensor_select(&a->x, 0, i, &to, err));
        TRY(tn_copy(NULL, &from, &to, err));
    done:
        tn_tensor_release(&from);
        tn_tensor_release(&to);
    }
    return status;
}

static tn_status normalize(const model *m, const tn_tensor *in, const tn_tensor *weight,
                           const tn_tensor *out, tn_error *err)
{
    return tn_norm(NULL,
                   TN_ARGS(norm, .in = in, .out = out, .weight = weight, .kind = TN_NORM_RMS,
                           .epsilon = m->norm_epsilon),
                   err);
}

/* out = in W^T; adds to out if `adds`. */
static tn_status multiply(const tn_tensor *in, const tn_tensor *weight, const tn_tensor *out,
                          int adds, tn_error *err)
{
    return tn_matmul(
        NULL,
        TN_ARGS(matmul, .a = in, .b = weight, .out = out, .transpose_b = 1, .beta = adds ? 1 : 0),
        err);
}

/* Attention of the tokens at positions begin, begin + 1, ...: their keys and values are written into
 * the cache, of which attention reads all up to there. Nothing is copied: views select the parts. */
static tn_status attend(const model *m, const layer *l, const activations *a, int64_t begin,
                        tn_error *err)
{
    const int64_t end = begin + a->count;
    tn_tensor cos = {0}, sin = {0}, new_keys = {0}, new_key_heads = {0}, new_values = {0};
    tn_tensor keys = {0}, values = {0}, key_heads = {0}, value_heads = {0};
    tn_status status;
    TRY(tn_tensor_slice(&m->cos, 0, begin, end, 1, &cos, err));
    TRY(tn_tensor_slice(&m->sin, 0, begin, end, 1, &sin, err));
    TRY(tn_tensor_slice(&l->keys, 0, begin, end, 1, &new_keys, err));
    TRY(tn_tensor_slice(&l->values, 0, begin, end, 1, &new_values, err));
    TRY(tn_tensor_slice(&l->keys, 0, 0, end, 1, &keys, err));
    TRY(tn_tensor_slice(&l->values, 0, 0, end, 1, &values, err));
    TRY(split_heads(&new_keys, m->key_heads, &new_key_heads, err));
    TRY(split_heads(&keys, m->key_heads, &key_heads, err));
    TRY(split_heads(&values, m->key_heads, &value_heads, err));

    TRY(multiply(&a->normed, &l->query, &a->query, 0, err));
    TRY(multiply(&a->normed, &l->key, &a->key, 0, err));
    TRY(multiply(&a->normed, &l->value, &new_values, 0, err));
    TRY(tn_rotary(NULL,
                  TN_ARGS(rotary, .in = &a->query_heads, .out = &a->query_heads, .cos = &cos,
                          .sin = &sin, .kind = TN_ROTARY_HALVES),
                  err));
    TRY(tn_rotary(NULL,
                  TN_ARGS(rotary, .in = &a->key_heads, .out = &new_key_heads, .cos = &cos,
                          .sin = &sin, .kind = TN_ROTARY_HALVES),
                  err));
    TRY(tn_attention(NULL, /* the last query sees every key: causal, aligned at the bottom right */
                     TN_ARGS(attention, .q = &a->query_heads, .k = &key_heads, .v = &value_heads,
                             .out = &a->attended_heads, .layout = TN_LAYOUT_BLHD,
                             .mask = TN_MASK_CAUSAL_BR),
                     err));
    TRY(multiply(&a->attended, &l->attention_out, &a->x, 1, err));
done:
    tn_tensor_release(&cos);
    tn_tensor_release(&sin);
    tn_tensor_release(&new_keys);
    tn_tensor_release(&new_key_heads);
    tn_tensor_release(&new_values);
    tn_tensor_release(&keys);
    tn_tensor_release(&values);
    tn_tensor_release(&key_heads);
    tn_tensor_release(&value_heads);
    return status;
}

/* x += down(silu(gate(x)) * up(x)) */
static tn_status feed_forward(const layer *l, const activations *a, tn_error *err)
{
    tn_status status;
    TRY(multiply(&a->normed, &l->gate, &a->gate, 0, err));
    TRY(multiply(&a->normed, &l->up, &a->up, 0, err));
    TRY(tn_unary(NULL, TN_ARGS(unary, .in = &a->gate, .out = &a->gate, .kind = TN_UNARY_SILU),
                 err));
    TRY(tn_binary(
        NULL,
        TN_ARGS(binary, .in = &a->gate, .other = &a->up, .out = &a->gate, .kind = TN_BINARY_MUL),
        err));
    TRY(multiply(&a->gate, &l->down, &a->x, 1, err));
done:
    return status;
}

/* Computes the tokens at positions begin, begin + 1, ..., and writes the probability of each token
 * to follow them to `probabilities`. */
static tn_status step(const model *m, const activations *a, const int64_t *tokens, int64_t begin,
                      float *probabilities, tn_error *err)
{
    tn_status status;
    TRY(embed(m, a, tokens, err));
    for (int64_t i = 0; i < m->layer_count; i++) {
        const layer *l = &m->layers[i];
        TRY(normalize(m, &a->x, &l->attention_norm, &a->normed, err));
        TRY(attend(m, l, a, begin, err));
        TRY(normalize(m, &a->x, &l->mlp_norm, &a->normed, err));
        TRY(feed_forward(l, a, err));
    }
    TRY(normalize(m, &a->last, &m->final_norm, &a->last_normed, err));
    TRY(multiply(&a->last_normed, &m->head, &a->logits, 0, err));
    TRY(tn_softmax(NULL, TN_ARGS(softmax, .in = &a->logits, .out = &a->probabilities), err));
    TRY(tn_tensor_read(&a->probabilities, probabilities,
                       (uint64_t)m->vocabulary * sizeof *probabilities, err));
done:
    return status;
}

/* --- the program ----------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The most probable token. */
static int64_t pick(const float *probabilities, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        best = probabilities[i] > probabilities[best] ? i : best;
    printf("%" PRId64 " %.9g\n", best, (double)probabilities[best]);
    return best;
}

static void print_speed(const char *what, int64_t tokens, double began)
{
    const double took = seconds() - began;
    printf("%s: %" PRId64 " tokens in %.3f ms, %.1f tokens per second\n", what, tokens, took * 1e3,
           (double)tokens / took);
}

/* Prints one line "TOKEN PROBABILITY" for each new token. */
static tn_status generate(const model *m, const int64_t *prompt, int64_t prompt_count,
                          int64_t token_count, tn_error *err)
{
    activations all = {0}, one = {0};
    float *probabilities = malloc((size_t)m->vocabulary * sizeof *probabilities);
    tn_status status = TN_OK;
    if (!probabilities)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "generate", "no memory for the probabilities");
    TRY(create_activations(m, prompt_count, &all, err));
    TRY(create_activations(m, 1, &one, err));
    /* The first step of each kind chooses kernels, and compiles them on a GPU. It is not timed, and
     * what it writes to the cache is written again. */
    TRY(step(m, &all, prompt, 0, probabilities, err));
    TRY(step(m, &one, prompt, prompt_count, probabilities, err));
    double began = seconds();
    TRY(step(m, &all, prompt, 0, probabilities, err));
    print_speed("prefill", prompt_count, began);
    int64_t token = pick(probabilities, m->vocabulary);
    began = seconds();
    for (int64_t i = 1; i < token_count; i++) {
        TRY(step(m, &one, &token, prompt_count + i - 1, probabilities, err));
        token = pick(probabilities, m->vocabulary);
    }
    if (token_count > 1)
        print_speed("decode", token_count - 1, began);
done:
    release_activations(&all);
    release_activations(&one);
    free(probabilities);
    return status;
}

typedef struct options {
    const char *path, *device;
    int64_t heads, token_count, prompt_count;
    int64_t prompt[1024];
} options;

/* Reads numbers separated by commas. Returns how many, 0 if the text is not a list of at most `most`
 * numbers. */
static int64_t read_list(const char *text, int64_t most, int64_t *out)
{
    for (int64_t count = 0; count < most;) {
        char *end;
        out[count++] = strtoll(text, &end, 10);
        if (end == text || (*end != ',' && *end != '\0') || out[count - 1] < 0)
            return 0;
        if (*end == '\0')
            return count;
        text = end + 1;
    }
    return 0;
}

static int read_options(int count, char **words, options *out)
{
    enum { PROMPT_MAX = sizeof out->prompt / sizeof out->prompt[0] };
    *out = (options){.device = "best", .token_count = 16, .prompt = {1}, .prompt_count = 1};
    for (int i = 1; i < count; i++) {
        const char *word = words[i], *value = i + 1 < count ? words[i + 1] : "";
        int64_t parts = 1;
        if (word[0] != '-') {
            out->path = word;
            continue;
        }
        i++;
        if (strcmp(word, "--device") == 0)
            out->device = value;
        else if (strcmp(word, "--prompt") == 0)
            parts = out->prompt_count = read_list(value, PROMPT_MAX, out->prompt);
        else if (strcmp(word, "--tokens") == 0)
            parts = read_list(value, 1, &out->token_count);
        else if (strcmp(word, "--heads") == 0)
            parts = read_list(value, 1, &out->heads);
        else
            parts = 0;
        if (parts == 0)
            return 0;
    }
    return out->path && out->token_count > 0 && out->token_count < 1000000;
}

/* The tokens of the prompt must be rows of the embedding. */
static tn_status check_prompt(const model *m, const options *o, tn_error *err)
{
    for (int64_t i = 0; i < o->prompt_count; i++) {
        if (o->prompt[i] >= m->vocabulary)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, "check_prompt",
                           "expected tokens below %lld, got %lld", (long long)m->vocabulary,
                           (long long)o->prompt[i]);
    }
    return TN_OK;
}

int main(int count, char **words)
{
    static options o;
    st_file file = {0};
    model m = {0};
    tn_error err;
    tn_status status;
    if (!read_options(count, words, &o)) {
        fprintf(stderr,
                "usage: %s FILE [--prompt 1,2,3] [--tokens N] [--device NAME] [--heads N]\n",
                words[0]);
        return 2;
    }
    TRY(tn_device_get(o.device, &m.device, &err));
    TRY(st_open(o.path, &file, &err));
    m.positions = o.prompt_count + o.token_count;
    TRY(load_model(&m, &file, o.heads, &err));
    st_close(&file); /* the device has the weights now */
    TRY(check_prompt(&m, &o, &err));
    printf("%" PRId64 " layers, %" PRId64 " heads of %" PRId64 ", %" PRId64
           " key heads, vocabulary %" PRId64 ", %s on %s\n",
           m.layer_count, m.heads, m.head_size, m.key_heads, m.vocabulary, tn_dtype_name(m.dtype),
           tn_device_id(m.device));
    TRY(generate(&m, o.prompt, o.prompt_count, o.token_count, &err));
done:
    if (status)
        fprintf(stderr, "%s: %s: %s\n", words[0], tn_status_name(status), err.message);
    st_close(&file);
    release_model(&m);
    return status != TN_OK;
}
