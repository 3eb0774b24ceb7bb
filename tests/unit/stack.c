/* Stack: include/tenon/tenon.h promises that 64 KiB are enough for every call, first calls included.
 *
 * Each public function is called in a process of its own, on a stack of its own that was painted before; what is no
 * longer painted afterwards was used. The limit leaves room for the frames of the program, and for a processor with
 * larger frames. Libraries and the dynamic loader count where they run on the caller's stack. */
#include "test.h"

#include "tenon/module/module.h"
#include "tenon/tenon.h"

#include <ctype.h>
#include <errno.h>
#include <ftw.h>
#include <glob.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* tenon.h promises that 64 KiB are enough. The rest is for the caller's own frames. Seen: 46 KiB on a Neoverse-N1, 59 KiB
 * on a Xeon with AMX and an NVIDIA driver. */
enum { LIMIT = 60 << 10, STACK = 1 << 20, GUARD = 64 << 10, CHILD_LIMIT_S = 120 };

/* What calls need, as bits of a row's `needs`. */
enum {
    DEVICE = 1 << 0,
    STREAM = 1 << 1 | DEVICE,
    EVENT = 1 << 2 | DEVICE,
    MEMORY = 1 << 3 | DEVICE,
    GUARDS = 1 << 4 | DEVICE,
    RECORDING = 1 << 5 | STREAM,
    GRAPH = 1 << 6 | RECORDING,
    TENSOR = 1 << 7,
    MANAGED = 1 << 8 | TENSOR,
    CONTEXT = 1 << 9,
    SCOPE = 1 << 10,
    LISTS = 1 << 11,
    LIBRARY = 1 << 12,
    FOLDER = 1 << 13,
    LOCK = 1 << 14 | FOLDER,
    STRANGER = 1 << 15 | FOLDER,
    GENERATOR = 1 << 16,
    SNAPSHOT = 1 << 17,
    DECISION = 1 << 18,
    PACKED = 1 << 19,
    TUNED = 1 << 20,
    SAMPLED = 1 << 21,
    OPENBLAS = 1 << 22
};

/* The arguments of calls. */
static tn_error err;
static char text[4096], folder[256], file_in_folder[300];
static tn_status failed;
static int32_t number;
static int64_t wide;
static uint64_t bytes;
static double real;
static size_t count;
static void *memory;
static tn_capability capability;
static tn_setting setting;
static tn_change change;
static tn_change prefer_openblas;
static tn_origin origin = {.struct_size = sizeof origin};
static tn_rule rule = {.struct_size = sizeof rule};
static tn_scope scope;
static tn_context *context;
static tn_decision *decision;
static const tn_platform *platform;
static tn_device *device;
static tn_device_guard device_guard;
static tn_device_memory device_memory = {.struct_size = sizeof device_memory};
static tn_device_properties properties = {.struct_size = sizeof properties};
static tn_stream *stream;
static tn_stream_guard stream_guard;
static tn_event *event;
static tn_event_handle event_handle;
static tn_memory_stats memory_stats = {.struct_size = sizeof memory_stats};
static tn_graph *graph;
static tn_graph_info graph_info = {.struct_size = sizeof graph_info};
static tn_generator *generator;
static tn_generator_state generator_state = {.struct_size = sizeof generator_state};
static tn_module_list *modules;
static tn_registration *registration;
static const tn_library *library;
static tn_library_state library_state = {.struct_size = sizeof library_state};
static tn_cache_list *caches;
static tn_platform_list *platforms;
static tn_machine *machine;
static tn_topology *topology;
static tn_lock_report *lock_report;
static tn_packed *packed;
static tn_dlpack_versioned *managed;
static tn_dlpack_managed *managed_legacy;
static char *snapshot;
static tn_plan_cache_state cache_state = {.struct_size = sizeof cache_state};
static tn_fallbacks fallbacks = {.struct_size = sizeof fallbacks};
static tn_refusal refusal = {.struct_size = sizeof refusal};
static tn_sdpa_params sdpa_params = {.struct_size = sizeof sdpa_params};
static tn_sdpa_report sdpa_report = {.struct_size = sizeof sdpa_report};
static tn_attention_choice backend_choice = {.struct_size = sizeof backend_choice};
static tn_bench_result bench_result = {.struct_size = sizeof bench_result};

