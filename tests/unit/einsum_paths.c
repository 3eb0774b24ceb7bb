/* einsum: orders of contraction, their costs and their explanations. */
#include "einsum_cases.h"

#include <math.h>

/* A path of an equation whose labels' sizes are those of `sizes`, from 'a'. */
static uint64_t search_seed, search_ns;

static tn_einsum_path *explain(const char *equation, const int64_t *sizes, const char *strategy,
                               tn_einsum_path_info *out_info)
{
    enum { MOST = 400 };
    static tn_tensor tensors[MOST];
    static const tn_tensor *operands[MOST];
    static int64_t shapes[MOST][8];
    tn_einsum_path *path = NULL;
    tn_error err = {0};
    int32_t count = 1;
    tensors[0] = (tn_tensor){.device_type = TN_DLPACK_CPU, .dtype = TN_F32, .shape = shapes[0]};
    for (const char *at = equation; *at && *at != '-'; at++) {
        tn_tensor *tensor = &tensors[count - (*at != ',')];
        if (*at != ',') {
            shapes[count - 1][tensor->ndim++] = sizes[*at - 'a'];
            continue;
        }
        *tensor =
            (tn_tensor){.device_type = TN_DLPACK_CPU, .dtype = TN_F32, .shape = shapes[count]};
        count++;
    }
    for (int32_t i = 0; i < count; i++)
        operands[i] = &tensors[i];
    tn_einsum_args args = args_of(equation, operands, count);
    args.out = NULL;
    args.strategy = strategy;
    args.seed = search_seed;
    args.search_ns = search_ns;
    if (tn_einsum_explain(NULL, &args, &path, &err))
        fail_msg("%s: %s", equation, err.message);
    out_info->struct_size = sizeof *out_info;
    assert_int_equal(tn_einsum_path_info_get(path, out_info, NULL), TN_OK);
    int32_t pairs = 0;
    for (size_t i = 0; i < out_info->steps; i++)
        pairs += tn_einsum_path_step(path, i)->second >= 0;
    assert_int_equal(pairs, count - 1);
    return path;
}

static double cost_of(const char *equation, const int64_t *sizes, const char *strategy)
{
    tn_einsum_path_info info = {0};
    tn_einsum_path *path = explain(equation, sizes, strategy, &info);
    double steps = 0;
    for (size_t i = 0; i < info.steps; i++)
        steps += tn_einsum_path_step(path, i)->cost;
    assert_true(steps == info.cost);
    const double cost = info.cost;
    tn_einsum_path_release(path);
    return cost;
}

/* Sizes of a to m; with them, the least costs by exhaustive search below. */
static const int64_t usual[] = {2, 3, 4, 5, 4, 3, 2, 6, 5, 4, 3, 2, 5, 7, 4, 3, 2, 3, 4, 9, 10};

static double searched_cost(const char *equation, const char *strategy, uint64_t seed, uint64_t ns)
{
    search_seed = seed;
    search_ns = ns;
    const double cost = cost_of(equation, usual, strategy);
    search_seed = search_ns = 0;
    return cost;
}

static void optimal_is_optimal(void **state)
{
    static const struct {
        const char *equation;
        double cost;
    } cases[] = {
        {"acdf,jbje,gihb,hfac,gfac,gifabc,hfac", 11304},
        {"bde,cdh,agdb,hica,ibd,hgicd,hiac", 7080},
        {"chd,bde,agbc,hiad,hgc,hgi,hiad", 3300},
        {"chd,bde,agbc,hiad,bdi,cgh,agdb", 5430},
        {"ed,fcd,ff,bcf->be", 516},
        {"cd,bdhe,aidb,hgca,gc,hgibcd,hgac", 17536},
        {"abhe,hidj,jgba,hiab,gab", 9456},
        {"bdhe,acad,hiab,agac,hibd", 3560},
        {"ea,fb,gc,hd,abcd->efgh", 2136},
        {"dcc,fce,ea,dbf->ab", 612},
        {"fff,fae,bef,def->abd", 816},
        {"abc,bdef,fghj,cem,mhk,ljk->adgl", 9648},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double cost = cost_of(cases[i].equation, usual, "optimal");
        if (cost != cases[i].cost)
            fail_msg("%s: expected cost %g, got %g", cases[i].equation, cases[i].cost, cost);
        assert_true(cost_of(cases[i].equation, usual, "auto") == cost);
        assert_true(cost_of(cases[i].equation, usual, "dp") >= cost);
        const double greedy = cost_of(cases[i].equation, usual, "greedy");
        const double deep = cost_of(cases[i].equation, usual, "branch-all");
        assert_true(deep >= cost && deep <= cost_of(cases[i].equation, usual, "branch-2"));
        assert_true(cost_of(cases[i].equation, usual, "branch-2") <= greedy);
        assert_true(cost_of(cases[i].equation, usual, "branch-1") <= greedy);
        assert_true(cost_of(cases[i].equation, usual, "random-greedy") >= cost);
        assert_true(cost_of(cases[i].equation, usual, "random-greedy") <=
                    cost_of(cases[i].equation, usual, "greedy"));
    }
}

