/* The kernels' numbers without a GPU: their texts, compiled by the host's C++ compiler (host_cuda.h), are the
 * kernels of a platform in host memory, whose rows are the module's own; the library's check holds each
 * against the reference. What this shows is the texts' arithmetic and addresses, and how rows fill in their
 * arguments. It shows nothing of NVIDIA's compiler and hardware. */
#include "row_problems.h"
#include "scratch.h"
#include "tenon/tenon.h"
#include "test_rows.h"

#include "../../backends/cuda/attention/attention_cuda.h"
#include "../../backends/cuda/attention/attention_dropout.h"
#include "../../backends/cuda/kernels/layout.h"
#include "../../backends/cuda/platform/tile.h"
#include "tenon/module/attention.h"

#include <dlfcn.h>
#include <math.h>

typedef void launch_fn(const void *args, unsigned blocks, unsigned threads);

struct cuda_kernel {
    cuda_kernel *next; /* they live as long as the process */
    launch_fn *run;
    char key[640];
};
static cuda_kernel *kernels_made;

static char folder[SCRATCH_PATH];
static const tn_host *lent;

/* Puts the host's function in the place of an instruction that is written by hand. */
static void replace(char *text, const char *what, const char *by)
{
    for (char *at = text; (at = strstr(at, what)) != NULL;) {
        memset(at, ' ', strlen(what));
        memcpy(at, by, strlen(by));
    }
}

/* What the command lines of all compilations begin with: the compiler reads host_cuda.h, which takes it ten times as
 * long as a kernel's text, only once. */
#define COMPILE HOST_CXX " -std=c++17 -O0 -ffp-contract=off -w -fPIC "

static void precompile_header(void)
{
    char header[SCRATCH_PATH + 32], command[4 * SCRATCH_PATH];
    snprintf(header, sizeof header, "%s/host.h", folder);
    FILE *file = fopen(header, "w");
    assert_non_null(file);
    fprintf(file, "#include \"%s\"\n", HOST_CUDA);
    assert_int_equal(fclose(file), 0);
    snprintf(command, sizeof command, COMPILE "-x c++-header -o %s.gch %s", header, header);
    assert_int_equal(system(command), 0);
}

static void write_source(const cuda_case *wanted, const char *path)
{
    char options[512];
    char *text = cuda_unit_text(lent, wanted->unit);
    FILE *file = fopen(path, "w");
    assert_true(text && file);
    replace(text, "asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x.bits));",
            "y = host_f32_of_f16(x.bits);");
    replace(text, "asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(y.bits) : \"f\"(x));", "");
    replace(text, "asm(\"min.NaN.f32 %0, %1, %2;\" : \"=f\"(c) : \"f\"(a), \"f\"(b));", "");
    replace(text, "asm(\"max.NaN.f32 %0, %1, %2;\" : \"=f\"(c) : \"f\"(a), \"f\"(b));", "");
    replace(text, "asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y.bits) : \"f\"(x));",
            "y.bits = host_f16_of_f32(x);");
    replace(text, "asm(\"mul.wide.u32 %0, %1, %2;\" : \"=l\"(product) : \"r\"(x), \"r\"(factor));",
            "");
    replace(text, "asm(\"rcp.approx.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x));", "y = 1.0f / x;");
    replace(text, "asm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(about) : \"f\"(b));", "");
    replace(
        text,
        "asm(\"cvt.rn.\" DTYPE \"x2.f32 %0, %1, %2;\" : \"=r\"(both) : \"f\"(second), \"f\"(first));",
        "");
    replace(text, "asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x));", "");
    assert_null(strstr(text, "asm("));
    snprintf(options, sizeof options, "%s", wanted->options);
    for (char *line = strtok(options, "\n"); line; line = strtok(NULL, "\n")) {
        char *equals = strchr(line, '=');
        if (!equals)
            continue; /* for NVIDIA's compiler alone */
        assert_int_equal(strncmp(line, "-D", 2), 0);
        fprintf(file, "#define %.*s %s\n", (int)(equals - line - 2), line + 2, equals + 1);
    }
    fprintf(file, "%s\ntypedef decltype(host_args_of(%s)) host_args_type;\n", text,
            wanted->function);
    fprintf(file,
            "static host_args_type host_args;\n"
            "static void host_kernel() { %s(host_args); }\n"
            "extern \"C\" void host_launch(const void *args, unsigned blocks, unsigned threads)\n"
            "{ host_args = *(const host_args_type *)args;"
            " host_run(host_kernel, blocks, threads); }\n",
            wanted->function);
    assert_int_equal(fclose(file), 0);
    lent->release(lent->self, text);
}

static cuda_kernel *find_made(const char *key)
{
    cuda_kernel *kernel = kernels_made;
    while (kernel && strcmp(kernel->key, key) != 0)
        kernel = kernel->next;
    return kernel;
}

tn_status cuda_kernel_get(cuda *self, const cuda_nvrtc *nvrtc, int32_t device,
                          const cuda_case *wanted, cuda_kernel **out, tn_error *err)
{
    static int number;
    char key[sizeof kernels_made->key];
    char source[SCRATCH_PATH + 32], object[SCRATCH_PATH + 32], command[4 * SCRATCH_PATH];
    (void)self, (void)nvrtc, (void)device;
    snprintf(key, sizeof key, "%s %s %s", cuda_unit_name(wanted->unit), wanted->function,
             wanted->options);
    *out = find_made(key);
    if (*out)
        return TN_OK;
    snprintf(source, sizeof source, "%s/%d.cc", folder, number);
    snprintf(object, sizeof object, "%s/%d.so", folder, number++);
    write_source(wanted, source);
    snprintf(command, sizeof command,
             COMPILE "-shared -include %s/host.h -I%s -I%s/tenon/module -o %s %s", folder,
             HOST_INCLUDE, HOST_INCLUDE, object, source);
    if (system(command) != 0)
        return tn_fail(err, TN_IO, 0, "c++", "%s does not compile: %s", wanted->function,
                       wanted->options);
    void *library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, "host_launch") : NULL;
    cuda_kernel *kernel = lent->alloc(lent->self, sizeof *kernel, _Alignof(cuda_kernel));
    assert_true(found && kernel);
    memcpy(&kernel->run, &found, sizeof found);
    memcpy(kernel->key, key, sizeof key);
    kernel->next = kernels_made;
    kernels_made = kernel;
    *out = kernel;
    return TN_OK;
}

tn_status cuda_kernel_launch(cuda *self, int32_t device, const cuda_launch *launch, tn_error *err)
{
    (void)self, (void)device, (void)err;
    launch->kernel->run(launch->args, launch->blocks, launch->threads);
    return TN_OK;
}

tn_status cuda_tiles_check(cuda *self, tn_error *err)
{
    (void)self, (void)err;
    return TN_OK;
}

/* In place of the driver's tensor maps, what host_hopper.h reads. */
typedef struct host_tile {
    const void *memory;
    unsigned long long sizes[4], strides[4], rows;
} host_tile;
_Static_assert(sizeof(host_tile) <= sizeof(cu_tensor_map), "it takes the place of a tensor map");

tn_status cuda_tiles_describe(cuda *self, int32_t device, const cuda_tile *tiles, int count,
                              tn_error *err)
{
    (void)self, (void)device, (void)err;
    for (int i = 0; i < count; i++) {
        host_tile tile = {.memory = tiles[i].memory, .rows = (unsigned)tiles[i].rows};
        for (int d = 0; d < 4; d++) {
            tile.sizes[d] = (unsigned long long)tiles[i].layout->shape[3 - d];
            tile.strides[d] = (unsigned long long)tiles[i].layout->stride[3 - d] * sizeof(uint16_t);
        }
        memcpy(tiles[i].out, &tile, sizeof tile);
    }
    return TN_OK;
}

/* Two multiprocessors, so that blocks have more than one job. */
tn_status cuda_describe(cuda *self, int32_t index, const cuda_found **out_found, tn_error *err)
{
    static const cuda_found two = {.multi_processors = 2};
    (void)self, (void)index, (void)err;
    *out_found = &two;
    return TN_OK;
}

/* A platform in host memory. */
static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    cuda *self = host->alloc(host->self, sizeof *self, _Alignof(cuda));
    (void)err;
    memset(self, 0, sizeof *self);
    lent = host;
    *out_self = self;
    *out_devices = 1;
    return TN_OK;
}

static tn_status take(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    void *memory = lent->alloc(lent->self, (size_t)bytes, 256);
    (void)self, (void)device;
    if (!memory)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "numbers", "no memory");
    *out = memory;
    return TN_OK;
}

static void give(void *self, int32_t device, void *memory)
{
    (void)self, (void)device;
    lent->release(lent->self, memory);
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)err;
    for (uint64_t row = 0; row < job->rows; row++)
        memcpy((char *)job->to + row * job->to_pitch,
               (const char *)job->from + row * job->from_pitch, (size_t)job->bytes);
    return TN_OK;
}

static const tn_platform_row platform = {.struct_size = sizeof platform,
                                         .name = "hostcuda",
                                         .kind = TN_PLATFORM_OOT,
                                         .probe = probe,
                                         .memory_alloc = take,
                                         .memory_free = give,
                                         .copy = copy};
static const tn_platform_row *const platforms[] = {&platform, NULL};

#define ROW_ADDRESS(row) &row,
static const tn_kernel_row *const own[] = {CUDA_ROWS(ROW_ADDRESS) ROW_ADDRESS(finished_row)
                                               ROW_ADDRESS(padded_row) ROW_ADDRESS(math_row)
                                                   ROW_ADDRESS(math16_row) ROW_ADDRESS(fft_row)};
enum { ROWS = sizeof own / sizeof own[0] };
static tn_kernel_row rows[ROWS];
static char names[ROWS][64];
static bool held[ROWS]; /* a problem of the suite's lists was checked with the row */
static const tn_kernel_row *kernels[ROWS + 1];
static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "hostcuda",
                                 .version = "1",
                                 .platforms = platforms,
                                 .kernels = kernels};

