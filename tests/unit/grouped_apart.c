/* Products at once whose memory is not apart: which are refused, and which only look so. */
#include "toy.h"

enum { PRODUCTS = 3, SIDE = 4, WIDE = 16, MANY = 300, ROOM = 512 };

/* Matrices of SIDE times SIDE, in places of a parent's memory. */
typedef struct view {
    tn_tensor tensor;
    int64_t shape[2], strides[2];
} view;
typedef struct product {
    view a, b, out, bias;
    tn_matmul_args args;
} product;
static product products[PRODUCTS];
static const tn_matmul_args *groups[PRODUCTS];
static tn_tensor room;
static tn_error err;

static void put(view *to, int64_t first, int64_t pitch, int64_t columns)
{
    to->tensor = room;
    to->tensor.byte_offset = (uint64_t)first * sizeof(float);
    to->tensor.ndim = 2;
    to->shape[0] = SIDE, to->shape[1] = columns;
    to->strides[0] = pitch, to->strides[1] = 1;
    to->tensor.shape = to->shape;
    to->tensor.strides = to->strides;
}

/* All dense and apart, one behind the other. */
static void make(void)
{
    enum { ALL = 3 * PRODUCTS * SIDE };
    tn_tensor_release(&room);
    room = toy_tensor(toy_device(), TN_F32, WIDE * ALL, SIDE, 1);
    for (int i = 0; i < PRODUCTS; i++) {
        product *p = &products[i];
        const int64_t at = (int64_t)3 * i * SIDE * SIDE;
        put(&p->a, at, SIDE, SIDE);
        put(&p->b, at + SIDE * SIDE, SIDE, SIDE);
        put(&p->out, at + 2 * SIDE * SIDE, SIDE, SIDE);
        p->args = (tn_matmul_args){.struct_size = sizeof p->args,
                                   .a = &p->a.tensor,
                                   .b = &p->b.tensor,
                                   .out = &p->out.tensor};
        groups[i] = &p->args;
    }
    toy.runs = 0;
}