static double product(uint32_t set, const int64_t *sizes)
{
    double values = 1;
    for (int32_t i = 0; i < LABELS; i++)
        values *= set >> i & 1 ? (double)sizes[i] : 1;
    return values;
}

/* All orders of a few operands, by brute force; an operand may be summed over labels of its own before
 * a pair, at twice its elements. */
static double least_of_all(uint32_t *sets, int32_t count, uint32_t out, const int64_t *sizes)
{
    double least = INFINITY;
    if (count == 1)
        return 0;
    for (int32_t a = 0; a < count; a++) {
        for (int32_t b = 0; b <= a; b++) {
            uint32_t rest[8], others = out, either = sets[a] | sets[b];
            int32_t left = 0;
            for (int32_t i = 0; i < count; i++) {
                if (i != a && i != b) {
                    rest[left++] = sets[i];
                    others |= sets[i];
                }
            }
            const double cost = product(either, sizes) * (either & ~others ? 2 : 1);
            rest[left++] = either & others;
            if (a != b || either & ~others)
                least = fmin(least, cost + least_of_all(rest, left, out, sizes));
        }
    }
    return least;
}

/* The cost of an equation whose operands have 26 more dimensions of size 1 each, with labels of their own:
 * more than 64 labels are searched in another way. */
static double wide_cost(const char *equation, const int64_t *sizes, const char *strategy)
{
    enum { MORE = 26 };
    tn_tensor tensors[6];
    const tn_tensor *operands[6];
    int64_t shapes[6][TN_TENSOR_NDIM_MAX];
    int32_t path[24], steps;
    char wide[6 * (8 + 2 * MORE)], *to = wide;
    double cost = 0;
    tn_error err = {0};
    int32_t count = 0;
    const char *at = equation;
    do {
        int32_t ndim = 0;
        for (; *at >= 'a'; at++) {
            shapes[count][ndim++] = sizes[*at - 'a'];
            *to++ = *at;
        }
        for (int32_t i = 0; i < MORE; i++) {
            const int32_t code = 0xC0 + count * MORE + i; /* two bytes in UTF-8 */
            *to++ = (char)(0xC0 | code >> 6);
            *to++ = (char)(0x80 | (code & 0x3F));
            shapes[count][ndim++] = 1;
        }
        tensors[count] = (tn_tensor){
            .device_type = TN_DLPACK_CPU, .ndim = ndim, .dtype = TN_F32, .shape = shapes[count]};
        operands[count] = &tensors[count];
        count++;
        *to++ = *at;
    } while (*at++ == ',');
    strcpy(to, at);
    tn_einsum_args args = args_of(wide, operands, count);
    args.out = NULL;
    args.strategy = strategy;
    if (tn_einsum_search(NULL, &args, path, &steps, &cost, &err))
        fail_msg("%s: %s", wide, err.message);
    return cost;
}