/* The module's rows, of another platform and without their library. */
static tn_status entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    for (int i = 0; i < ROWS; i++) {
        rows[i] = *own[i];
        snprintf(names[i], sizeof names[i], "host%s", own[i]->name);
        rows[i].name = names[i];
        rows[i].platform = "hostcuda";
        rows[i].library = NULL;
        kernels[i] = &rows[i];
    }
    *out = &module;
    return TN_OK;
}

static void begin(void)
{
    static tn_registration *registration;
    tn_error err;
    if (!HOST_CXX[0])
        skip_because("no C++ compiler with _Float16 was found");
    if (registration)
        return;
    precompile_header();
    if (tn_settings_set("cuda.allow_fp16_bf16_reduction_math_sdp=true", &err))
        fail_msg("%s", err.message);
    if (tn_module_register(entry, 0, &registration, &err))
        fail_msg("%s", err.message);
}

static void note_held(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        held[i] = held[i] || strcmp(names[i], name) == 0;
}

/* Checks a problem, with the name of its device, by a kernel. */
static void check_with(const char *problem, const char *name, uint64_t flags)
{
    tn_check_result result = {.struct_size = sizeof result};
    tn_error err;
    const tn_check_args args = {
        .struct_size = sizeof args, .problem = problem, .kernel = name, .flags = flags};
    if (tn_check(NULL, &args, &result, &err))
        fail_msg("%s: %s", problem, err.message);
    if (!result.ok)
        fail_msg("%s: %s; seed %llu", problem, result.text, (unsigned long long)result.seed);
    note_held(name);
}

static void check_by(const char *problem, const char *name)
{
    check_with(problem, name, 0);
}

static void hold_by(const char *problem, const char *way)
{
    char text[160], name[64];
    snprintf(text, sizeof text, "%s@hostcuda:0", problem);
    snprintf(name, sizeof name, "hostcuda.%.*s.%s", (int)strcspn(problem, ":"), problem, way);
    check_by(text, name);
}

/* Checks a list of problems: all of them in a full run, otherwise the first and a sample. Most of the time goes into the
 * compiler, which runs for every specialisation of a kernel. */
#define HOLD(...) HOLD_BY("own", __VA_ARGS__)
#define HOLD_BY(way, ...)                                       \
    do {                                                        \
        static const char *const problems_[] = {__VA_ARGS__};   \
        size_t count_ = sizeof problems_ / sizeof problems_[0]; \
        begin();                                                \
        for (size_t i_ = 0; i_ < count_; i_++) {                \
            if (i_ == 0 || test_sampled(__LINE__ + i_, 40))     \
                hold_by(problems_[i_], way);                    \
        }                                                       \
    } while (0)

static void products_of_i8(void **state)
{
    (void)state;
    HOLD_BY("own.int8",

            "matmul:i8:m=33,n=40,k=130", "matmul:i8:m=63,n=65,k=31,tb=1",
            "matmul:i8:m=7,n=9,k=5,batch=3x2,ta=1",
            "matmul:i8:m=20,n=30,k=40,sa=200;3,sb=1;77,sc=1;25", "matmul:i8:m=1,n=1,k=1");
}

/* Lines of every width, of one element and of more than a block takes, whole or not; both orders, batches, strides; a bias
 * that lies anyhow. */
static void what_follows_a_librarys_product(void **state)
{
    (void)state;
    HOLD_BY("finished",

            "matmul:bf16:m=40,n=33,k=20,act=gelu", "matmul:f16:m=7,n=1500,k=5,bias=1,act=gelu-tanh",
            "matmul:bf16:m=1100,n=3,k=5,bias=1,act=silu,sc=1;1200",
            "matmul:f32:m=19,n=130,k=9,alpha=2,beta=0.5,bias=1,act=silu",
            "matmul:f32:m=5,n=6,k=7,batch=2x3,act=gelu",
            "matmul:f16:m=5,n=9,k=7,batch=3x2,bias=1,act=gelu,sc=200;100;20;2",
            "matmul:bf16:m=1,n=1,k=1,act=silu",
            "matmul:bf16:m=30,n=40,k=5,bias=1,act=gelu,sbias=1;30",
            "matmul:f16:m=9,n=14,k=5,batch=2x3,bias=1,act=silu,sbias=400;130;14;1,sc=378;126;1;9",
            "matmul:bf16:m=9,n=20,k=30,out=f32,act=gelu,bias=1",
            "matmul:f32:m=300,n=1,k=4,act=gelu", "matmul:bf16:m=5,n=2056,k=3,act=gelu,bias=1",
            "matmul:f16:m=40,n=24,k=7,act=silu", "matmul:f32:m=6,n=64,k=9,bias=1,act=gelu,beta=2",
            "matmul:bf16:m=16,n=5,k=9,bias=1,act=gelu,sc=1;24,sbias=0;1",
            "matmul:f16:m=3,n=16,k=5,batch=2x3,bias=1,act=gelu-tanh,sbias=0;16;1;0",
            "matmul:bf16:m=4,n=16,k=5,batch=2,act=gelu,sc=72;16;1");
}

/* One or all operands misaligned by address, stride, batch or size; lines of one element, shorter than a chunk and longer
 * than a block's share; both orders of each operand; rounded sizes and others; sums of f32 in out. */
static void misaligned_operands_are_copied(void **state)
{
    static const char *const problems[] = {"matmul:bf16:m=33,n=41,k=57",
                                           "matmul:f16:m=5,n=9,k=2077",
                                           "matmul:bf16:m=3,n=2101,k=5",
                                           "matmul:f16:m=40,n=24,k=33,tb=1",
                                           "matmul:bf16:m=41,n=24,k=33,ta=1",
                                           "matmul:bf16:m=35,n=43,k=51,ta=1,tb=1",
                                           "matmul:f16:m=35,n=43,k=51,sc=1;37",
                                           "matmul:bf16:m=16,n=24,k=32,align=2;16;16",
                                           "matmul:bf16:m=16,n=24,k=32,align=16;4;16",
                                           "matmul:f16:m=16,n=24,k=32,align=16;16;8",
                                           "matmul:bf16:m=16,n=24,k=32,align=2;2;2",
                                           "matmul:bf16:m=9,n=16,k=24,sa=27;1",
                                           "matmul:f16:m=9,n=16,k=24,sb=21;1,alpha=2,beta=0.5",
                                           "matmul:bf16:m=19,n=13,k=7,beta=-1,sc=15;1",
                                           "matmul:bf16:m=33,n=41,k=57,out=f32,align=2;2;4",
                                           "matmul:f16:m=16,n=20,k=24,out=f32,align=16;2;4,beta=2",
                                           "matmul:f16:m=7,n=9,k=11,batch=3x2",
                                           "matmul:bf16:m=8,n=16,k=24,batch=3,sa=193;24;1",
                                           "matmul:bf16:m=7,n=9,k=11,batch=2x3,sa=0;0;11;1",
                                           "matmul:f16:m=7,n=9,k=11,batch=3,sb=0;1;11",
                                           "matmul:f16:m=9,n=16,k=9,bias=1,act=relu",
                                           "matmul:bf16:m=1,n=1,k=1,align=2;2;2",
                                           "matmul:bf16:m=1,n=9,k=9",
                                           "matmul:f16:m=9,n=1,k=9",
                                           "matmul:f16:m=9,n=9,k=1",
                                           "matmul:bf16:m=9,n=17,k=15,sa=1;10,sb=1;16,sc=1;9"};
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        if (test_sampled(i, 3))
            hold_by(problems[i], "padded");
    }
}

/* One kernel for each of the two dtypes. Lines that are whole and that are not, both orders, batches; a bias for each
 * column, for each row, for each element and for each matrix. */
static void a_bias_follows_complex_products(void **state)
{
    static const char *const fields[] = {"m=19,n=130,k=9,alpha=2,beta=0.5,bias=1",
                                         "m=6,n=64,k=9,bias=1",
                                         "m=3,n=2100,k=2,bias=1",
                                         "m=30,n=41,k=5,bias=1,sbias=1;30",
                                         "m=30,n=40,k=5,bias=1,sbias=1;0,beta=1",
                                         "m=1100,n=3,k=5,bias=1,sc=1;1200",
                                         "m=16,n=5,k=9,bias=1,sc=1;24,sbias=0;1",
                                         "m=5,n=9,k=7,batch=3x2,ta=1,bias=1,sc=200;100;20;2",
                                         "m=3,n=16,k=5,batch=2x3,bias=1,sbias=48;16;0;1",
                                         "m=1,n=1,k=1,bias=1"};
    static const char *const dtypes[] = {"c64", "c128"};
    char problem[128];
    (void)state;
    begin();
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
            if (!test_sampled(d * sizeof fields + i, 3))
                continue;
            snprintf(problem, sizeof problem, "matmul:%s:%s", dtypes[d], fields[i]);
            hold_by(problem, "finished");
        }
    }
}

static void elements(void **state)
{
    (void)state;
    HOLD("unary:f32:kind=exp,shape=37x41", "unary:bf16:kind=gelu,shape=1003",
         "unary:f64:kind=gelu-tanh,shape=300", "unary:f16:kind=silu,shape=20x31,out=f32",
         "unary:f32:kind=rsqrt,shape=20x30,si=1;20", "unary:i8:kind=abs,shape=999",
         "unary:u64:kind=neg,shape=99", "binary:f32:kind=max,shape=37x41",
         "binary:i16:kind=mul,shape=999", "binary:i8:kind=div,shape=4097",
         "binary:u64:kind=min,shape=333", "binary:bf16:kind=div,shape=9x64,s2=0;1",
         "binary:f64:kind=sub,shape=7x9x5");
}