enum { SIZE = 64, ELEMENTS = 1 << 18 };
static double numbers[ELEMENTS], more_numbers[ELEMENTS], results[ELEMENTS];
static int64_t shape_2[] = {SIZE, SIZE}, strides_turned[] = {1, SIZE}, shape_1[] = {SIZE},
               shape_half[] = {SIZE, SIZE / 2}, shape_4[] = {2, 4, SIZE, SIZE},
               shape_3[] = {2, 4, SIZE};
#define HOST_TENSOR(memory, its_dtype, sizes, dimensions)                     \
    {                                                                         \
        .data = (memory), .device_type = TN_DLPACK_CPU, .ndim = (dimensions), \
        .dtype = (its_dtype), .shape = (sizes)                                \
    }
static tn_tensor in = HOST_TENSOR(numbers, TN_F32, shape_2, 2);
static tn_tensor other = HOST_TENSOR(more_numbers, TN_F32, shape_2, 2);
static tn_tensor out = HOST_TENSOR(results, TN_F32, shape_2, 2);
static tn_tensor turned = {.data = numbers,
                           .device_type = TN_DLPACK_CPU,
                           .ndim = 2,
                           .dtype = TN_F32,
                           .shape = shape_2,
                           .strides = strides_turned};
static tn_tensor out_f64 = HOST_TENSOR(results, TN_F64, shape_2, 2);
static tn_tensor weight = HOST_TENSOR(more_numbers, TN_F32, shape_1, 1);
static tn_tensor sum = HOST_TENSOR(results, TN_F32, shape_1, 1);
static tn_tensor table = HOST_TENSOR(more_numbers, TN_F32, shape_half, 2);
static tn_tensor spectrum = HOST_TENSOR(results, TN_C64, shape_2, 2);
static tn_tensor q = HOST_TENSOR(numbers, TN_F32, shape_4, 4);
static tn_tensor k = HOST_TENSOR(more_numbers, TN_F32, shape_4, 4);
static tn_tensor v = HOST_TENSOR(more_numbers, TN_F32, shape_4, 4);
static tn_tensor attended = HOST_TENSOR(results, TN_F32, shape_4, 4);
static tn_tensor gradient_q = HOST_TENSOR(results + ELEMENTS / 4, TN_F32, shape_4, 4);
static tn_tensor gradient_k = HOST_TENSOR(results + ELEMENTS / 2, TN_F32, shape_4, 4);
static tn_tensor gradient_v = HOST_TENSOR(results + 3 * (ELEMENTS / 4), TN_F32, shape_4, 4);
static tn_tensor lse = HOST_TENSOR(more_numbers + ELEMENTS / 2, TN_F32, shape_3, 3);
static tn_tensor lse_out = HOST_TENSOR(results + ELEMENTS / 2, TN_F32, shape_3, 3);
static int64_t shape_one[] = {1};
static bool yes[] = {true};
static tn_tensor every_block = HOST_TENSOR(yes, TN_BOOL, shape_one, 1);
static tn_tensor tensor, made;

static const tn_matmul_args matmul_args = {
    .struct_size = sizeof matmul_args, .a = &in, .b = &other, .out = &out};
static const tn_matmul_args matmul_turned_args = {
    .struct_size = sizeof matmul_args, .a = &turned, .b = &other, .out = &out};
static const tn_matmul_args matmul_wrong_args = {
    .struct_size = sizeof matmul_args, .a = &in, .b = &weight, .out = &out};
static const tn_matmul_args matmul_packed_args = {
    .struct_size = sizeof matmul_args, .a = &in, .out = &out};
static const tn_matmul_args *const groups[] = {&matmul_args};
static const int32_t order[] = {1, 0};
static const tn_attention_args attention_args = {
    .struct_size = sizeof attention_args, .q = &q, .k = &k, .v = &v, .out = &attended};
static tn_attention_backend_args backend_args = {
    .struct_size = sizeof backend_args, .head_size = 64, .heads = 8, .dtype = TN_BF16};
static tn_memory_copy_args copy_args = {
    .struct_size = sizeof copy_args, .to = results, .from = numbers, .bytes = 4096};
static tn_memory_fill_args fill_memory_args = {
    .struct_size = sizeof fill_memory_args, .bytes = 4096, .pattern_bytes = 1};
static const tn_bench_args bench_args = {.struct_size = sizeof bench_args,
                                         .problem = "matmul:f32:m=64,n=64,k=64@cpu:0",
                                         .seconds = 0.001};
