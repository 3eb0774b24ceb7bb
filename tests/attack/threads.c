/* Several threads use everything at once: operators on streams of their own, scopes, explanations, memory, events,
 * global settings and the plan cache. Every result is known beforehand. */
#include "attack.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 1500, SIZE = 40, ELEMENTS = SIZE * SIZE, DEPTH = 5 };

/* One thread. */
typedef struct worker {
    attack own; /* its dice and counts */
    tn_device *device;
    tn_stream *stream;
    pthread_t thread;
    float host[ELEMENTS];
} worker;

static void must(worker *w, const char *what, tn_status status, const tn_error *err)
{
    if (status)
        attack_found(&w->own, "%s: %s: %s", what, tn_status_name(status), err->message);
}

static void copy_numbers(worker *w, void *device_memory, bool to_device, size_t count)
{
    tn_error err;
    tn_memory_copy_args args = {
        .struct_size = sizeof args, .bytes = count * sizeof(float), .stream = w->stream};
    if (to_device)
        args.to_device = w->device, args.to = device_memory, args.from = w->host;
    else
        args.from_device = w->device, args.from = device_memory, args.to = w->host;
    must(w, "tn_memory_copy", tn_memory_copy(&args, &err), &err);
    must(w, "tn_stream_synchronize", tn_stream_synchronize(w->stream, &err), &err);
}

/* A square tensor of one number on the device. */
static tn_tensor make_square(worker *w, int64_t *shape, float number)
{
    tn_tensor made = {0};
    tn_error err;
    size_t count = (size_t)(shape[0] * shape[1]);
    must(w, "tn_tensor_create", tn_tensor_create(w->device, TN_F32, shape, 2, &made, &err), &err);
    for (size_t i = 0; i < count; i++)
        w->host[i] = number;
    copy_numbers(w, made.data, true, count);
    return made;
}

static void expect_number(worker *w, const char *what, const tn_tensor *t, double expected)
{
    size_t count = (size_t)(t->shape[0] * t->shape[1]);
    copy_numbers(w, t->data, false, count);
    for (size_t i = 0; i < count; i++)
        if (!((double)w->host[i] > expected - 1e-3 && (double)w->host[i] < expected + 1e-3))
            attack_found(&w->own, "%s: element %zu is %g, expected %g", what, i, (double)w->host[i],
                         expected);
}

static void multiply_ones(worker *w)
{
    dice *d = &w->own.dice;
    int64_t m = dice_range(d, 1, SIZE), n = dice_range(d, 1, SIZE), k = dice_range(d, 1, SIZE);
    int64_t sa[] = {m, k}, sb[] = {k, n}, sc[] = {m, n};
    tn_tensor a = make_square(w, sa, 1), b = make_square(w, sb, 2), c = make_square(w, sc, -1);
    tn_context *context = dice_one_in(d, 2) ? attack_context(&w->own, d) : NULL;
    tn_packed *packed = NULL;
    tn_error err;
    tn_matmul_args args = {
        .struct_size = sizeof args, .a = &a, .b = &b, .out = &c, .stream = w->stream};
    tn_status status;
    if (dice_one_in(d, 4)) {
        status = tn_matmul_pack(context, &args, &packed, &err);
        args.b = NULL;
        status = status ? status : tn_matmul_packed(packed, &args, &err);
    } else {
        status = tn_matmul(context, &args, &err);
    }
    attack_check_status(&w->own, "matmul", status, &err);
    if (!status)
        expect_number(w, "matmul", &c, 2.0 * (double)k);
    w->own.accepted += !status;
    tn_packed_release(packed);
    tn_context_release(context);
    tn_tensor_release(&a), tn_tensor_release(&b), tn_tensor_release(&c);
}

static void attend_to_equal_values(worker *w)
{
    dice *d = &w->own.dice;
    int64_t q_shape[] = {dice_range(d, 1, SIZE), dice_range(d, 1, SIZE)};
    int64_t k_shape[] = {dice_range(d, 1, SIZE), q_shape[1]};
    tn_tensor q = make_square(w, q_shape, 0.5f), k = make_square(w, k_shape, -1),
              v = make_square(w, k_shape, 3), out = make_square(w, q_shape, -1);
    int64_t q4[] = {1, 1, q_shape[0], q_shape[1]}, k4[] = {1, 1, k_shape[0], k_shape[1]};
    tn_tensor views[4] = {q, k, v, out};
    tn_error err;
    for (int i = 0; i < 4; i++) {
        views[i].ndim = 4, views[i].strides = NULL;
        views[i].shape = i == 0 || i == 3 ? q4 : k4;
    }
    tn_attention_args args = {.struct_size = sizeof args,
                              .q = &views[0],
                              .k = &views[1],
                              .v = &views[2],
                              .out = &views[3],
                              .stream = w->stream};
    must(w, "attention", tn_attention(NULL, &args, &err), &err);
    expect_number(w, "attention", &out, 3);
    w->own.accepted++;
    tn_tensor_release(&q), tn_tensor_release(&k), tn_tensor_release(&v), tn_tensor_release(&out);
}