/* Of both tiles, and edges of either; every way to lie; all that follows. */
static void products(void **state)
{
    (void)state;
    HOLD("matmul:f32:m=64,n=64,k=64", "matmul:f32:m=1,n=1,k=1", "matmul:f32:m=127,n=65,k=33",
         "matmul:f32:m=17,n=16,k=300", "matmul:f64:m=33,n=40,k=130", "matmul:f16:m=33,n=9,k=65",
         "matmul:bf16:m=9,n=70,k=129,out=f32", "matmul:f32:m=20,n=30,k=40,ta=1,tb=1",
         "matmul:f32:m=70,n=50,k=70,ta=1,bias=1,act=relu", "matmul:f32:m=20,n=30,k=10,acc=f64",
         "matmul:f32:m=20,n=30,k=40,sa=200;3,sb=1;77,sc=1;25",
         "matmul:f64:m=20,n=30,k=40,alpha=2,beta=0.5,bias=1,act=gelu",
         "matmul:bf16:m=40,n=40,k=70,tb=1,alpha=0.5,beta=2,bias=1,act=silu",
         "matmul:f16:m=7,n=33,k=20,batch=3x2,act=gelu-tanh,bias=1",
         "matmul:f32:m=16,n=16,k=16,batch=2x3x4", "matmul:f32:m=5,n=6,k=0,beta=2,bias=1",
         "matmul:f32:m=5,n=6,k=7,batch=2x3,sa=0;35;7;1,sb=42;0;1;7");
}

/* Rows, `count` of them, each of `size` numbers and `step` apart; `call` makes one output of `of` numbers of it. */
typedef struct batch {
    int64_t count, size, step, of;
    tn_status (*call)(const tn_tensor *in, const tn_tensor *out, tn_error *err);
} batch;

static tn_status sum_rows(const tn_tensor *in, const tn_tensor *out, tn_error *err)
{
    return tn_reduce(
        NULL, TN_ARGS(reduce, .in = in, .out = out, .kind = TN_REDUCE_SUM, .axes = 2, .keep = 1),
        err);
}

static tn_status soften_rows(const tn_tensor *in, const tn_tensor *out, tn_error *err)
{
    return tn_softmax(NULL, TN_ARGS(softmax, .in = in, .out = out), err);
}

static tn_status norm_rows(const tn_tensor *in, const tn_tensor *out, tn_error *err)
{
    return tn_norm(NULL, TN_ARGS(norm, .in = in, .out = out, .kind = TN_NORM_LAYER), err);
}

/* By a matrix that is the same for all: many rows in wide tiles, one in narrow ones. */
static tn_status multiply_rows(const tn_tensor *in, const tn_tensor *out, tn_error *err)
{
    enum { DEEP = 300, ACROSS = 40 };
    static _Alignas(64) float other[DEEP * ACROSS];
    const int64_t shape[] = {DEEP, ACROSS};
    tn_device *device;
    tn_tensor b;
    for (int i = 0; i < DEEP * ACROSS; i++)
        other[i] = (float)(i % 1013) * 0.013f - 3.1f;
    tn_status status = tn_device_get("hostcuda:0", &device, err);
    if (!status)
        status = tn_tensor_wrap(device, other, TN_F32, shape, NULL, 2, NULL, NULL, &b, err);
    if (status)
        return status;
    status = tn_matmul(NULL, TN_ARGS(matmul, .a = in, .b = &b, .out = out), err);
    tn_tensor_release(&b);
    return status;
}

static void run_batch(const batch *it, tn_device *device, float *in, int64_t count, float *out)
{
    const int64_t shape[] = {count, it->size}, strides[] = {it->step, 1},
                  out_shape[] = {count, it->of};
    tn_tensor a, b;
    tn_error err;
    if (tn_tensor_wrap(device, in, TN_F32, shape, strides, 2, NULL, NULL, &a, &err) ||
        tn_tensor_wrap(device, out, TN_F32, out_shape, NULL, 2, NULL, NULL, &b, &err) ||
        it->call(&a, &b, &err))
        fail_msg("%lld numbers, %lld apart: %s", (long long)it->size, (long long)it->step,
                 err.message);
    tn_tensor_release(&a);
    tn_tensor_release(&b);
}

/* Alone and among others, padded or not: the same bits. */
static void a_row_does_not_depend_on_others(void **state)
{
    enum { MOST = 6000 };
    static _Alignas(64) float in[MOST], all[MOST], one[MOST];
    static const batch batches[] = {
        {3, 1001, 1001, 1, sum_rows},     {3, 1000, 1000, 1, sum_rows},
        {3, 1000, 1004, 1, sum_rows},     {3, 777, 777, 777, soften_rows},
        {3, 776, 777, 776, soften_rows},  {3, 776, 776, 776, soften_rows},
        {3, 1000, 1003, 1000, norm_rows}, {20, 300, 300, 40, multiply_rows}};
    tn_device *device;
    tn_error err;
    (void)state;
    begin();
    assert_int_equal(tn_device_get("hostcuda:0", &device, &err), TN_OK);
    for (int i = 0; i < MOST; i++)
        in[i] = (float)((i * 7919) % 1009) * 0.37f - 150.0f / (float)(1 + i % 13);
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        const batch *it = &batches[i];
        if (!test_full() && (i + test_seed()) % 4 != 0)
            continue;
        run_batch(it, device, in, it->count, all);
        for (int64_t row = 0; row < it->count; row++) {
            run_batch(it, device, in + row * it->step, 1, one);
            assert_memory_equal(one, all + row * it->of, (size_t)it->of * sizeof *one);
        }
    }
}

static void casts_and_fills(void **state)
{
    (void)state;
    HOLD("cast:f32:shape=523,to=bf16", "cast:f64:shape=523,to=f16", "cast:f64:shape=523,to=bf16",
         "cast:i64:shape=523,to=f16", "cast:u64:shape=523,to=f32", "cast:f32:shape=523,to=i8",
         "cast:f64:shape=523,to=u64", "cast:i32:shape=523,to=u8", "cast:u64:shape=523,to=i64",
         "cast:bool:shape=523,to=f16", "cast:bf16:shape=523,to=bool",
         "fill:bf16:shape=37x5,value=3", "fill:i64:shape=37x5,value=-7",
         "fill:u8:shape=37x5,so=1;37,value=9");
}

static void permutes(void **state)
{
    (void)state;
    HOLD("permute:f32:shape=50x60,order=1;0", "permute:i8:shape=3x50x60,order=0;2;1",
         "permute:f64:shape=5x6x7x8,order=3;1;0;2", "permute:c64:shape=33x70,order=1;0",
         "permute:c128:shape=33x70,order=1;0", "permute:c128:shape=5x6x7,order=2;0;1",
         "permute:c128:shape=101", "permute:c128:shape=9x10,si=20;1",
         "permute:c128:shape=1x1,order=1;0", "permute:c128:shape=7x8,si=0;1,so=16;2",
         "permute:f16:shape=20x40x60,order=1;2;0", "permute:f32:shape=1001",
         "permute:bf16:shape=130x65,order=1;0", "permute:bf16:shape=130x66,order=1;0",
         "permute:f16:shape=3x70x64,order=2;0;1", "permute:i32:shape=2x3x64x129,order=1;0;3;2",
         "permute:bf16:shape=72x4168,order=1;0", "permute:f16:shape=2x200x3x136,order=2;0;3;1",
         "permute:i8:shape=70x2200,order=1;0");
}

static void reductions(void **state)
{
    (void)state;
    HOLD("reduce:f32:kind=sum,shape=5x1000,axes=1",
         "reduce:f32:kind=mean,shape=50x200,axes=1,si=1;50",
         "reduce:bf16:kind=max,shape=2x40000,axes=1", "reduce:f64:kind=min,shape=7x8x9,axes=2",
         "reduce:f16:kind=sum,shape=4x33x5,axes=1", "reduce:i32:kind=sum,shape=5x1001,axes=1",
         "reduce:u64:kind=max,shape=3x20000,axes=1",
         "reduce:i8:kind=min,shape=64x70,axes=1,si=1;64",
         "reduce:i32:kind=sum,shape=5x100,axes=1,out=i64",
         "reduce:bool:kind=sum,shape=9x99,axes=1,out=i64",
         "reduce:f32:kind=sum,shape=3x70000,axes=1,si=1;3",
         "reduce:bf16:kind=max,shape=37x4096,axes=1", "reduce:f16:kind=sum,shape=3x5x2312,axes=1");
}

static void rows_of_every_length(void **state)
{
    (void)state;
    HOLD(
        "softmax:f32:shape=5x7", "softmax:bf16:shape=9x1024", "softmax:f16:shape=5x1025",
        "softmax:f32:shape=3x4096", "softmax:f64:shape=3x9000", "softmax:bf16:shape=2x20001",
        "softmax:f32:shape=4x100,log=1", "softmax:f32:shape=4x6x30,si=1;4;24",
        "norm:f32:kind=layer,shape=5x8,weight=1,bias=1", "norm:bf16:kind=rms,shape=5x1024,weight=1",
        "norm:f32:kind=layer,shape=3x4096,weight=1,bias=1", "norm:f64:kind=layer,shape=3x100",
        "norm:f32:kind=rms,shape=2x20000,weight=1", "norm:f16:kind=layer,shape=3x7x65",
        "rotary:bf16:kind=halves,shape=2x3x10x64", "rotary:f32:kind=pairs,shape=2x3x10x64,size=32",
        "rotary:f64:kind=halves,shape=3x10x16", "rotary:bf16:kind=pairs,shape=2x3x10x64",
        "rotary:f16:kind=halves,shape=2x3x5x60,size=28", "rotary:f32:kind=pairs,shape=5x36,size=22",
        "norm:bf16:kind=layer,shape=2x3x5x64,weight=1,bias=1,si=1920;640;64;1");
}