static const char *const locked[] = {"matmul:f32:m=64,n=64,k=64@cpu:0",
                                     "attention:f32:b=2,h=4,l=64,d=64@cpu:0"};
static const tn_lock_write_args lock_args = {
    .struct_size = sizeof lock_args, .path = file_in_folder, .problems = locked, .count = 2};

static void print_nothing(void *user, const char *written, size_t length)
{
    (void)user, (void)written, (void)length;
}

static void do_nothing(void *user, int64_t index)
{
    (void)user, (void)index;
}

static tn_status enter_nothing(const tn_host *host, const tn_module **out_module, tn_error *why)
{
    (void)host, (void)out_module;
    return tn_fail(why, TN_UNAVAILABLE, 0, "stack", "nothing is offered");
}

#define MUST(call)                          \
    do {                                    \
        tn_status status_ = (call);         \
        failed = failed ? failed : status_; \
    } while (0)

static void try_libraries(void)
{
    MUST(tn_library_count(&count, &err));
    for (size_t i = 0; i < count; i++)
        (void)tn_library_try(tn_library_at(i), NULL);
}

static void check_problem(const char *problem)
{
    static tn_check_result result = {.struct_size = sizeof result};
    static tn_check_args args = {.struct_size = sizeof args, .seed = 1};
    args.problem = problem;
    MUST(tn_check(NULL, &args, &result, &err));
}

static void set_matrix(tn_tensor *to, tn_dtype dtype, int64_t *shape, int64_t rows, int64_t columns)
{
    to->dtype = dtype;
    to->shape = shape;
    shape[0] = rows;
    shape[1] = columns;
}

static void matmul_problem(tn_dtype dtype, int64_t m, int64_t n, int64_t depth)
{
    static int64_t shapes[3][2];
    set_matrix(&in, dtype, shapes[0], m, depth);
    set_matrix(&other, dtype, shapes[1], depth, n);
    set_matrix(&out, dtype, shapes[2], m, n);
    MUST(tn_matmul(NULL, &matmul_args, &err));
}

/* Einsum with `out` and the shapes of `in` and `other`. */
static tn_einsum_path *einsum_path;
static int64_t einsum_shape[TN_TENSOR_NDIM_MAX];
static int32_t einsum_steps[4 * 3];
static double einsum_cost;
static tn_einsum_path_info einsum_info = {.struct_size = sizeof einsum_info};
static const tn_tensor *const einsum_operands[] = {&in, &other, &in};
static tn_einsum_args einsum_args = {.struct_size = sizeof einsum_args,
                                     .equation = "ij,ik,il->jl",
                                     .operands = einsum_operands,
                                     .count = 3,
                                     .out = &out};

/* By the strategy that searches longest. */
static void einsum_problem(tn_dtype dtype, const char *equation, int32_t operands)
{
    static int64_t shapes[3][2];
    set_matrix(&in, dtype, shapes[0], 64, 64);
    set_matrix(&other, dtype, shapes[1], 64, 64);
    set_matrix(&out, dtype, shapes[2], 64, 64);
    einsum_args.equation = equation;
    einsum_args.count = operands;
    einsum_args.strategy = "auto-hq";
    MUST(tn_einsum(NULL, &einsum_args, &err));
}

/* Attention for video of ragged tiles. */
static const int64_t video_canvas[] = {3, 3, 5}, video_tile[] = {2, 2, 2},
                     video_window[] = {1, 3, 1};
static int64_t video_shape[] = {1, 2, 45, 16};
static tn_tensor video_q = HOST_TENSOR(numbers, TN_F32, video_shape, 4);
static tn_tensor video_k = HOST_TENSOR(more_numbers, TN_F32, video_shape, 4);
static tn_tensor video_out = HOST_TENSOR(results, TN_F32, video_shape, 4);
static tn_attention_video_args video_args = {.struct_size = sizeof video_args,
                                             .q = &video_q,
                                             .k = &video_k,
                                             .v = &video_k,
                                             .out = &video_out,
                                             .canvas = video_canvas,
                                             .tile = video_tile,
                                             .windows = video_window,
                                             .window_count = 1};
static tn_attention_video_plan *video_plan;
static tn_attention_video_info video_info = {.struct_size = sizeof video_info};
static tn_attention_video_tables video_tables = {.struct_size = sizeof video_tables, .text = 3};

