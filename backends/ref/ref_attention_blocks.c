/* Parts of attention blocks: rows of operands, visibility, memory for the tasks. */
#include "ref_attention_blocks.h"

/* Minimum products of a task, and the alignment of arrays. */
enum { GRAIN = 16384, ALIGNMENT = 64 };

void tni_ref_attention_job_init(const tn_run *run, tni_ref_attention_job *out)
{
    *out = (tni_ref_attention_job){
        .run = run, .op = run->op, .at = &out->params, .params = tn_attention_params(run)};
    for (int32_t o = 0; o < TN_OP_OPERANDS_MAX; o++)
        out->element[o] = tni_ref_operand_element(run->op, o);
}

tni_ref_head tni_ref_head_of(const tni_ref_attention_job *job, int64_t b, int64_t h)
{
    const tn_attention_op *at = job->at;
    tni_ref_head head = {.b = b, .h = h};
    if (at->heads > 0)
        head.group = h / (at->heads / at->groups);
    (void)tn_attention_sequence(job->run, b, &head.in, NULL); /* already checked */
    return head;
}

/* Returns NULL for an operand without elements, whose rows are empty. */
static char *row_at(const tni_ref_attention_job *job, int32_t operand, int64_t batch, int64_t head,
                    int64_t row)
{
    const int64_t *stride = job->op->operand[operand].stride;
    char *first = tn_operand(job->run, operand);
    int64_t offset = batch * stride[0] + head * stride[1] + row * stride[2];
    return first ? first + offset * job->element[operand]->bytes : NULL;
}

char *tni_ref_query_row(const tni_ref_attention_job *job, const tni_ref_head *head, int32_t operand,
                        int64_t i)
{
    return row_at(job, operand, head->in.batch, head->h, head->in.first_query + i);
}

char *tni_ref_key_row(const tni_ref_attention_job *job, const tni_ref_head *head, int32_t operand,
                      int64_t j)
{
    const int64_t page = job->at->page;
    int64_t batch = head->in.batch;
    if (page == 0)
        return row_at(job, operand, batch, head->group, head->in.first_key + j);
    (void)tn_attention_page(job->run, head->b, j / page, &batch, NULL); /* already checked */
    return row_at(job, operand, batch, head->group, j % page);
}

/* Elements of a row, and the bytes between them; LSE has one for each row. */
static int64_t measure(const tni_ref_attention_job *job, int32_t operand, int64_t *out_step)
{
    const tn_layout *layout = &job->op->operand[operand];
    *out_step = layout->rank == 4 ? layout->stride[3] * job->element[operand]->bytes : 0;
    return layout->rank == 4 ? layout->shape[3] : 1;
}

void tni_ref_row_read(const tni_ref_attention_job *job, int32_t operand, const char *row,
                      double *out)
{
    int64_t step, count = measure(job, operand, &step);
    job->element[operand]->read(row, step, count, out);
}

void tni_ref_row_write(const tni_ref_attention_job *job, int32_t operand, const double *values,
                       char *row)
{
    int64_t step, count = measure(job, operand, &step);
    job->element[operand]->write(values, count, row, step);
}

void tni_ref_keys_find(const tni_ref_attention_job *job, const tni_ref_head *head, int64_t first,
                       int64_t rows, int64_t *out_from, int64_t *out_to)
{
    *out_from = head->in.keys;
    *out_to = 0;
    for (int64_t i = first; i < first + rows; i++) {
        int64_t from, count;
        count = tn_attention_seen(job->at, i, head->in.queries, head->in.keys, &from);
        if (count > 0 && from < *out_from)
            *out_from = from;
        if (count > 0 && from + count > *out_to)
            *out_to = from + count;
    }
}

bool tni_ref_view_read(const tni_ref_attention_job *job, const tni_ref_head *head, int64_t i,
                       int64_t first, int64_t count, tni_ref_view *out)
{
    const tni_ref_element *mask = job->element[TN_ATTENTION_MASK];
    const int64_t *stride = job->op->operand[TN_ATTENTION_MASK].stride;
    int64_t from, seen = tn_attention_seen(job->at, i, head->in.queries, head->in.keys, &from);
    bool any = false;
    for (int64_t n = 0; n < count; n++) {
        const int64_t j = first + n;
        double value = 0;
        out->sees[n] = j >= from && j < from + seen;
        if (out->sees[n] && mask->dtype) {
            const char *row = row_at(job, TN_ATTENTION_MASK, head->b, head->h, i);
            mask->read(row + j * stride[3] * mask->bytes, 0, 1, &value);
            out->sees[n] = mask->dtype == TN_BOOL ? value != 0 : value != -(double)INFINITY;
        }
        out->added[n] = mask->dtype == TN_BOOL ? 0 : value;
        any = any || out->sees[n];
    }
    return any;
}

size_t tni_ref_room_add(size_t bytes, int64_t rows, int64_t columns, size_t size)
{
    size_t all = (size_t)rows * size; /* no overflow: a block has few rows */
    if (bytes > SIZE_MAX / 2 || (all > 0 && (uint64_t)columns > SIZE_MAX / 4 / all))
        return SIZE_MAX;
    all *= (size_t)columns;
    return bytes + (all + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void *tni_ref_room_next(char **room, int64_t rows, int64_t columns, size_t size)
{
    void *next = *room;
    *room += tni_ref_room_add(0, rows, columns, size);
    return next;
}

/* The number of threads, or fewer if there is not enough work. */
static int64_t tasks_of(const tni_ref_attention_job *job)
{
    const tn_attention_op *at = job->at;
    double products = (double)at->batch * (double)at->heads * (double)at->queries *
                      (double)at->keys * (double)(at->size + at->value_size);
    int64_t tasks = job->run->threads < job->blocks ? job->run->threads : job->blocks;
    if (products < (double)tasks * GRAIN)
        tasks = (int64_t)(products / GRAIN);
    return tasks > 1 ? tasks : 1;
}

static void compute_blocks(void *user, int64_t index)
{
    const tni_ref_attention_job *job = user;
    for (int64_t block = index; block < job->blocks; block += job->tasks)
        job->compute(job, block, job->room + (size_t)index * job->bytes);
}

tn_status tni_ref_attention_compute(tni_ref_attention_job *job, tn_error *err)
{
    const tn_host *host = job->run->host;
    tn_status status = tn_attention_check(job->run, err);
    if (status || job->blocks == 0)
        return status;
    job->tasks = tasks_of(job);
    if (job->bytes <= SIZE_MAX / 2 / (size_t)job->tasks) /* the bytes may be 0 */
        job->room = host->alloc(host->self, job->bytes * (size_t)job->tasks + 1, ALIGNMENT);
    if (!job->room)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, job->run->row->name,
                       "no memory for %lld tasks that need %zu bytes each", (long long)job->tasks,
                       job->bytes);
    if (job->tasks == 1)
        compute_blocks(job, 0);
    else
        host->parallel_for(host->self, job->tasks, compute_blocks, job);
    host->release(host->self, job->room);
    return TN_OK;
}