/* All that attention has, for few rows. */
#define ATTENTION                                                                             \
    "attention:f32:b=2,h=2,l=35,d=64,lse=1", "attention:bf16:b=1,h=1,l=64,d=128,mask=causal", \
        "attention:f16:b=1,h=2,lq=17,lk=33,d=40", "attention:f64:b=1,h=2,l=30,d=24,lse=1",    \
        "attention:f32:b=1,h=1,l=1,d=1", "attention:f32:b=2,h=2,l=35,d=24,mask=bool,lse=1",   \
        "attention:bf16:b=3,h=2,l=35,d=24,mask=padding,lse=1",                                \
        "attention:f16:b=2,h=2,l=35,d=24,mask=causal;additive",                               \
        "attention:bf16:b=1,h=2,l=35,d=24,mask=additive,mdtype=f32",                          \
        "attention:f32:b=1,h=2,l=40,d=16,mask=window:9;3",                                    \
        "attention:f32:b=2,h=2,lq=13,lk=70,d=16,mask=window-tl:-1;7,shift=5",                 \
        "attention:bf16:b=1,h=8,hk=2,lq=1,lk=600,d=128,lse=1",                                \
        "attention:f32:b=1,h=4,hk=1,lq=3,lk=700,d=24,mask=causal-br,lse=1",                   \
        "attention:bf16:b=1,h=4,hk=2,lq=19,lk=67,d=32,mask=causal-br",                        \
        "attention:f32:b=2,h=2,l=40,d=48,dv=72,layout=blhd",                                  \
        "attention:f32:b=1,h=2,l=9,d=24,sq=864;432;48;2",                                     \
        "attention:f16:b=1,h=2,l=35,d=24,softcap=5,scale=0.5",                                \
        "attention:bf16:b=1,h=2,l=35,d=24,sink=1,lse=1",                                      \
        "attention:f32:b=1,h=2,lq=2,lk=600,d=24,sink=f32,lse=1,softcap=3",                    \
        "attention:f32:b=1,h=2,l=35,d=24,dropout=0.25,seed=7,offset=3",                       \
        "attention:bf16:b=1,h=3,lq=2,lk=600,d=24,dropout=0.5,seed=9,lse=1",                   \
        "attention:bf16:b=1,h=2,l=35,d=24,out=f32",                                           \
        "attention:f32:h=2,varlen=33;0;1;20,d=24,mask=causal-br,lse=1",                       \
        "attention:bf16:h=2,varlen=33;5,varlenk=40;17,d=24,layout=blhd",                      \
        "attention:f32:b=3,h=2,l=35,d=24,used=1,lse=1",                                       \
        "attention:bf16:b=3,h=4,hk=2,lq=3,lk=35,d=24,page=16,mask=causal-br",                 \
        "attention:f32:b=2,h=4,hk=2,lq=1,lk=700,d=16,page=64,pool=60,lse=1",                  \
        "attention:f32:b=1,h=1,l=30,d=256", "attention:bf16:b=1,h=1,lq=3,lk=40,d=512",        \
        "attention:f64:b=1,h=2,lq=5,lk=40,d=200,dv=20,lse=1"

static void attention_of_few_rows(void **state)
{
    (void)state;
    HOLD(ATTENTION, "attention:bf16:b=1,h=2,lq=9,lk=0,d=24,lse=1", "attention:f32:b=1,h=0,l=4,d=8");
}

static void gradients_of_attention(void **state)
{
    (void)state;
    HOLD("attention-backward:f32:b=2,h=2,l=35,d=64",
         "attention-backward:bf16:b=1,h=2,l=70,d=128,mask=causal",
         "attention-backward:f16:b=1,h=2,lq=17,lk=33,d=40",
         "attention-backward:f64:b=1,h=2,l=40,d=24", "attention-backward:f32:b=1,h=1,l=1,d=1",
         "attention-backward:bf16:b=1,h=2,lq=9,lk=0,d=24",
         "attention-backward:f32:b=1,h=2,lq=0,lk=9,d=24",
         "attention-backward:f32:b=2,h=2,l=35,d=24,mask=bool",
         "attention-backward:bf16:b=3,h=2,l=35,d=24,mask=padding",
         "attention-backward:f16:b=2,h=2,l=35,d=24,mask=causal;additive",
         "attention-backward:f32:b=1,h=2,l=70,d=16,mask=window:9;3",
         "attention-backward:f32:b=2,h=2,lq=13,lk=70,d=16,mask=window-tl:-1;7,shift=5",
         "attention-backward:f32:b=1,h=6,hk=2,lq=30,lk=67,d=24,mask=causal-br",
         "attention-backward:f32:b=1,h=2,lq=80,lk=30,d=24,mask=causal-br",
         "attention-backward:f32:b=2,h=2,l=40,d=48,dv=72,layout=blhd",
         "attention-backward:f32:b=1,h=2,l=9,d=24,sq=864;432;48;2",
         "attention-backward:f16:b=1,h=2,l=35,d=24,softcap=5,scale=0.5",
         "attention-backward:f32:b=1,h=2,l=35,d=24,softcap=3,mask=causal",
         "attention-backward:f32:b=2,h=4,hk=2,l=35,d=24,dropout=0.25,seed=7,offset=3",
         "attention-backward:bf16:b=1,h=2,l=70,d=24,dropout=0.5,seed=9,mask=causal",
         "attention-backward:f32:b=1,h=0,l=4,d=8", "attention-backward:f32:b=0,h=2,l=4,d=8",
         "attention-backward:f32:b=1,h=1,l=30,d=256",
         "attention-backward:f64:b=1,h=2,lq=5,lk=40,d=200,dv=20",
         "attention-backward:f64:b=1,h=2,l=40,d=24,mask=causal;bool,dropout=0.25,seed=3");
}

/* All that gradients on tensor cores have: several blocks of keys and of queries, rows without keys, both kinds of sums of a
 * block, every guard. */
static void gradients_on_tensor_cores(void **state)
{
    (void)state;
    HOLD_BY("mma",

            "attention-backward:bf16:b=1,h=2,lq=150,lk=130,d=64,mask=causal-br",
            "attention-backward:f16:b=2,h=2,l=70,d=32", "attention-backward:bf16:b=1,h=1,l=1,d=8",
            "attention-backward:bf16:b=1,h=2,l=140,d=128,mask=causal",
            "attention-backward:f16:b=1,h=6,hk=2,lq=60,lk=67,d=24,mask=causal-br",
            "attention-backward:bf16:b=1,h=2,lq=80,lk=30,d=24,mask=causal-br",
            "attention-backward:bf16:b=1,h=2,l=140,d=16,mask=window:19;3",
            "attention-backward:f16:b=2,h=2,lq=13,lk=70,d=16,mask=window-tl:-1;7,shift=5",
            "attention-backward:bf16:b=2,h=2,l=40,d=48,dv=72,layout=blhd",
            "attention-backward:f16:b=1,h=2,l=70,d=40,dv=24,scale=-0.5",
            "attention-backward:bf16:b=2,h=2,l=70,d=24,mask=bool",
            "attention-backward:bf16:b=3,h=2,l=35,d=24,mask=padding",
            "attention-backward:f16:b=2,h=2,l=35,d=24,mask=causal;additive",
            "attention-backward:bf16:b=1,h=2,l=70,d=16,mask=additive,mdtype=f32",
            "attention-backward:f16:b=1,h=2,l=35,d=24,softcap=5,scale=0.5",
            "attention-backward:bf16:b=2,h=4,hk=2,l=35,d=24,dropout=0.25,seed=7,offset=3",
            "attention-backward:f16:b=1,h=2,l=70,d=24,dropout=0.5,seed=9,mask=causal",
            "attention-backward:bf16:b=1,h=2,lq=70,lk=150,d=192,dv=128,mask=causal-br",
            "attention-backward:f16:b=1,h=1,l=40,d=40,dv=256,mask=bool");
}

/* Operands are NaN or infinite where some pairs of a query and a key do not count. */
static void nonfinite_gradients(void **state)
{
    static const char *const problems[] = {
        "attention-backward:bf16:b=1,h=2,lq=70,lk=150,d=24,mask=causal-br@hostcuda:0",
        "attention-backward:f16:b=1,h=2,l=70,d=16,mask=bool@hostcuda:0",
        "attention-backward:f16:b=1,h=2,lq=150,lk=70,d=24,mask=causal-br@hostcuda:0",
        "attention-backward:bf16:b=1,h=2,l=70,d=24,mask=causal,dropout=0.25,seed=7@hostcuda:0"};
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        if (test_sampled(__LINE__ + i, 4))
            check_with(problems[i], "hostcuda.attention-backward.mma", TN_CHECK_NONFINITE);
    }
}

static void nonfinite_gradients_on_hopper(void **state)
{
    static const char *const problems[] = {
        "attention-backward:bf16:b=1,h=2,lq=70,lk=150,d=64,mask=causal-br@hostcuda:0",
        "attention-backward:f16:b=1,h=2,hk=1,lq=140,lk=70,d=64,mask=causal-br@hostcuda:0",
        "attention-backward:bf16:b=1,h=2,l=256,d=64,mask=causal-br@hostcuda:0",
        "attention-backward:bf16:b=1,h=1,lq=100,lk=300,d=64,mask=window:30;10@hostcuda:0",
        "attention-backward:f16:b=1,h=1,lq=200,lk=140,d=64,dv=128,mask=window:30;10@hostcuda:0"};
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        if (test_sampled(__LINE__ + i, 4))
            check_with(problems[i], "hostcuda.attention-backward.hopper", TN_CHECK_NONFINITE);
    }
}

/* By the kernels for Hopper: several blocks and tiles of keys and of queries, the last ones not whole, tiles that all, some and no
 * pairs of count, groups, rows without keys and keys without rows. */
static void gradients_on_hopper(void **state)
{
    (void)state;
    HOLD_BY("hopper",

            "attention-backward:bf16:b=1,h=2,lq=150,lk=330,d=64,mask=causal-br",
            "attention-backward:f16:b=1,h=1,lq=333,lk=129,d=128",
            "attention-backward:bf16:b=2,h=1,l=1,d=64",
            "attention-backward:bf16:b=1,h=1,l=330,d=64,mask=causal",
            "attention-backward:f16:b=2,h=4,hk=2,lq=70,lk=140,d=64,mask=causal,layout=blhd",
            "attention-backward:bf16:b=1,h=1,lq=270,lk=100,d=64,mask=causal-br",
            "attention-backward:bf16:b=1,h=1,l=300,d=64,mask=window:90;20",
            "attention-backward:f16:b=1,h=2,lq=133,lk=270,d=64,mask=window-tl:-1;7,shift=5",
            "attention-backward:bf16:b=1,h=1,lq=140,lk=200,d=128,dv=64,mask=window:40;-1",
            "attention-backward:f16:b=1,h=1,lq=65,lk=64,d=64,dv=128,scale=-0.5");
}