static void assert_refused(const char *words)
{
    assert_int_equal(tn_matmul_grouped(NULL, groups, PRODUCTS, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, words);
    assert_string_equal(err.where, "tn_matmul_grouped");
    assert_int_equal(toy.runs, 0);
    make();
}

static void assert_taken(void)
{
    assert_int_equal(tn_matmul_grouped(NULL, groups, PRODUCTS, &err), TN_OK);
    assert_int_equal(toy.runs, PRODUCTS);
    make();
}

static void two_that_write_one_byte(void **state)
{
    (void)state;
    make();
    products[2].args.out = &products[0].out.tensor;
    assert_refused("groups[2]: out shares memory with out of groups[0], which is written too");
    products[1].out.tensor.byte_offset =
        products[2].out.tensor.byte_offset + (SIDE * SIDE - 1) * sizeof(float);
    assert_refused("groups[2]: out shares memory with out of groups[1], which is written too");
}

static void one_that_writes_what_another_reads(void **state)
{
    (void)state;
    make();
    products[1].args.a = &products[0].out.tensor;
    assert_refused(
        "groups[1]: a shares memory with out of groups[0], which is written while it is read");
    products[2].args.out = &products[0].b.tensor;
    assert_refused(
        "groups[2]: out shares memory with b of groups[0], which is read while it is written");
    put(&products[0].bias, 9 * SIDE * SIDE - 1, SIDE, SIDE); /* the last of that out */
    products[0].args.bias = &products[0].bias.tensor;
    assert_refused(
        "groups[2]: out shares memory with bias of groups[0], which is read while it is written");
}

static void what_is_read_may_be_one(void **state)
{
    (void)state;
    make();
    assert_taken();
    for (int i = 0; i < PRODUCTS; i++)
        products[i].args.a = &products[0].a.tensor, products[i].args.b = &products[0].a.tensor;
    assert_taken();
}

/* Columns of one matrix: each is within the other's reach. */
static void columns_of_one_matrix(void **state)
{
    const int64_t at = (int64_t)3 * PRODUCTS * SIDE * SIDE;
    (void)state;
    make();
    for (int i = 0; i < PRODUCTS; i++)
        put(&products[i].out, at + (int64_t)i * SIDE, WIDE, SIDE);
    assert_taken();
    for (int i = 0; i < PRODUCTS; i++)
        put(&products[i].out, at + (int64_t)i * SIDE, WIDE, SIDE);
    products[1].out.tensor.byte_offset -= sizeof(float);
    assert_refused("groups[1]: out shares memory with out of groups[0], which is written too");
    put(&products[1].out, at, WIDE, SIDE);
    put(&products[0].b, at + SIDE, WIDE, SIDE);
    assert_taken();
    put(&products[1].out, at, WIDE, SIDE);
    put(&products[0].b, at + SIDE - 1, WIDE, SIDE);
    assert_refused(
        "groups[1]: out shares memory with b of groups[0], which is read while it is written");
}

/* One without rows touches nothing, wherever it is. */
static void without_elements(void **state)
{
    (void)state;
    make();
    put(&products[1].out, 2 * SIDE * SIDE, SIDE, SIDE); /* that of the first */
    products[1].a.shape[0] = products[1].out.shape[0] = 0;
    assert_int_equal(tn_matmul_grouped(NULL, groups, PRODUCTS, &err), TN_OK);
    assert_int_equal(toy.runs, PRODUCTS - 1);
}

/* The last of many, as columns of one matrix, over the first. */
static void many(void **state)
{
    static view outs[MANY];
    static tn_matmul_args args[MANY];
    static const tn_matmul_args *list[MANY];
    (void)state;
    make();
    tn_tensor_release(&room);
    room = toy_tensor(toy_device(), TN_F32, SIDE + 8, (int64_t)MANY * SIDE, 1);
    const int64_t pitch = (int64_t)MANY * SIDE;
    put(&products[0].a, SIDE * pitch, SIDE, SIDE);
    put(&products[0].b, SIDE * pitch + SIDE * SIDE, SIDE, SIDE);
    for (int i = 0; i < MANY; i++) {
        put(&outs[i], (int64_t)i * SIDE, pitch, SIDE);
        args[i] = products[0].args;
        args[i].out = &outs[i].tensor;
        list[i] = &args[i];
    }
    assert_int_equal(tn_matmul_grouped(NULL, list, MANY, &err), TN_OK);
    assert_int_equal(toy.runs, MANY);
    args[MANY - 1].out = &outs[7].tensor;
    assert_int_equal(tn_matmul_grouped(NULL, list, MANY, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(
        err.message, "groups[299]: out shares memory with out of groups[7], which is written too");
    assert_int_equal(toy.runs, MANY);
}

/* Places of the room by who has them: bits of products that write there, and that read. */
typedef struct cells {
    unsigned written[ROOM], read[ROOM];
    bool twice; /* a product writes one place several times */
} cells;

static void mark(const view *v, unsigned bit, bool writes, cells *to)
{
    for (int64_t i = 0; i < v->shape[0]; i++) {
        for (int64_t j = 0; j < v->shape[1]; j++) {
            const uint64_t at = v->tensor.byte_offset / sizeof(float) +
                                (uint64_t)(i * v->strides[0] + j * v->strides[1]);
            to->twice = to->twice || (writes && to->written[at] & bit);
            *(writes ? &to->written[at] : &to->read[at]) |= bit;
        }
    }
}

static bool conflict(const cells *c)
{
    for (int i = 0; i < ROOM; i++) {
        const unsigned w = c->written[i];
        if (w & (w - 1) || (w && c->read[i]))
            return true;
    }
    return c->twice;
}

static unsigned draw(unsigned below)
{
    static uint32_t seed = 7;
    seed = seed * 1664525 + 1013904223;
    return (seed >> 16) % below;
}

/* Dense or not, by rows or by columns, somewhere from `first` on. */
static void scatter(view *to, int64_t m, int64_t n, int64_t first, unsigned within)
{
    const bool turned = draw(3) == 0;
    const int64_t pitch = draw(2) ? 12 : (turned ? m : n) + draw(3);
    put(to, first + draw(within), pitch, n);
    to->shape[0] = m;
    to->strides[0] = turned ? 1 : pitch, to->strides[1] = turned ? pitch : 1;
}

/* What every byte says, of layouts at random. */
static void as_every_byte_says(void **state)
{
    enum { ROUNDS = 20000 };
    int64_t refused = 0;
    (void)state;
    make();
    for (int round = 0; round < ROUNDS; round++) {
        cells c = {0};
        const bool mixed = draw(4) == 0;
        for (unsigned i = 0; i < PRODUCTS; i++) {
            product *p = &products[i];
            const int64_t m = 1 + draw(4), n = 1 + draw(4), k = 4;
            scatter(&p->out, m, n, 0, 90);
            scatter(&p->a, m, k, mixed ? 0 : 160, 90);
            scatter(&p->b, k, n, mixed ? 40 : 160, 90);
            mark(&p->out, 1U << i, true, &c);
            mark(&p->a, 1U << i, false, &c);
            mark(&p->b, 1U << i, false, &c);
        }
        const tn_status needed = conflict(&c) ? TN_INVALID_ARGUMENT : TN_OK;
        assert_int_equal(tn_matmul_grouped(NULL, groups, PRODUCTS, &err), needed);
        refused += needed != TN_OK;
    }
    assert_in_range(refused, ROUNDS / 5, ROUNDS * 4 / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_that_write_one_byte),
        cmocka_unit_test(one_that_writes_what_another_reads),
        cmocka_unit_test(what_is_read_may_be_one),
        cmocka_unit_test(columns_of_one_matrix),
        cmocka_unit_test(without_elements),
        cmocka_unit_test(many),
        cmocka_unit_test(as_every_byte_says),
    };
    return run_suite("unit.grouped_apart", tests);
}