static void video_problem(int32_t kind, tn_dtype dtype)
{
    video_q.dtype = video_k.dtype = video_out.dtype = dtype;
    video_args.kind = kind;
    if (kind == TN_VIDEO_SPARSE) {
        video_args.windows = NULL;
        video_args.window_count = 0;
        video_args.gate = &video_q;
    }
    MUST(tn_attention_video(NULL, &video_args, &err));
}

/* A product with everything that may come after it, wide enough that it is finished in pieces. */
static void finish_problem(void)
{
    static int64_t shapes[4][2];
    static tn_tensor bias = HOST_TENSOR(more_numbers, TN_F64, shapes[3], 2);
    static tn_matmul_args args = {.struct_size = sizeof args,
                                  .a = &in,
                                  .b = &other,
                                  .out = &out,
                                  .bias = &bias,
                                  .activation = TN_ACT_GELU};
    set_matrix(&in, TN_F64, shapes[0], 32, 64);
    set_matrix(&other, TN_F64, shapes[1], 64, 1024);
    set_matrix(&out, TN_F64, shapes[2], 32, 1024);
    set_matrix(&bias, TN_F64, shapes[3], 1, 1024);
    MUST(tn_matmul(context, &args, &err));
}

static void attention_problem(tn_dtype dtype, int64_t heads, int64_t queries, int64_t keys)
{
    static int64_t shapes[2][4];
    const int64_t sizes[2][4] = {{1, heads, queries, SIZE}, {1, heads, keys, SIZE}};
    memcpy(shapes, sizes, sizeof shapes);
    q.shape = attended.shape = shapes[0];
    k.shape = v.shape = shapes[1];
    q.dtype = k.dtype = v.dtype = attended.dtype = dtype;
    MUST(tn_attention(NULL, &attention_args, &err));
}

/* Every function with its variants. */
typedef struct row {
    const char *function;
    const char *variant;
    int needs;
    void (*call)(void);
} row;

/* The three functions of an operator, with these members of its arguments. An operator with a suite of its own has its row
 * there: a line of tests/unit/op_NAME.c that is "unit.stack: OPERATOR(...)" in a comment. stack_operators.def has them. */