/* Enough rows for the other kernel. */
static void attention_of_many_rows(void **state)
{
    (void)state;
    HOLD("attention:f32:b=1,h=45,l=66,d=24,lse=1",
         "attention:bf16:b=1,h=45,lq=26,lk=100,d=40,mask=causal-br,lse=1",
         "attention:f16:b=2,h=46,hk=23,l=35,d=72,dv=130,mask=causal,layout=blhd",
         "attention:f32:b=3,h=15,l=25,d=16,mask=bool,sink=1,lse=1",
         "attention:bf16:b=3,h=15,l=25,d=16,mask=causal;additive,softcap=4,out=f32",
         "attention:f32:b=3,h=15,lq=25,lk=140,d=16,mask=window:30;10,lse=1",
         "attention:bf16:b=3,h=15,l=25,d=24,dropout=0.25,seed=7,offset=3,lse=1",
         "attention:f32:h=16,varlen=33;0;1;66,d=24,mask=causal-br,lse=1",
         "attention:bf16:b=3,h=30,hk=15,lq=13,lk=90,d=24,page=16,pool=40,mask=causal-br,lse=1",
         "attention:f32:b=3,h=15,l=25,d=16,sq=1125;15;45;1,used=1,lse=1",
         "attention:f64:b=3,h=15,l=33,d=40,lse=1", "attention:f32:b=1,h=45,l=26,d=300");
}

/* The same by two products, which need at least one query, key and head. */
static void attention_by_two_products(void **state)
{
    (void)state;
    HOLD_BY("math", ATTENTION, "attention:f16:b=1,h=2,lq=17,lk=33,d=41",
            "attention:bf16:b=1,h=1,lq=3,lk=40,d=600");
}

/* Scores in 16 bits are scaled before they are stored: f16 cannot hold these without their scale. */
static void attention_by_two_products_with_narrow_scores(void **state)
{
    (void)state;
    HOLD_BY("math16", "attention:f16:b=1,h=2,lq=17,lk=33,d=41,lse=1",
            "attention:f16:b=1,h=1,lq=3,lk=40,d=600,scale=0.01",
            "attention:bf16:b=3,h=15,l=25,d=16,mask=causal;additive,softcap=4,out=f32",
            "attention:bf16:b=3,h=15,l=25,d=24,dropout=0.25,seed=7,offset=3,lse=1",
            "attention:bf16:b=1,h=2,l=25,d=24,scale=-0.5");
}

/* Of two kernels, of complex and of real numbers: operands that the library takes as they are, and those that it does not;
 * both directions and all factors; half spectra whose ends are not those of real numbers. */
static void transforms_with_copied_operands(void **state)
{
    static const char *const problems[] = {
        "fft:c64:shape=3x20,dir=inverse",
        "fft:c64:shape=3x17",
        "fft:c64:shape=7x20,si=40;2",
        "fft:c64:shape=7x20,so=1;9,norm=ortho",
        "fft:c64:shape=9x12,si=-12;-1",
        "fft:c64:shape=9x12,so=12;-1,norm=forward",
        "fft:c64:shape=9x12,si=0;1",
        "fft:c64:shape=9x12,si=1;0,dir=inverse",
        "fft:c64:shape=5x16,inplace=1",
        "fft:c64:shape=5x16,inplace=1,si=-16;1,so=-16;1,dir=inverse",
        "fft:c64:shape=2x3x4x5,si=100;20;5;1",
        "fft:c64:shape=2x3x4x5,dims=2,si=20;40;1;4",
        "fft:c64:shape=2x3x4x5,dims=2,si=90;30;7;1,so=90;30;6;1",
        "fft:c64:shape=2x6x5x8,dims=3,dir=inverse",
        "fft:c64:shape=7x1x9,dims=3",
        "fft:c64:shape=6x5x8,dims=2,si=1;6;30",
        "fft:c64:shape=1",
        "fft:f32:shape=3x20",
        "fft:f32:shape=3x21,norm=ortho",
        "fft:f32:shape=3x21,dir=inverse",
        "fft:f32:shape=3x20,align=4;8",
        "fft:f32:shape=3x6x8,dims=2,norm=forward",
        "fft:f32:shape=3x5x7,dims=2,dir=inverse,so=1;3;20",
        "fft:f32:shape=4x9,si=20;2",
        "fft:c64:shape=3x20,out=f32,dir=inverse",
        "fft:c64:shape=3x21,out=f32,dir=inverse,norm=ortho",
        "fft:c64:shape=3x20,out=f32",
        "fft:c64:shape=3x6x8,out=f32,dims=2,dir=inverse",
        "fft:c64:shape=3x5x7,out=f32,dims=2",
        "fft:c64:shape=2x4x5x6,out=f32,dims=3,dir=inverse,so=1;2;8;40",
        "fft:c64:shape=3x20,out=f32,dir=inverse,align=8;4",
        "fft:c64:shape=4x1,out=f32",
        "fft:c128:shape=3x20,out=f64,dir=inverse",
        "fft:f64:shape=2x6x8,dims=2,dir=inverse",
        "fft:c128:shape=9x12,si=-12;-1,norm=ortho",
    };
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        hold_by(problems[i], "copied");
}

/* All that decoding has: one part of the keys and several, one tile of rows and two, warps without keys; each length of the
 * ring of slots. */
static void attention_of_a_step(void **state)
{
    (void)state;
    HOLD_BY("decode",

            "attention:bf16:b=2,h=8,hk=2,lq=1,lk=1600,d=128,lse=1",
            "attention:bf16:b=1,h=2,l=35,d=64,lse=1",
            "attention:f16:b=1,h=6,hk=3,lq=1,lk=77,d=128,lse=1",
            "attention:bf16:b=1,h=40,hk=1,lq=1,lk=300,d=96",
            "attention:f16:b=1,h=4,hk=1,lq=9,lk=700,d=128,mask=causal-br,lse=1",
            "attention:bf16:b=1,h=8,hk=1,lq=3,lk=900,d=256,mask=causal-br,lse=1",
            "attention:f16:b=1,h=2,lq=1,lk=1,d=8",
            "attention:bf16:b=2,h=2,l=35,d=72,dv=136,layout=blhd,lse=1",
            "attention:f16:b=2,h=2,lq=5,lk=600,d=40,mask=bool,lse=1",
            "attention:bf16:b=3,h=2,l=35,d=24,mask=padding,lse=1",
            "attention:f16:b=2,h=2,l=35,d=24,mask=causal;additive",
            "attention:bf16:b=1,h=2,l=35,d=24,mask=additive,mdtype=f32",
            "attention:bf16:b=1,h=2,lq=4,lk=1000,d=64,mask=window:300;0,lse=1",
            "attention:f16:b=2,h=2,lq=13,lk=70,d=16,mask=window-tl:-1;7,shift=5",
            "attention:f16:b=1,h=2,l=35,d=24,softcap=5,scale=0.5",
            "attention:bf16:b=1,h=4,hk=1,lq=2,lk=600,d=80,sink=1,lse=1",
            "attention:bf16:b=1,h=2,l=35,d=24,out=f32,sink=f32",
            "attention:bf16:h=2,varlen=33;5,varlenk=40;170,d=24,layout=blhd",
            "attention:f16:h=2,varlen=3;0;1;20,d=64,mask=causal-br,lse=1",
            "attention:bf16:b=3,h=8,hk=2,lq=1,lk=1350,d=64,used=1,lse=1",
            "attention:bf16:b=3,h=4,hk=2,lq=3,lk=1100,d=64,page=16,mask=causal-br",
            "attention:f16:b=2,h=4,hk=2,lq=1,lk=700,d=192,dv=128,page=64,pool=60,lse=1",
            "attention:bf16:b=1,h=3,lq=2,lk=530,d=24,scale=-0.3,sq=144;48;24;1");
}

/* Values under excluded keys are NaN or infinite, in tiles that other rows see. */
static void nonfinite_values_of_a_step(void **state)
{
    static const char *const problems[] = {
        "attention:bf16:b=1,h=4,hk=1,lq=9,lk=700,d=128,mask=causal-br,lse=1@hostcuda:0",
        "attention:f16:b=2,h=2,lq=5,lk=600,d=40,mask=bool,lse=1@hostcuda:0",
        "attention:bf16:b=1,h=2,lq=40,lk=300,d=64,mask=window:30;0,lse=1@hostcuda:0",
        "attention:bf16:b=3,h=8,hk=2,lq=1,lk=350,d=64,used=1,lse=1@hostcuda:0"};
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        if (test_sampled(__LINE__ + i, 4))
            check_with(problems[i], "hostcuda.attention.decode", TN_CHECK_NONFINITE);
    }
}

/* Lists and masks of blocks that are smaller than a tile, of several tiles and of no whole number of them; blocks and keys that
 * do not exist, rows without keys; every bound, both layouts, strides. */
static void attention_of_listed_blocks(void **state)
{
    (void)state;
    HOLD("attention-sparse:f32:b=2,h=2,l=150,d=40,bq=40,bk=24,entries=40,lse=1",
         "attention-sparse:f32:b=1,h=2,lq=70,lk=300,d=64,bq=64,bk=128,lse=1",
         "attention-sparse:f32:b=2,h=4,hk=2,l=90,d=24,bq=16,bk=10,sizes=1,entries=60,mask=causal",
         "attention-sparse:f32:b=1,h=2,lq=33,lk=90,d=41,bq=70,bk=64,mask=causal-br,layout=blhd",
         "attention-sparse:f32:b=1,h=2,l=100,d=16,bq=1,bk=1,mask=window:30;10,entries=900,lse=1",
         "attention-sparse:f64:b=1,h=2,l=80,d=24,bq=50,bk=30,sizes=1,lse=1",
         "attention-sparse:bf16:b=1,h=2,l=80,d=33,bq=32,entries=6,sq=5360;2680;33;1",
         "attention-sparse:f16:b=2,h=2,l=80,d=24,dv=72,bq=48,bk=32,out=f32,sv=11520;5760;72;-1",
         "attention-sparse:f32:b=2,h=2,lq=9,lk=0,d=8,bq=4,lse=1",
         "attention-sparse:f32:b=2,h=2,l=35,d=24,bq=7,entries=13,sstarts=0;0;1",
         "attention-sparse:f32:b=2,h=1,l=64,d=64,bq=32,sizes=1,ssizes=0;1",
         "attention-sparse:f32:b=1,h=1,l=1,d=1,bq=1000000,bk=99999999999");
}

