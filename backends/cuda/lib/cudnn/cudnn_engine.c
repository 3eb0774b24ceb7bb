#include "cudnn_engine.h"

enum { CONFIGS_MOST = 16, NOTES_MOST = 32 };

/* The state of choosing among the configurations that the heuristics return. */
typedef struct choice {
    dnn_graph *graph;
    const dnn_target *target;
    dnn_desc config[CONFIGS_MOST];
    int64_t count;
    tn_error said; /* error of the last rejected one */
} choice;

/* Records why there is no plan, while the library's message is still available. */
static tn_status record_plan_failure(choice *c)
{
    dnn_graph *graph = c->graph;
    return dnn_check_plan(graph->dnn, graph->code, graph->call, &c->said);
}

/* Starts a new step: forgets the previous failure. */
static void reset_failure(choice *c)
{
    c->graph->code = DNN_SUCCESS;
    c->graph->call = "";
}

/* An empty result is not a failure, but the library may have a message about the engines it considered
 * first. */
static void record_none(choice *c)
{
    char words[256];
    if (c->said.status)
        return;
    dnn_said(c->graph->dnn, words, sizeof words);
    (void)tn_fail(&c->said, TN_UNSUPPORTED, 0, "cudnn",
                  "cuDNN has no engine for this attention%s%s", words[0] ? ": " : "", words);
}

static void query_heuristics(choice *c, dnn_desc graph, int32_t mode)
{
    dnn_graph *g = c->graph;
    reset_failure(c);
    c->count = 0;
    dnn_desc asked = dnn_make(g, DNN_HEURISTIC);
    dnn_put_desc(g, asked, DNN_HEURISTIC_GRAPH, graph);
    dnn_put_word(g, asked, DNN_HEURISTIC_MODE, DNN_TYPE_HEURISTIC, mode);
    dnn_put_desc(g, asked, DNN_HEURISTIC_DEVICE, c->target->device);
    dnn_finish(g, asked, "cuDNN's heuristics");
    for (int i = 0; i < CONFIGS_MOST; i++)
        c->config[i] = dnn_make(g, DNN_CONFIG);
    if (!g->code)
        g->code = g->dnn->get(asked, DNN_HEURISTIC_RESULTS, DNN_TYPE_DESC, CONFIGS_MOST, &c->count,
                              c->config);
    if (g->code)
        c->count = 0;
    if (!g->call[0])
        g->call = "cudnnBackendGetAttribute";
    (void)record_plan_failure(c);
    if (!g->code && c->count == 0)
        record_none(c);
}

/* Returns whether an engine declares that its results differ from run to run. */
static bool differs(choice *c, dnn_desc config)
{
    dnn_graph *g = c->graph;
    int32_t notes[NOTES_MOST];
    int64_t count = 0, one = 0;
    dnn_desc engine = dnn_make(g, DNN_ENGINE);
    if (!g->code)
        g->code = g->dnn->get(config, DNN_CONFIG_ENGINE, DNN_TYPE_DESC, 1, &one, &engine);
    if (!g->code)
        g->code = g->dnn->get(engine, DNN_ENGINE_NOTES, DNN_TYPE_NOTE, NOTES_MOST, &count, notes);
    bool found = false;
    for (int64_t i = 0; i < count && i < NOTES_MOST; i++)
        found = found || notes[i] == DNN_NOTE_DIFFERS;
    return found;
}

/* Returns the plan of one configuration; NULL if it is not usable, with the reason in `said`. */
static dnn_desc try_config(choice *c, dnn_desc config, uint64_t *out_workspace)
{
    dnn_graph *g = c->graph;
    int64_t bytes = 0, one = 0;
    dnn_desc plan = NULL;
    reset_failure(c);
    const bool is_unfit = c->target->repeats && differs(c, config);
    if (g->code) {
        (void)record_plan_failure(c);
        return NULL;
    }
    if (is_unfit) {
        (void)tn_fail(&c->said, TN_UNSUPPORTED, 0, "cudnn",
                      "cuDNN's engine for it does not give the same bits in every run");
        return NULL;
    }
    g->code = g->dnn->desc_create(DNN_PLAN, &plan);
    if (c->target->handle)
        dnn_put(g, plan, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, &c->target->handle);
    dnn_put_desc(g, plan, DNN_PLAN_CONFIG, config);
    dnn_put_desc(g, plan, DNN_PLAN_DEVICE, c->target->device);
    dnn_finish(g, plan, "a plan of cuDNN");
    if (!g->code)
        g->code = g->dnn->get(plan, DNN_PLAN_WORKSPACE, DNN_TYPE_I64, 1, &one, &bytes);
    if (!record_plan_failure(c) && bytes >= 0 && (uint64_t)bytes <= c->target->most) {
        *out_workspace = (uint64_t)bytes;
        return plan;
    }
    if (!g->code)
        (void)tn_fail(&c->said, TN_UNSUPPORTED, 0, "cudnn",
                      "cuDNN's plan for it needs %lld bytes of workspace, of %llu that it is given",
                      (long long)bytes, (unsigned long long)c->target->most);
    if (plan)
        (void)g->dnn->desc_destroy(plan);
    return NULL;
}

tn_status dnn_plan_make(dnn_graph *graph, const dnn_target *target, dnn_desc *out,
                        uint64_t *out_workspace, tn_error *err)
{
    static const int32_t modes[] = {DNN_HEURISTIC_A, DNN_HEURISTIC_FALLBACK};
    choice c = {.graph = graph, .target = target};
    uint64_t needs = 0;
    dnn_desc plan = NULL, made = dnn_graph_make(graph, target->handle);
    tn_status status = record_plan_failure(&c);
    for (int m = 0; m < 2 && !status && !plan; m++) {
        query_heuristics(&c, made, modes[m]);
        for (int64_t i = 0; i < c.count && i < CONFIGS_MOST && !plan; i++)
            plan = try_config(&c, c.config[i], &needs);
    }
    reset_failure(&c);
    if (plan) {
        *out = plan;
        if (out_workspace)
            *out_workspace = needs;
        return TN_OK;
    }
    return tn_fail(err, c.said.status, c.said.native_code, "cudnn", "%s", c.said.message);
}