#define OPERATOR(op, ...)                                                          \
    CALL(tn_##op, first, 0, MUST(tn_##op(NULL, TN_ARGS(op, __VA_ARGS__), &err)))   \
    CALL(tn_##op##_explain, first, 0,                                              \
         MUST(tn_##op##_explain(NULL, TN_ARGS(op, __VA_ARGS__), &decision, &err))) \
    CALL(tn_##op##_prepare, first, 0, MUST(tn_##op##_prepare(NULL, TN_ARGS(op, __VA_ARGS__), &err)))

#define CALL(function, variant, needs, body)      \
    static void call_##function##_##variant(void) \
    {                                             \
        body;                                     \
    }
#include "stack_calls.def"
#include "stack_operators.def"
#undef CALL
#define CALL(function, variant, needs, body) \
    {#function, #variant, needs, call_##function##_##variant},
static const row rows[] = {
#include "stack_calls.def"
#include "stack_operators.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* What calls need, made on the stack of main. */
static void need_status(tn_status status)
{
    if (status) {
        printf("not set up: %s\n", err.message);
        exit(3);
    }
}

static void write_file(const char *content)
{
    FILE *file = fopen(file_in_folder, "w");
    if (!file || fputs(content, file) < 0 || fclose(file))
        exit(4);
}

static void make_folder(const char *parent)
{
    (void)snprintf(folder, sizeof folder, "%s", parent);
    (void)snprintf(file_in_folder, sizeof file_in_folder, "%s/tenon-stranger.so", folder);
    write_file("nothing that can be loaded");
}

static void make_device_things(int needs)
{
    if (needs & DEVICE) {
        need_status(tn_device_get("cpu:0", &device, &err));
        platform = tn_device_platform(device);
        backend_args.device = device;
        copy_args.to_device = copy_args.from_device = fill_memory_args.device = device;
    }
    if (needs & (1 << 1))
        need_status(tn_stream_create(device, NULL, &stream, &err));
    if (needs & (1 << 2))
        need_status(tn_event_create(device, NULL, &event, &err));
    if (needs & (1 << 3)) {
        need_status(tn_memory_alloc(device, 4096, "stack", &memory, &err));
        fill_memory_args.to = memory;
    }
    if (needs & (1 << 4))
        need_status(tn_device_guard_enter(&device_guard, device, &err));
    if ((needs & (1 << 4)) && stream)
        need_status(tn_stream_guard_enter(&stream_guard, stream, &err));
    if (needs & (1 << 5))
        need_status(tn_graph_begin(stream, &err));
    if (needs & (1 << 6))
        need_status(tn_graph_end(stream, &graph, &err));
}

static void make_values(int needs)
{
    prefer_openblas = tn_with_rules(TN_PREFER, "library:openblas");
    if (needs & TENSOR & (1 << 7))
        need_status(tn_tensor_create(NULL, TN_F32, shape_2, 2, &tensor, &err));
    if (needs & (1 << 8)) {
        need_status(tn_dlpack_export(&tensor, 1, &managed, &err));
        need_status(tn_dlpack_export_legacy(&tensor, 1, &managed_legacy, &err));
    }
    if (needs & CONTEXT)
        need_status(tn_context_derive(NULL, &prefer_openblas, 1, &context, &err));
    if (needs & SCOPE)
        need_status(tn_scope_enter(&scope, &prefer_openblas, 1, &err));
    if (needs & GENERATOR)
        need_status(tn_generator_create(1, &generator, &err));
    if (needs & SNAPSHOT) {
        need_status(tn_worker_snapshot_take(&err));
        need_status(tn_worker_snapshot_save(&snapshot, &err));
    }
}

static void make_lists(void)
{
    need_status(tn_module_list_create(&modules, &err));
    need_status(tn_cache_list_create(&caches, &err));
    need_status(tn_platform_list_create(&platforms, &err));
    need_status(tn_machine_create(&machine, &err));
    need_status(tn_topology_create(&topology, &err));
}

static void make_plans(int needs)
{
    if (needs & LIBRARY)
        need_status(tn_library_get("openblas", &library, &err));
    if (needs & (1 << 14)) {
        need_status(tn_lock_write(NULL, &lock_args, &err));
        need_status(tn_lock_diff(file_in_folder, file_in_folder, &lock_report, &err));
    }
    if (needs & (1 << 15))
        need_status(tn_module_folder_add(folder, 0, &err));
    if (needs & DECISION)
        need_status(tn_explain(NULL, locked[1], &decision, &err));
    if (needs & PACKED)
        need_status(tn_matmul_pack(NULL, &matmul_args, &packed, &err));
    if (needs & TUNED)
        need_status(tn_settings_set("tuning.enabled=true", &err));
    if (needs & SAMPLED)
        need_status(tn_settings_set("debug.sample=1", &err));
    if (needs & OPENBLAS)
        need_status(tn_context_derive(NULL, &prefer_openblas, 1, &context, &err));
}

static ucontext_t fiber, outside;
static void (*called)(void);

static void run_fiber(void)
{
    called();
}

/* Returns how many bytes of stack `call` uses. A guard page is below it. */
static size_t measure(void (*call)(void))
{
    enum { PAINT = 0xA5 };
    unsigned char *base =
        mmap(NULL, GUARD + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base, GUARD, PROT_NONE) || getcontext(&fiber))
        exit(5);
    memset(base + GUARD, PAINT, STACK);
    fiber.uc_stack.ss_sp = base + GUARD;
    fiber.uc_stack.ss_size = STACK;
    fiber.uc_link = &outside;
    called = call;
    makecontext(&fiber, run_fiber, 0);
    if (swapcontext(&outside, &fiber))
        exit(6);
    size_t clean = 0;
    while (clean < STACK && base[GUARD + clean] == PAINT)
        clean++;
    return STACK - clean;
}

/* In the child: prints the bytes, and exits with 0 if the call was as deep as it has to be. */
static int run_row(const char *function, const char *variant, const char *scratch)
{
    const row *found = NULL;
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].function, function) == 0 && strcmp(rows[i].variant, variant) == 0)
            found = &rows[i];
    if (!found)
        return 2;
    if (found->needs & FOLDER & (1 << 13))
        make_folder(scratch);
    make_device_things(found->needs);
    make_values(found->needs);
    if (found->needs & LISTS)
        make_lists();
    make_plans(found->needs);
    printf("%zu\n", measure(found->call));
    if (failed)
        printf("failed: %s\n", err.message);
    return failed ? 1 : 0;
}

/* A folder for each process, so that none finds what another one kept. */
static void begin_child(const row *it, const char *scratch, int to)
{
    char path[300];
    (void)alarm(CHILD_LIMIT_S);
    (void)dup2(to, STDOUT_FILENO);
    (void)snprintf(path, sizeof path, "%s/config", scratch);
    (void)setenv("TENON_CONFIG", path, 1);
    (void)snprintf(path, sizeof path, "%s/cache", scratch);
    (void)setenv("TENON_CACHE", path, 1);
    (void)execl("/proc/self/exe", "stack", it->function, it->variant, scratch, (char *)NULL);
    _exit(127);
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)kind, (void)place;
    return remove(path);
}

/* Returns the bytes that a row used, and -1 when its process failed. */
static long ask_child(const row *it)
{
    char scratch[] = "/tmp/tenon-stack-XXXXXX";
    int ends[2], code = -1;
    char said[1024] = "";
    size_t length = 0;
    ssize_t got;
    assert_int_equal(pipe(ends), 0);
    assert_non_null(mkdtemp(scratch));
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        begin_child(it, scratch, ends[1]);
    (void)close(ends[1]);
    while (length + 1 < sizeof said &&
           ((got = read(ends[0], said + length, sizeof said - 1 - length)) > 0 ||
            (got < 0 && errno == EINTR)))
        length += got > 0 ? (size_t)got : 0;
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, &code, 0), pid);
    (void)nftw(scratch, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    if (code != 0)
        print_message("%s (%s): expected exit status 0, got wait status %#x: %s\n", it->function,
                      it->variant, (unsigned)code, said);
    return code == 0 ? strtol(said, NULL, 10) : -1;
}