/* The same on tensor cores: tiles of 64 and of 128 rows, heads that are read in one way and in the other. */
static void attention_of_listed_blocks_on_tensor_cores(void **state)
{
    (void)state;
    HOLD_BY("mma",

            "attention-sparse:bf16:b=1,h=4,hk=2,lq=200,lk=330,d=64,bq=128,bk=48,entries=25,lse=1",
            "attention-sparse:f16:b=2,h=2,l=150,d=128,bq=64,sizes=1,entries=12,lse=1",
            "attention-sparse:bf16:b=1,h=2,l=260,d=128,bq=128,bk=64,mask=causal,lse=1",
            "attention-sparse:bf16:b=1,h=2,l=130,d=40,bq=24,bk=10,entries=60,mask=causal-br",
            "attention-sparse:f16:b=1,h=2,lq=70,lk=190,d=72,bq=100,bk=33,mask=window:50;9,lse=1",
            "attention-sparse:bf16:b=1,h=1,lq=90,lk=150,d=256,bq=96,bk=40,entries=6",
            "attention-sparse:f16:b=1,h=1,l=70,d=192,dv=128,bq=64,bk=30,mask=causal,lse=1",
            "attention-sparse:bf16:b=2,h=2,l=100,d=24,bq=16,bk=1,sizes=1,layout=blhd,out=f32",
            "attention-sparse:f16:b=1,h=1,l=1,d=8,bq=1",
            "attention-sparse:bf16:b=1,h=2,l=70,d=24,bq=32,scale=-0.3,entries=5,lse=1",
            "attention-sparse:bf16:b=1,h=2,l=80,d=16,bq=32,so=2560;1280;16;-1,entries=4",
            "attention-sparse:bf16:b=2,h=2,l=40,d=48,dv=72,bq=1000000,bk=99999999999,lse=1");
}

/* Values of excluded keys are NaN or infinite, in tiles that other rows see. */
static void nonfinite_values_of_listed_blocks(void **state)
{
    static const char *const problems[] = {
        "attention-sparse:bf16:b=1,h=2,l=200,d=64,bq=128,bk=48,entries=14,mask=causal,lse=1",
        "attention-sparse:f16:b=1,h=2,l=150,d=128,bq=64,sizes=1,entries=10",
        "attention-sparse:bf16:b=1,h=2,lq=70,lk=190,d=24,bq=48,bk=10,mask=window:30;0,lse=1"};
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        char problem[160];
        snprintf(problem, sizeof problem, "%s@hostcuda:0", problems[i]);
        if (!test_sampled(__LINE__ + i, 4))
            continue;
        check_with(problem, "hostcuda.attention-sparse.mma", TN_CHECK_NONFINITE);
        check_with(problem, "hostcuda.attention-sparse.own", TN_CHECK_NONFINITE);
    }
}

enum { WIDE = 16 }; /* the size of heads of direct calls */

/* Tables of a call: lists of two blocks of queries over four blocks of keys, the last of which is shorter. */
typedef struct sparse_tables {
    int64_t entries;
    int32_t starts[3], blocks[6], sizes[4];
} sparse_tables;

static void attend_listed(sparse_tables *tables, uint16_t *numbers, uint16_t *out)
{
    enum { QUERIES = 20, LAST = 45, BLOCK_QUERIES = 10, BLOCK_KEYS = 12, COUNT = 7 };
    const int64_t q[] = {1, 1, QUERIES, WIDE}, k[] = {1, 1, LAST, WIDE}, starts[] = {3},
                  sizes[] = {4};
    const struct {
        void *data;
        tn_dtype dtype;
        const int64_t *shape;
        int32_t rank;
    } of[COUNT] = {{numbers, TN_BF16, q, 4},
                   {numbers, TN_BF16, k, 4},
                   {numbers, TN_BF16, k, 4},
                   {out, TN_BF16, q, 4},
                   {tables->starts, TN_I32, starts, 1},
                   {tables->blocks, TN_I32, &tables->entries, 1},
                   {tables->sizes, TN_I32, sizes, 1}};
    tn_tensor to[COUNT];
    tn_device *device;
    tn_error err;
    assert_int_equal(tn_device_get("hostcuda:0", &device, &err), TN_OK);
    for (int i = 0; i < COUNT; i++) {
        if (tn_tensor_wrap(device, of[i].data, of[i].dtype, of[i].shape, NULL, of[i].rank, NULL,
                           NULL, &to[i], &err))
            fail_msg("%s", err.message);
    }
    if (tn_attention_sparse(NULL,
                            TN_ARGS(attention_sparse, .q = &to[0], .k = &to[1], .v = &to[2],
                                    .out = &to[3], .starts = &to[4], .blocks = &to[5],
                                    .block_sizes = &to[6], .block_queries = BLOCK_QUERIES,
                                    .block_keys = BLOCK_KEYS),
                            &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < COUNT; i++)
        tn_tensor_release(&to[i]);
}

/* A device's tables are not checked: starts and sizes are clamped, entries that are no block are ignored. */
static void wrong_lists_read_nothing_outside(void **state)
{
    enum { NUMBERS = 45 * WIDE, RESULTS = 20 * WIDE };
    static _Alignas(64) uint16_t numbers[NUMBERS], good[RESULTS], bad[RESULTS];
    static const char *const rules[] = {"rules=require:hostcuda.attention-sparse.mma",
                                        "rules=require:hostcuda.attention-sparse.own"};
    sparse_tables right = {4, {0, 3, 4}, {0, 1, 3, 2}, {12, 0, 5, 9}};
    sparse_tables wrong = {
        6, {-7, 5, INT32_MAX}, {0, -1, 1, INT32_MAX, 3, 2}, {99, INT32_MIN, 5, INT32_MAX}};
    (void)state;
    begin();
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = (uint16_t)(0x3F00 + (i * 7919) % 256);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tn_settings_set(rules[i], NULL), TN_OK);
        attend_listed(&right, numbers, good);
        attend_listed(&wrong, numbers, bad);
        assert_memory_equal(good, bad, sizeof good);
    }
    assert_int_equal(tn_settings_set("rules=", NULL), TN_OK);
}

/* By one kernel at any size, keys in parts of their own. */
static void attention_in_any_batch(void **state)
{
    (void)state;
    begin();
    hold_by("attention:f32:b=1,h=2,l=35,d=64,lse=1", "own.invariant");
    hold_by("attention:bf16:b=1,h=2,lq=26,lk=30,d=24,mask=causal-br,lse=1", "own.invariant");
    hold_by("attention:f32:b=1,h=1,lq=2,lk=2100,d=16,lse=1", "own.invariant");
}

/* Attention of f32 with heads of WIDE, over the first of `keys`. */
enum { KEYS = 2100 };

static tn_status attend(tn_device *device, float *of[4], int64_t sequences, int64_t queries,
                        int64_t keys, int64_t heads, tn_error *err)
{
    const int64_t q[] = {sequences, heads, queries, WIDE}, k[] = {sequences, heads, keys, WIDE};
    const int64_t apart[] = {heads * KEYS * WIDE, KEYS * WIDE, WIDE, 1};
    tn_tensor to[4] = {{0}};
    tn_status status = TN_OK;
    for (int i = 0; i < 4 && !status; i++) {
        const bool of_keys = i == 1 || i == 2;
        status = tn_tensor_wrap(device, of[i], TN_F32, of_keys ? k : q, of_keys ? apart : NULL, 4,
                                NULL, NULL, &to[i], err);
    }
    if (!status)
        status = tn_attention(
            NULL, TN_ARGS(attention, .q = &to[0], .k = &to[1], .v = &to[2], .out = &to[3]), err);
    for (int i = 0; i < 4; i++)
        tn_tensor_release(&to[i]);
    return status;
}

static void fill_with_waves(float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)((i * 7919) % 1009) * 0.002f - 1;
}

/* The device, and what is attended to. */
static tn_device *begin_attention(float *q, int64_t of_q, float *k, int64_t of_k)
{
    tn_device *device;
    tn_error err;
    begin();
    fill_with_waves(q, of_q);
    fill_with_waves(k, of_k);
    assert_int_equal(tn_device_get("hostcuda:0", &device, &err), TN_OK);
    return device;
}

static void one_plan_serves_every_length(void **state)
{
    enum { HEADS = 2 };
    static _Alignas(64) float q[HEADS * 3 * WIDE], k[HEADS * KEYS * WIDE], out[HEADS * 3 * WIDE];
    float *of[] = {q, k, k, out};
    tn_device *device = begin_attention(q, sizeof q / sizeof *q, k, sizeof k / sizeof *k);
    tn_error err;
    (void)state;
    assert_int_equal(attend(device, of, 1, 1, 40, 1, &err), TN_OK);
    assert_int_equal(tn_settings_set("plan.only_prepared=true", &err), TN_OK);
    for (int64_t keys = 41; keys < KEYS; keys += 411)
        assert_int_equal(attend(device, of, 1, keys % 3 + 1, keys, HEADS, &err), TN_OK);
    assert_int_equal(tn_settings_set("plan.only_prepared=false", &err), TN_OK);
}