static void optimal_agrees_with_all_orders(void **state)
{
    (void)state;
    for (int32_t round = 0; round < 60; round++) {
        char equation[64] = "";
        uint32_t sets[6], all = 0;
        int64_t sizes[LABELS];
        const int32_t count = 3 + (int32_t)roll(3);
        for (int32_t i = 0; i < LABELS; i++)
            sizes[i] = 2 + (int64_t)roll(6);
        size_t used = 0;
        for (int32_t i = 0; i < count; i++) {
            sets[i] = 0;
            equation[used] = ',';
            used += i > 0;
            for (int32_t k = (int32_t)roll(4); k >= 0; k--) {
                const uint32_t label = roll(LABELS);
                equation[used++] = (char)('a' + label);
                sets[i] |= 1U << label;
            }
            all |= sets[i];
        }
        memcpy(equation + used, "->", 3);
        used += 2;
        const uint32_t out = all & roll(1U << LABELS) & roll(1U << LABELS);
        for (int32_t i = 0; i < LABELS; i++) {
            equation[used] = (char)('a' + i);
            used += out >> i & 1;
        }
        equation[used] = '\0';
        const double least = least_of_all(sets, count, out, sizes);
        const double found = cost_of(equation, sizes, "optimal");
        if (found != least)
            fail_msg("%s: expected cost %g, got %g", equation, least, found);
        if (wide_cost(equation, sizes, "optimal") != least)
            fail_msg("%s with 64 more labels: expected cost %g, got %g", equation, least,
                     wide_cost(equation, sizes, "optimal"));
    }
}

/* Paths of many operands with few labels: no search of opt_einsum 3.4.0 with the same strategy found a cheaper
 * one. */
static void dense_networks_have_cheap_paths(void **state)
{
    static const struct {
        const char *strategy, *equation;
        int64_t sizes[9];
        double most;
    } cases[] = {
        {"auto", "b,cb,b,acd,c,cdb,b,bdc->", {3, 2, 2, 6}, 160},
        {"auto", "eab,eac,edc,bad,db,eb,dae,a->a", {6, 2, 2, 4, 6}, 1704},
        {"auto", "dc,cbd,acb,c,d,dc,ca,ca->a", {4, 5, 4, 5}, 544},
        {"auto", "f,f,fec,c,df,bfd,fca,fca->a", {4, 6, 6, 2, 3, 4}, 568},
        {"dp", "dgb,dcb,db,d,gb,e,fb,bc->bc", {0, 4, 6, 2, 5, 2, 4}, 254},
        {"branch-1", "dac,bc,bcd,ac,cd,dc,ab,bd->a", {5, 5, 2, 4}, 618},
        {"branch-1", "c,dac,db,cd,ab,adc,bdc,dbc->a", {2, 3, 5, 3}, 372},
        {"branch-2", "i,fch,fg,c,iae,hd,c->", {2, 0, 5, 6, 3, 5, 6, 4, 2}, 377},
        {"branch-2", "bcd,ac,b,ad,dba,bad,d,ad->", {4, 4, 6, 6}, 1592},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double cost = cost_of(cases[i].equation, cases[i].sizes, cases[i].strategy);
        if (cost > cases[i].most)
            fail_msg("%s with %s: expected a cost of at most %g, got %g", cases[i].equation,
                     cases[i].strategy, cases[i].most, cost);
    }
}

static void greedy_takes_the_expected_pairs(void **state)
{
    tn_einsum_path_info info = {0};
    (void)state;
    /* 10 x 20 x 30 x 5: the last two matrices make the smallest result. */
    tn_einsum_path *path =
        explain("ab,bc,cd->ad", (const int64_t[]){10, 20, 30, 5}, "greedy", &info);
    const tn_einsum_step *step = tn_einsum_path_step(path, 0);
    assert_string_equal(info.strategy, "greedy");
    assert_string_equal(info.equation, "ab,bc,cd->ad");
    assert_true(step->first == 1 && step->second == 2);
    assert_string_equal(step->equation, "bc,cd->bd");
    assert_string_equal(step->remaining, "ab,bd->ad");
    assert_true(step->cost == 6000 && step->elements == 100);
    assert_true(step->calls == 1);
    assert_string_equal(step->problems[0], "matmul:f32:m=20,n=5,k=30@cpu:0");
    assert_true(step->kernels[0][0] != '\0');
    step = tn_einsum_path_step(path, 1);
    assert_string_equal(step->equation, "ab,bd->ad");
    assert_string_equal(step->remaining, "ad->ad");
    assert_true(info.cost == 8000 && info.cost_at_once == 90000 && info.largest == 100);
    assert_true(info.workspace_bytes == 448);
    assert_null(tn_einsum_path_step(path, 2));
    tn_einsum_path_release(path);
    tn_einsum_path_release(NULL);
    assert_int_equal(tn_einsum_path_info_get(NULL, &info, NULL), TN_INVALID_ARGUMENT);
}