static bool has_row(const char *function)
{
    bool has = false;
    for (size_t i = 0; i < ROWS; i++)
        has = has || strcmp(rows[i].function, function) == 0;
    return has;
}

/* Returns the number of functions that a public header declares, TN_API before each, and adds those without a row. */
static int check_header(const char *path, int *missing)
{
    char word[512], declaration[512];
    int declared = 0;
    bool in_define = false;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fscanf(file, "%511s", word) == 1) {
        if (strcmp(word, "TN_API") == 0 && !in_define) {
            assert_int_equal(fscanf(file, "%511[^(]", declaration), 1);
            const char *name = declaration + strlen(declaration);
            while (name > declaration && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
                name--;
            if (!has_row(name)) {
                print_message("%s has no call: see stack_calls.def, for an operator OPERATOR\n",
                              name);
                ++*missing;
            }
            declared++;
        }
        in_define = strcmp(word, "#define") == 0;
    }
    (void)fclose(file);
    return declared;
}

static void every_public_function_has_a_call(void **state)
{
    glob_t headers;
    int missing = 0, declared = 0;
    (void)state;
    assert_int_equal(glob(HEADERS "/*.h", 0, NULL, &headers), 0);
    for (size_t i = 0; i < headers.gl_pathc; i++)
        declared += check_header(headers.gl_pathv[i], &missing);
    globfree(&headers);
    assert_true(declared > 300);
    assert_int_equal(missing, 0);
}

static void every_call_fits_the_stack(void **state)
{
    const char *only = getenv("TENON_TEST_STACK_ONLY");
    long most = 0;
    int above = 0, broken = 0;
    (void)state;
    if (getenv("TN_TEST_EMULATED"))
        skip_because("qemu-user has the system start a program, which is not one of its own");
    for (size_t i = 0; i < ROWS; i++) {
        if (only && !strstr(rows[i].function, only))
            continue;
        long used = ask_child(&rows[i]);
        most = used > most ? used : most;
        above += used > LIMIT;
        broken += used < 0;
        if (used > LIMIT || only)
            print_message("%s (%s) uses %ld bytes of stack; the limit is %d\n", rows[i].function,
                          rows[i].variant, used, LIMIT);
    }
    print_message("at most %ld bytes\n", most);
    assert_int_equal(broken, 0);
    assert_int_equal(above, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_public_function_has_a_call),
        cmocka_unit_test(every_call_fits_the_stack),
    };
    if (argc == 4)
        return run_row(argv[1], argv[2], argv[3]);
    return run_suite("unit.stack", tests);
}