/* Alone and among others, by the row that promises it: the same bits. */
static void a_sequence_does_not_depend_on_others(void **state)
{
    enum { BATCH = 3, HEADS = 2, QUERIES = 3, EACH = HEADS * QUERIES * WIDE };
    static _Alignas(64) float q[BATCH * EACH], k[BATCH * HEADS * KEYS * WIDE], all[BATCH * EACH],
        one[EACH];
    tn_device *device = begin_attention(q, sizeof q / sizeof *q, k, sizeof k / sizeof *k);
    tn_error err;
    (void)state;
    assert_int_equal(tn_settings_set("determinism=batch-invariant", &err), TN_OK);
    assert_int_equal(attend(device, (float *[]){q, k, k, all}, BATCH, QUERIES, KEYS, HEADS, &err),
                     TN_OK);
    for (int64_t b = 0; b < BATCH; b++) {
        float *keys = k + b * HEADS * KEYS * WIDE;
        float *of[] = {q + b * EACH, keys, keys, one};
        assert_int_equal(attend(device, of, 1, QUERIES, KEYS, HEADS, &err), TN_OK);
        assert_memory_equal(one, all + b * EACH, sizeof one);
    }
    assert_int_equal(tn_settings_set("determinism=any", &err), TN_OK);
}

/* q, k, v, out, dout, lse, and dq, dk, dv of so many sequences; each of them `ROWS_EACH` rows but for lse. */
enum { GRADIENTS = 9, ROWS_EACH = 70, LSE_AT = 5 };

static tn_status lead_back(tn_device *device, float *of[GRADIENTS], int64_t sequences,
                           tn_error *err)
{
    const int64_t all[] = {sequences, 1, ROWS_EACH, WIDE};
    tn_tensor to[GRADIENTS] = {{0}};
    tn_status status = TN_OK;
    for (int i = 0; i < GRADIENTS && !status; i++)
        status = tn_tensor_wrap(device, of[i], TN_F32, all, NULL, i == LSE_AT ? 3 : 4, NULL, NULL,
                                &to[i], err);
    if (!status)
        status = tn_attention(NULL,
                              TN_ARGS(attention, .q = &to[0], .k = &to[1], .v = &to[2],
                                      .out = &to[3], .lse = &to[LSE_AT]),
                              err);
    if (!status)
        status = tn_attention_backward(
            NULL,
            TN_ARGS(attention_backward, .q = &to[0], .k = &to[1], .v = &to[2], .out = &to[3],
                    .dout = &to[4], .lse = &to[LSE_AT], .dq = &to[6], .dk = &to[7], .dv = &to[8]),
            err);
    for (int i = 0; i < GRADIENTS; i++)
        tn_tensor_release(&to[i]);
    return status;
}

static void gradients_do_not_depend_on_others(void **state)
{
    enum { BATCH = 3, EACH = ROWS_EACH * WIDE };
    static _Alignas(64) float all[GRADIENTS][BATCH * EACH], one[GRADIENTS][EACH];
    float *of[GRADIENTS], *of_one[GRADIENTS];
    tn_device *device = begin_attention(all[0], BATCH * EACH, all[1], BATCH * EACH);
    tn_error err;
    (void)state;
    memcpy(all[2], all[1], sizeof all[2]);
    memcpy(all[4], all[0], sizeof all[4]);
    for (int i = 0; i < GRADIENTS; i++)
        of[i] = all[i];
    assert_int_equal(tn_settings_set("determinism=batch-invariant", &err), TN_OK);
    assert_int_equal(lead_back(device, of, BATCH, &err), TN_OK);
    for (int64_t b = 0; b < BATCH; b++) {
        for (int i = 0; i < GRADIENTS; i++)
            of_one[i] = i < 3 || i == 4 ? all[i] + b * EACH : one[i];
        assert_int_equal(lead_back(device, of_one, 1, &err), TN_OK);
        for (int i = 6; i < GRADIENTS; i++)
            assert_memory_equal(one[i], all[i] + b * EACH, sizeof one[i]);
    }
    assert_int_equal(tn_settings_set("determinism=any", &err), TN_OK);
}

/* Attention of f32 with NaN and infinity in K and V, on one device: q, k, v, bias, sinks, dout; out, lse, dq, dk, dv. */
enum { ODD_Q, ODD_K, ODD_V, ODD_BIAS, ODD_SINKS, ODD_DOUT, ODD_INPUTS };
enum { ODD_OUT = ODD_INPUTS, ODD_LSE, ODD_DQ, ODD_DK, ODD_DV, ODD_OPERANDS };
enum { ODD_MOST = 45 * 100 * WIDE };
typedef float odd_numbers[ODD_OPERANDS][ODD_MOST];

typedef struct odd_case {
    int64_t heads, queries, keys;
    int32_t mask;
    bool bias, sinks, back;
    double softcap, dropout;
} odd_case;

static void wrap_odd(tn_device *device, const odd_case *c, odd_numbers numbers, tn_tensor *to)
{
    const int64_t q[] = {1, c->heads, c->queries, WIDE}, k[] = {1, c->heads, c->keys, WIDE};
    const int64_t bias[] = {1, c->heads, c->queries, c->keys};
    const int64_t *const shapes[] = {q, k, k, bias, &c->heads, q, q, q, q, k, k};
    tn_error err;
    for (int i = 0; i < ODD_OPERANDS; i++) {
        const int32_t rank = i == ODD_SINKS ? 1 : i == ODD_LSE ? 3 : 4;
        if (tn_tensor_wrap(device, numbers[i], TN_F32, shapes[i], NULL, rank, NULL, NULL, &to[i],
                           &err))
            fail_msg("%s", err.message);
    }
}

static void compute_odd(const char *name, const odd_case *c, odd_numbers numbers)
{
    const int64_t left = c->mask == TN_MASK_WINDOW ? 5 : 0, right = left ? 3 : 0;
    tn_tensor to[ODD_OPERANDS] = {{0}};
    tn_device *device;
    tn_error err;
    assert_int_equal(tn_device_get(name, &device, &err), TN_OK);
    wrap_odd(device, c, numbers, to);
    tn_status status = tn_attention(
        NULL,
        TN_ARGS(attention, .q = &to[ODD_Q], .k = &to[ODD_K], .v = &to[ODD_V], .out = &to[ODD_OUT],
                .lse = &to[ODD_LSE], .mask_tensor = c->bias ? &to[ODD_BIAS] : NULL,
                .sinks = c->sinks ? &to[ODD_SINKS] : NULL, .mask = c->mask, .window_left = left,
                .window_right = right, .softcap = c->softcap, .dropout = c->dropout, .seed = 5),
        &err);
    if (!status && c->back)
        status = tn_attention_backward(
            NULL,
            TN_ARGS(attention_backward, .q = &to[ODD_Q], .k = &to[ODD_K], .v = &to[ODD_V],
                    .out = &to[ODD_OUT], .lse = &to[ODD_LSE],
                    .mask_tensor = c->bias ? &to[ODD_BIAS] : NULL, .dout = &to[ODD_DOUT],
                    .dq = &to[ODD_DQ], .dk = &to[ODD_DK], .dv = &to[ODD_DV], .mask = c->mask,
                    .window_left = left, .window_right = right, .softcap = c->softcap,
                    .dropout = c->dropout, .seed = 5),
            &err);
    if (status)
        fail_msg("%s: %s", name, err.message);
    for (int i = 0; i < ODD_OPERANDS; i++)
        tn_tensor_release(&to[i]);
}

/* Of each head one key has `value` in V and another one in K; of a bias every fourth is -infinity, and key 1 has one
 * that makes its weight underflow. */
static void fill_odd(const odd_case *c, float value, odd_numbers numbers)
{
    for (int i = 0; i < ODD_INPUTS; i++)
        fill_with_waves(numbers[i], ODD_MOST);
    for (int64_t h = 0; h < c->heads; h++) {
        float *v = numbers[ODD_V] + (h * c->keys + (h * 7 + 1) % c->keys) * WIDE;
        float *k = numbers[ODD_K] + (h * c->keys + (h * 11 + c->keys / 2) % c->keys) * WIDE;
        v[h % WIDE] = value;
        if (h % 2)
            k[h % WIDE] = value;
    }
    for (int64_t n = 0; n < ODD_MOST; n++)
        numbers[ODD_BIAS][n] = n % c->keys == 1 ? -1e4F : n % 4 ? 0 : -INFINITY;
    numbers[ODD_DOUT][3] = value;
}

/* Every result is a number, an infinity or a NaN where the processor's is. */
static void hold_odd(const odd_case *c, float value)
{
    static _Alignas(64) odd_numbers found, want;
    const int last = c->back ? ODD_OPERANDS : ODD_DQ;
    fill_odd(c, value, found);
    memcpy(want, found, sizeof want);
    compute_odd("hostcuda:0", c, found);
    compute_odd("cpu:0", c, want);
    for (int i = ODD_OUT; i < last; i++) {
        const bool of_keys = i == ODD_DK || i == ODD_DV;
        int64_t count = c->heads * (of_keys ? c->keys : c->queries) * (i == ODD_LSE ? 1 : WIDE);
        for (int64_t e = 0; e < count; e++) {
            const float x = found[i][e], y = want[i][e];
            if (isnan(y) ? !isnan(x) : isinf(y) ? x != y : !isfinite(x))
                fail_msg("operand %d, element %lld: %g, on the processor %g", i, (long long)e,
                         (double)x, (double)y);
        }
    }
}

static void nan_and_infinity_stay_with_those_who_see_them(void **state)
{
    static const odd_case cases[] = {{2, 20, 40, TN_MASK_CAUSAL, .bias = false},
                                     {2, 1, 40, TN_MASK_NONE, .bias = false},
                                     {2, 3, 2100, TN_MASK_CAUSAL_BR, .bias = false},
                                     {2, 3, 2100, TN_MASK_NONE, .sinks = true},
                                     {45, 26, 60, TN_MASK_CAUSAL, .bias = false},
                                     {45, 26, 60, TN_MASK_WINDOW, .bias = false},
                                     {45, 26, 30, TN_MASK_NONE, .bias = true, .sinks = true},
                                     {2, 20, 40, TN_MASK_CAUSAL_BR, .bias = true, .softcap = 3},
                                     {2, 20, 40, TN_MASK_CAUSAL, .dropout = 0.5},
                                     {45, 26, 60, TN_MASK_CAUSAL_BR, .dropout = 0.5},
                                     {2, 70, 90, TN_MASK_CAUSAL, .back = true},
                                     {2, 70, 90, TN_MASK_WINDOW, .back = true},
                                     {2, 70, 90, TN_MASK_NONE, .bias = true, .back = true},
                                     {2, 70, 90, TN_MASK_CAUSAL, .dropout = 0.5, .back = true},
                                     {1, 90, 70, TN_MASK_CAUSAL_BR, .softcap = 2, .back = true}};
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!test_sampled(__LINE__ + i, 5))
            continue;
        hold_odd(&cases[i], NAN);
        if (!cases[i].bias) /* where weights underflow it is the one or the other */
            hold_odd(&cases[i], INFINITY);
        if (cases[i].back)
            continue;
        assert_int_equal(tn_settings_set("rules=forbid:hostcuda.attention.own,"
                                         "forbid:hostcuda.attention.own.invariant",
                                         NULL),
                         TN_OK);
        hold_odd(&cases[i], NAN);
        assert_int_equal(tn_settings_set("rules=", NULL), TN_OK);
    }
}