/* A search that is refused for `count` operands. */
static void expect_too_many(const char *strategy, int32_t count, const char *words)
{
    static const tn_tensor *operands[TN_EINSUM_OPERANDS_MAX];
    static char many[2 * TN_EINSUM_OPERANDS_MAX + 2];
    tn_error err = {0};
    tn_einsum_path *path = NULL;
    many[0] = '\0';
    for (int32_t i = 0; i < count; i++) {
        operands[i] = dense(&pieces[0], SIZES(2));
        strcat(many, i ? ",a" : "a");
    }
    strcat(many, "->");
    tn_einsum_args args = args_of(many, operands, count);
    args.out = NULL;
    args.strategy = strategy;
    assert_int_equal(tn_einsum_explain(NULL, &args, &path, &err), TN_UNSUPPORTED);
    if (!strstr(err.message, words))
        fail_msg("expected \"%s\", got %s", words, err.message);
}

/* A chain of more operands than labels would do for is in tests of Python; here one of 300. */
static void long_chains_have_paths(void **state)
{
    static const char *const searches[] = {"left",    "greedy",        "auto",
                                           "auto-hq", "random-greedy", "random-greedy-128"};
    static char equation[300 * 3 + 8];
    char *at = equation;
    (void)state;
    for (int32_t i = 0; i < 300; i++) {
        at[0] = ',';
        at += i > 0;
        *at++ = (char)('a' + i % 20);
        *at++ = (char)('a' + (i + 1) % 20);
    }
    memcpy(at, "->", 3);
    for (size_t i = 0; i < sizeof searches / sizeof searches[0]; i++)
        assert_true(cost_of(equation, usual, searches[i]) > 0);
    /* Searches that would take too long are refused. */
    expect_too_many("optimal", 65, "strategy optimal: 65 operands have too many orders to search");
    expect_too_many("dp", 65, "strategy dp: 65 operands have too many orders to search");
    expect_too_many("branch-1", 257, "strategy branch-1: expected at most 256 operands, got 257");
}

/* Operands with equal indices, which are merged first, and a chain of which each pair saves least. */
static void many_operands_have_paths(void **state)
{
    enum { MOST = TN_EINSUM_OPERANDS_MAX };
    static const tn_tensor *operands[MOST];
    static char equation[2 * MOST + 2];
    tn_einsum_path *path = NULL;
    tn_einsum_path_info info = {.struct_size = sizeof info};
    tn_error err = {0};
    (void)state;
    for (size_t i = 0; i < MOST; i++) {
        memcpy(equation + 2 * i, "a,", 2);
        operands[i] = dense(&pieces[0], SIZES(2));
    }
    memcpy(equation + 2 * (size_t)MOST - 1, "->", 3);
    tn_einsum_args args = args_of(equation, operands, MOST);
    args.strategy = "greedy";
    args.out = NULL;
    if (tn_einsum_explain(NULL, &args, &path, &err) || tn_einsum_path_info_get(path, &info, &err))
        fail_msg("%s", err.message);
    assert_true(info.cost == 2 * (MOST - 2) + 4);
    tn_einsum_path_release(path);
}

/* A step of one operand in a given path only moves it. */
static void paths_may_sum_single_operands(void **state)
{
    const tn_tensor *const operands[] = {dense(&pieces[0], SIZES(2, 3)),
                                         dense(&pieces[1], SIZES(3, 4)),
                                         dense(&pieces[2], SIZES(4, 5))};
    const int32_t path[] = {2, -1, 0, -1, 0, 1, 0, 1}, wrong[] = {3, -1, 0, 1, 0, 1};
    tn_einsum_path *found = NULL;
    tn_error err = {0};
    (void)state;
    tn_einsum_args args = args_of("ab,bc,cd->a", operands, 3);
    args.out = NULL;
    args.path = path;
    args.path_count = 4;
    if (tn_einsum_explain(NULL, &args, &found, &err))
        fail_msg("%s", err.message);
    /* The operands are then 1, 2, 0: so bc and cd are the pair, and cd is summed before. */
    const tn_einsum_step *step = tn_einsum_path_step(found, 0);
    assert_string_equal(step->equation, "cd->c");
    assert_string_equal(step->remaining, "ab,bc,c->a");
    assert_true(step->first == 2 && step->second == -1 && step->cost == 40 && step->elements == 4);
    step = tn_einsum_path_step(found, 1);
    assert_string_equal(step->equation, "bc,c->b");
    assert_true(step->first == 1 && step->second == 2 && step->cost == 24);
    step = tn_einsum_path_step(found, 2);
    assert_string_equal(step->equation, "ab,b->a");
    assert_null(tn_einsum_path_step(found, 3));
    tn_einsum_path_release(found);
    args.path = wrong;
    args.path_count = 3;
    assert_int_equal(tn_einsum_explain(NULL, &args, &found, &err), TN_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "path[0]: expected two different positions below 3"));
}