/* A scope shows its own values and gives back those of the one around it. */
static void nest_scopes(worker *w, int depth)
{
    tn_scope scope = {0};
    tn_error err;
    int64_t outer = tn_get_determinism(NULL), own = dice_range(&w->own.dice, 0, 3);
    const tn_change change = tn_with_determinism((int32_t)own);
    must(w, "tn_scope_enter", tn_scope_enter(&scope, &change, 1, &err), &err);
    if (depth < DEPTH && dice_one_in(&w->own.dice, 2))
        nest_scopes(w, depth + 1);
    if (tn_get_determinism(NULL) != own)
        attack_found(&w->own, "a scope set determinism to %d, and it is %d there", (int)own,
                     (int)tn_get_determinism(NULL));
    tn_scope_leave(&scope);
    if (tn_get_determinism(NULL) != outer)
        attack_found(&w->own, "determinism is %d behind a scope, and was %d before it",
                     (int)tn_get_determinism(NULL), (int)outer);
}

static void explain_any(worker *w)
{
    char problem[ATTACK_PROBLEM];
    tn_decision *decision = NULL;
    tn_error err = {0};
    attack_problem(&w->own.dice, w->own.device, problem);
    attack_check_status(&w->own, problem, tn_explain(NULL, problem, &decision, &err), &err);
    tn_decision_release(decision);
}

static void use_events(worker *w)
{
    tn_event *event = NULL;
    tn_stream *other = NULL;
    int32_t done = 0;
    tn_error err;
    must(w, "tn_event_create", tn_event_create(w->device, NULL, &event, &err), &err);
    must(w, "tn_stream_create", tn_stream_create(w->device, NULL, &other, &err), &err);
    must(w, "tn_event_record", tn_event_record(event, w->stream, &err), &err);
    must(w, "tn_stream_wait_event", tn_stream_wait_event(other, event, &err), &err);
    must(w, "tn_stream_wait_stream", tn_stream_wait_stream(w->stream, other, &err), &err);
    must(w, "tn_event_synchronize", tn_event_synchronize(event, &err), &err);
    must(w, "tn_event_query", tn_event_query(event, &done, &err), &err);
    if (!done)
        attack_found(&w->own, "an event is not done behind tn_event_synchronize");
    tn_stream_release(other);
    tn_event_release(event);
}

static void use_memory(worker *w)
{
    void *memory = NULL;
    tn_error err;
    uint64_t bytes = (uint64_t)dice_range(&w->own.dice, 1, ELEMENTS / 2) * sizeof(float);
    must(w, "tn_memory_alloc_on", tn_memory_alloc_on(w->stream, bytes, "attack", &memory, &err),
         &err);
    float number = (float)dice_range(&w->own.dice, 0, 1000);
    tn_memory_fill_args fill = {.struct_size = sizeof fill,
                                .device = w->device,
                                .to = memory,
                                .bytes = bytes,
                                .pattern_bytes = 4,
                                .stream = w->stream};
    memcpy(&fill.pattern, &number, sizeof number); /* its lowest bytes */
    must(w, "tn_memory_fill", tn_memory_fill(&fill, &err), &err);
    int64_t shape[] = {1, (int64_t)(bytes / sizeof(float))};
    tn_tensor view = {.data = memory, .ndim = 2, .dtype = TN_F32, .shape = shape};
    expect_number(w, "tn_memory_fill", &view, (double)number);
    must(w, "tn_memory_free_on", tn_memory_free_on(w->stream, memory, &err), &err);
}

/* What all threads see changes under them. */
static void change_process(worker *w)
{
    static const char *const texts[] = {"plan.cache_size=8", "plan.cache_size=1000",
                                        "debug.sync=true", "debug.sync=false"};
    tn_error err;
    switch (dice_range(&w->own.dice, 0, 2)) {
    case 0: tn_plan_cache_clear(NULL, 0); break;
    case 1: tn_memory_trim(w->device); break;
    default:
        must(w, "tn_settings_set", tn_settings_set(DICE_PICK(&w->own.dice, texts), &err), &err);
    }
}

static void *work(void *user)
{
    worker *w = user;
    tn_error err;
    must(w, "tn_stream_create", tn_stream_create(w->device, NULL, &w->stream, &err), &err);
    for (int i = 0; i < ROUNDS; i++) {
        w->own.tried++;
        switch (dice_range(&w->own.dice, 0, 8)) {
        case 0:
        case 1:
        case 2: multiply_ones(w); break;
        case 3: attend_to_equal_values(w); break;
        case 4: nest_scopes(w, 0); break;
        case 5: explain_any(w); break;
        case 6: use_events(w); break;
        case 7: use_memory(w); break;
        default: change_process(w); break;
        }
    }
    tn_stream_release(w->stream);
    return NULL;
}

void attack_threads(attack *self)
{
    static worker workers[THREADS];
    tn_error err;
    for (int i = 0; i < THREADS; i++) {
        worker *w = &workers[i];
        w->own = *self;
        w->own.dice.state = dice_next(&self->dice);
        must(w, "tn_device_get", tn_device_get(self->device, &w->device, &err), &err);
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            attack_found(self, "pthread_create fails");
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        self->tried += workers[i].own.tried;
        self->accepted += workers[i].own.accepted;
    }
}