static void hold_random(int kind, const char *type, tn_dtype dtype)
{
    enum { COUNT = 10007, ROOM = COUNT * 8 };
    static char found[ROOM], expected[ROOM];
    const tn_generator_state state = {
        .struct_size = sizeof state, .seed = 0x123456789ABCDEF, .subsequence = 77, .offset = 1000};
    cuda_random_args args = {.out = found,
                             .elements = COUNT,
                             .seed = state.seed,
                             .subsequence = state.subsequence,
                             .block = state.offset};
    char options[CUDA_RANDOM_OPTIONS_ROOM];
    tn_generator *generator = NULL;
    cuda_kernel *kernel = NULL;
    tn_error err;
    memset(found, 0xA5, ROOM);
    memset(expected, 0xA5, ROOM);
    snprintf(options, sizeof options, CUDA_RANDOM_OPTIONS, type, kind, cuda_index_of(COUNT));
    const cuda_case wanted = {&cuda_random_unit, "random_blocks", options};
    if (cuda_kernel_get(NULL, NULL, 0, &wanted, &kernel, &err) ||
        tn_generator_create(1, &generator, &err) ||
        tn_generator_state_set(generator, &state, &err) ||
        (kind == 1 ? tn_random_fill_uniform : tn_random_fill_normal)(generator, dtype, expected,
                                                                     COUNT, &err))
        fail_msg("%s", err.message);
    kernel->run(&args, 3, 256);
    assert_memory_equal(found, expected, ROOM);
    tn_generator_release(generator);
}

static void random_numbers_have_the_processors_bits(void **state)
{
    (void)state;
    begin();
    for (int kind = 1; kind <= 2; kind++) {
        hold_random(kind, "f32", TN_F32);
        hold_random(kind, "f64", TN_F64);
        hold_random(kind, "f16", TN_F16);
        hold_random(kind, "bf16", TN_BF16);
    }
}

/* Whatever the number of weights, and also where a number is exactly the bound. */
static void dropout_keeps_what_the_processors_does(void **state)
{
    enum { BATCH = 2, HEADS = 3, QUERIES = 7, LAST = 31, COUNT = BATCH * HEADS * QUERIES * LAST };
    static const double bounds[] = {0.25, 1.0 / 3, 0x1p-24, 1 - 0x1p-24, 0x1.8p-20};
    static _Alignas(8) uint16_t found[COUNT + 4];
    cuda_kernel *kernel = NULL;
    tn_error err;
    (void)state;
    begin();
    if (cuda_kernel_get(NULL, NULL, 0, &cuda_dropout_case, &kernel, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        const tn_attention_op at = {.heads = HEADS,
                                    .queries = QUERIES,
                                    .keys = LAST,
                                    .dropout = bounds[i],
                                    .seed = 0x123456789ABCDEF,
                                    .offset = UINT64_MAX - 2};
        cuda_dropout_args args = cuda_dropout_args_of(&at, found, COUNT, 0x3C00);
        memset(found, 0xA5, sizeof found);
        kernel->run(&args, 3, 256);
        for (int k = 0; k < COUNT; k++)
            assert_int_equal(found[k], tn_attention_keeps(&at, 0, 0, 0, k) ? 0x3C00 : 0);
        assert_int_equal(found[COUNT], 0xA5A5);
    }
}

/* Two sequences of three have no keys, one by what lies between its starts and one by its length. What the other has is
 * not touched. */
static void empties(cuda_kernel *kernel, bool packed)
{
    enum { BATCH = 3, HEADS = 2, QUERIES = 2, SIZE = 5, ALL = BATCH * QUERIES };
    static const int starts_q[] = {0, 1, 3, 6}, starts_k[] = {0, 4, 4, 9}, lengths[] = {3, 7, 0};
    static const float sinks[] = {0.5F, -2};
    const long long high = packed ? ALL : QUERIES;
    uint16_t out[HEADS * ALL * SIZE];
    float lse[HEADS * ALL];
    memset(out, 0xA5, sizeof out);
    for (int i = 0; i < HEADS * ALL; i++)
        lse[i] = 9;
    const cuda_attention_args args = {.out = out,
                                      .lse = lse,
                                      .sinks = sinks,
                                      .sinks_kind = packed ? 2 : 0,
                                      .sinks_stride = 1,
                                      .starts_q = {packed ? starts_q : NULL, 1},
                                      .starts_k = {starts_k, 1},
                                      .lengths = {lengths, 1},
                                      .out_stride = {HEADS * high * SIZE, high * SIZE, SIZE, 1},
                                      .lse_stride = {HEADS * high, high, 1},
                                      .all_queries = ALL,
                                      .all_keys = 9,
                                      .batch = BATCH,
                                      .heads = HEADS,
                                      .queries = packed ? 3 : QUERIES,
                                      .keys = 9,
                                      .value_size = SIZE,
                                      .kept = 1};
    kernel->run(&args, 2, 256);
    for (int row = 0; row < HEADS * ALL; row++) {
        const bool kept = packed ? row % ALL < starts_q[1] : row < HEADS * QUERIES;
        const float empty = packed ? sinks[row / ALL] : -INFINITY;
        assert_true(lse[row] == (kept ? 9 : empty));
        for (int e = 0; e < SIZE; e++)
            assert_int_equal(out[row * SIZE + e], kept ? 0xA5A5 : 0);
    }
}

static void sequences_without_keys(void **state)
{
    const tn_layout operand = {.dtype = TN_BF16};
    const tn_op op = {.operand = {operand, operand, operand, operand}};
    char options[CUDA_ATTENTION_OPTIONS];
    cuda_case wanted;
    cuda_kernel *kernel = NULL;
    tn_error err;
    (void)state;
    begin();
    cuda_attention_empty_case(&op, options, &wanted);
    if (cuda_kernel_get(NULL, NULL, 0, &wanted, &kernel, &err))
        fail_msg("%s", err.message);
    empties(kernel, false);
    empties(kernel, true);
}

/* Checks a row with the smoke problems of its operator, of every dtype the first and a sample. */
static void check_smoke(const tn_kernel_row *row, const char *name)
{
    size_t checked = 0;
    for (const tn_dtype *dtype = row->dtypes; *dtype; dtype++) {
        bool first = true;
        for (size_t i = 0; i < tni_smoke_count(row->op); i++) {
            tn_op op;
            tni_buffer text = {0};
            if ((!first && !test_sampled(checked + i, 40)) ||
                !make_row_problem(row, i, *dtype, &op))
                continue;
            tni_problem_write(&op, "hostcuda:0", &text);
            assert_false(text.failed);
            check_by(tni_buffer_text(&text), name);
            tni_buffer_release(&text);
            first = false;
            checked++;
        }
    }
    if (!checked)
        fail_msg("%s supports none of the smoke problems of its operator", row->name);
}

/* Rows that no list above has a problem for. */
static void every_row_is_checked(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < ROWS; i++) {
        if (!held[i] && own[i] != &cuda_hopper_row && own[i] != &cuda_sparse_hopper_row)
            check_smoke(own[i], names[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements),
        cmocka_unit_test(casts_and_fills),
        cmocka_unit_test(permutes),
        cmocka_unit_test(reductions),
        cmocka_unit_test(rows_of_every_length),
        cmocka_unit_test(products),
        cmocka_unit_test(products_of_i8),
        cmocka_unit_test(what_follows_a_librarys_product),
        cmocka_unit_test(a_bias_follows_complex_products),
        cmocka_unit_test(misaligned_operands_are_copied),
        cmocka_unit_test(a_row_does_not_depend_on_others),
        cmocka_unit_test(attention_of_few_rows),
        cmocka_unit_test(attention_of_many_rows),
        cmocka_unit_test(attention_by_two_products),
        cmocka_unit_test(attention_by_two_products_with_narrow_scores),
        cmocka_unit_test(attention_of_a_step),
        cmocka_unit_test(nonfinite_values_of_a_step),
        cmocka_unit_test(gradients_of_attention),
        cmocka_unit_test(gradients_on_tensor_cores),
        cmocka_unit_test(nonfinite_gradients),
        cmocka_unit_test(gradients_on_hopper),
        cmocka_unit_test(nonfinite_gradients_on_hopper),
        cmocka_unit_test(transforms_with_copied_operands),
        cmocka_unit_test(attention_of_listed_blocks),
        cmocka_unit_test(attention_of_listed_blocks_on_tensor_cores),
        cmocka_unit_test(nonfinite_values_of_listed_blocks),
        cmocka_unit_test(wrong_lists_read_nothing_outside),
        cmocka_unit_test(attention_in_any_batch),
        cmocka_unit_test(one_plan_serves_every_length),
        cmocka_unit_test(a_sequence_does_not_depend_on_others),
        cmocka_unit_test(gradients_do_not_depend_on_others),
        cmocka_unit_test(nan_and_infinity_stay_with_those_who_see_them),
        cmocka_unit_test(random_numbers_have_the_processors_bits),
        cmocka_unit_test(dropout_keeps_what_the_processors_does),
        cmocka_unit_test(sequences_without_keys),
        cmocka_unit_test(every_row_is_checked), /* last: it needs to know what was checked */
    };
    scratch_make(folder);
    int failed = run_suite("cuda.numbers", tests);
    scratch_remove(folder);
    return failed;
}