/* A label of one operand is summed with the pair if the pair has no other labels. */
static void own_labels_are_summed_where_that_is_cheapest(void **state)
{
    static const int64_t sizes[] = {2, 3, 5, 7};
    static const struct {
        const char *equation;
        double cost;
        size_t steps;
    } cases[] = {
        {"ab,a->", 12, 1},        {"ab,a->a", 12, 1},        {"ab,c->", 12 + 10, 2},
        {"ab,ac->", 12 + 20, 2},  {"ab,ac->a", 12 + 20, 2},  {"ab,cd->", 12 + 70, 2},
        {"abc,bd->", 60 + 42, 2}, {"abc,bd->d", 60 + 42, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_einsum_path_info info = {0};
        tn_einsum_path *path = explain(cases[i].equation, sizes, NULL, &info);
        if (info.cost != cases[i].cost || info.steps != cases[i].steps)
            fail_msg("%s: expected cost %g and %zu steps, got %g and %zu", cases[i].equation,
                     cases[i].cost, cases[i].steps, info.cost, info.steps);
        tn_einsum_path_release(path);
    }
}

/* Random searches go on for the time that they are given, and are repeatable without one. */
static void random_searches_follow_seed_and_time(void **state)
{
    /* Each of 40 operands has labels of several others, which is too much for dp. */
    static char equation[40 * 5 + 3];
    double least = INFINITY, most = 0;
    (void)state;
    for (size_t i = 0; i < 40; i++) {
        for (size_t k = 0; k < 4; k++)
            equation[5 * i + k] = (char)('a' + (i * 7 + k * (3 + i % 4)) % 20);
        memcpy(equation + 5 * i + 4, i < 39 ? "," : "->", i < 39 ? 1 : 3);
    }
    for (uint64_t seed = 0; seed < 20; seed++) {
        const double cost = searched_cost(equation, "random-greedy", seed, 0);
        assert_true(cost == searched_cost(equation, "random-greedy", seed, 0));
        least = fmin(least, cost);
        most = fmax(most, cost);
    }
    assert_true(least < most); /* the seed matters */
    assert_true(searched_cost(equation, "random-greedy-128", 0, 0) <=
                searched_cost(equation, "random-greedy", 0, 0));
    /* A nanosecond is enough for one search only: the greedy one. */
    assert_true(searched_cost(equation, "random-greedy", 0, 1) ==
                cost_of(equation, usual, "greedy"));
}

/* The shape of an equation's result for operands of these shapes, which must suit it. */
static void infer_shape(const char *equation, piece *const *of, int32_t count, piece *out)
{
    const tn_tensor *operands[TERMS];
    tn_error err = {0};
    int64_t shape[TN_TENSOR_NDIM_MAX];
    int32_t ndim;
    for (int32_t i = 0; i < count; i++)
        operands[i] = &of[i]->tensor;
    const tn_einsum_args args = args_of(equation, operands, count);
    if (tn_einsum_shape(&args, shape, &ndim, &err))
        fail_msg("%s: %s", equation, err.message);
    memcpy(out->shape, shape, sizeof shape);
    make(out, TN_F64, ndim)->strides = NULL;
}

/* The equation of each step fits the operands that are left, also where labels have size 1. */
static void check_steps(const problem *p, const tn_einsum_path *path)
{
    static piece made[2 * TERMS], rest;
    piece *left[TERMS];
    int32_t count = p->terms;
    const tn_einsum_step *step;
    for (int32_t i = 0; i < count; i++)
        left[i] = &pieces[i];
    for (size_t i = 0; (step = tn_einsum_path_step(path, i)); i++) {
        int32_t kept = 0;
        double elements = 1;
        piece *const pair[] = {left[step->first], left[step->second < 0 ? 0 : step->second]};
        infer_shape(step->equation, pair, step->second < 0 ? 1 : 2, &made[i]);
        for (int32_t k = 0; k < made[i].tensor.ndim; k++)
            elements *= (double)made[i].shape[k];
        if (elements != step->elements)
            fail_msg("%s: expected %g elements, got %g", step->equation, elements, step->elements);
        for (int32_t k = 0; k < count; k++) {
            if (k != step->first && k != step->second)
                left[kept++] = left[k];
        }
        left[kept++] = &made[i];
        count = kept;
        if (p->terms == 1)
            return;
        infer_shape(step->remaining, left, kept, &rest);
        assert_int_equal(rest.tensor.ndim, result.tensor.ndim);
        assert_memory_equal(rest.shape, result.shape,
                            (size_t)rest.tensor.ndim * sizeof rest.shape[0]);
    }
    assert_int_equal(count, 1);
}

static void steps_are_equations(void **state)
{
    static problem p;
    (void)state;
    for (int32_t round = 0; round < 300; round++) {
        tn_error err = {0};
        tn_einsum_path *path = NULL;
        roll_problem(&p, TN_F64);
        const tn_einsum_args args = args_of(p.equation, p.operands, p.terms);
        assert_int_equal(tn_einsum_explain(NULL, &args, &path, &err), TN_OK);
        check_steps(&p, path);
        tn_einsum_path_release(path);
    }
}

/* tn_einsum_search finds the path that is explained. */
static void check_search(const tn_einsum_args *args, const tn_einsum_path *path)
{
    int32_t found[4 * TERMS], steps = -1;
    double cost = -1;
    tn_error err = {0};
    tn_einsum_path_info info = {.struct_size = sizeof info};
    assert_int_equal(tn_einsum_path_info_get(path, &info, &err), TN_OK);
    if (tn_einsum_search(NULL, args, found, &steps, &cost, &err))
        fail_msg("%s: %s", args->equation, err.message);
    assert_int_equal(steps, info.steps);
    assert_true(cost == info.cost);
    for (int32_t i = 0; i < steps; i++) {
        const tn_einsum_step *step = tn_einsum_path_step(path, (size_t)i);
        assert_int_equal(found[2 * i], step->first);
        assert_int_equal(found[2 * i + 1], step->second);
    }
}

static void searches_find_what_is_explained(void **state)
{
    static problem p;
    int32_t path[4 * TERMS], steps = -1;
    double cost;
    tn_error err = {0};
    (void)state;
    for (int32_t round = 0; round < 300; round++) {
        tn_einsum_path *explained = NULL;
        roll_problem(&p, TN_F64);
        const tn_einsum_args args = args_of(p.equation, p.operands, p.terms);
        assert_int_equal(tn_einsum_explain(NULL, &args, &explained, &err), TN_OK);
        check_search(&args, explained);
        tn_einsum_path_release(explained);
    }
    const tn_einsum_args args = args_of(p.equation, p.operands, p.terms);
    assert_int_equal(tn_einsum_search(NULL, &args, NULL, &steps, &cost, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_einsum_search(NULL, &args, path, NULL, &cost, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_einsum_search(NULL, &args, path, &steps, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_einsum_search(NULL, NULL, path, &steps, &cost, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(steps, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimal_is_optimal),
        cmocka_unit_test(optimal_agrees_with_all_orders),
        cmocka_unit_test(dense_networks_have_cheap_paths),
        cmocka_unit_test(greedy_takes_the_expected_pairs),
        cmocka_unit_test(long_chains_have_paths),
        cmocka_unit_test(steps_are_equations),
        cmocka_unit_test(searches_find_what_is_explained),
        cmocka_unit_test(many_operands_have_paths),
        cmocka_unit_test(paths_may_sum_single_operands),
        cmocka_unit_test(own_labels_are_summed_where_that_is_cheapest),
        cmocka_unit_test(random_searches_follow_seed_and_time),
    };
    return run_suite("unit.einsum_paths", tests);
}
