#include "base/alloc.h"
#include "base/checked.h"
#include "cache_store.h"
#include "os/fork.h"
#include "os/thread.h"

enum { BUCKETS = 256 };

/* One allocation that holds the entry's data too. Linked into its bucket's chain and into the list
 * in order of use. */
typedef struct item {
    struct item *next;
    struct item *older;
    struct item *newer;
    tni_cache_id id;
    size_t size;
    unsigned char data[];
} item;

typedef struct memory {
    tni_cache_store base;
    uint64_t limit;
    uint64_t bytes;
    item *oldest;
    item *newest;
    item *buckets[BUCKETS];
} memory;

/* One lock for all stores of the process, so that a fork can hold it: then in the child every store
 * is consistent and the lock is free. */
static tni_fork_lock lock = {TNI_FORK_LOCK_INIT};

static memory *of(tni_cache_store *store)
{
    return (memory *)store;
}

static uint64_t counted(const item *i)
{
    return (uint64_t)i->size + TNI_CACHE_HEADER;
}

static item *find(const memory *m, const tni_cache_id *id)
{
    item *i = m->buckets[id->digest[0]];
    while (i && (memcmp(i->id.digest, id->digest, sizeof id->digest) != 0 ||
                 strcmp(i->id.kind, id->kind) != 0))
        i = i->next;
    return i;
}

static void join_order(memory *m, item *i)
{
    i->newer = NULL;
    i->older = m->newest;
    *(m->newest ? &m->newest->newer : &m->oldest) = i;
    m->newest = i;
}

static void leave_order(memory *m, item *i)
{
    *(i->older ? &i->older->newer : &m->oldest) = i->newer;
    *(i->newer ? &i->newer->older : &m->newest) = i->older;
}

static void add(memory *m, item *i)
{
    item **link = &m->buckets[i->id.digest[0]];
    i->next = *link;
    *link = i;
    join_order(m, i);
    m->bytes += counted(i);
}

static void drop(memory *m, item *i)
{
    item **link = &m->buckets[i->id.digest[0]];
    while (*link != i)
        link = &(*link)->next;
    *link = i->next;
    leave_order(m, i);
    m->bytes -= counted(i);
    tni_release(i);
}

static void shrink(memory *m, uint64_t limit)
{
    while (m->bytes > limit)
        drop(m, m->oldest);
}

static tn_status put(tni_cache_store *store, const tni_cache_id *id, const void *data, size_t size,
                     tn_error *err)
{
    memory *m = of(store);
    size_t room;
    item *fresh = tni_add_size(sizeof *fresh, size, &room) ? tni_alloc(room) : NULL;
    if (!fresh)
        return tni_no_memory(err, "cache put", "an entry");
    fresh->id = *id;
    fresh->size = size;
    if (size)
        memcpy(fresh->data, data, size);
    tni_fork_lock_acquire(&lock);
    item *old = find(m, id);
    if (old)
        drop(m, old);
    if (counted(fresh) > m->limit - m->bytes)
        shrink(m, tni_cache_target(m->limit, counted(fresh)));
    add(m, fresh);
    tni_fork_lock_release(&lock);
    return TN_OK;
}

static tn_status get(tni_cache_store *store, const tni_cache_id *id, void **out, size_t *out_size,
                     tn_error *err)
{
    memory *m = of(store);
    tni_fork_lock_acquire(&lock);
    item *i = find(m, id);
    bool found = i != NULL;
    void *copy = i ? tni_alloc(i->size) : NULL;
    if (copy) {
        memcpy(copy, i->data, i->size);
        *out = copy;
        *out_size = i->size;
        leave_order(m, i);
        join_order(m, i);
    }
    tni_fork_lock_release(&lock);
    if (!found)
        return tni_cache_not_found(id, err);
    return copy ? TN_OK : tni_no_memory(err, "cache get", "an entry");
}

static tn_status remove_one(tni_cache_store *store, const tni_cache_id *id, tn_error *err)
{
    (void)err;
    tni_fork_lock_acquire(&lock);
    item *i = find(of(store), id);
    if (i)
        drop(of(store), i);
    tni_fork_lock_release(&lock);
    return TN_OK;
}

static tn_status prune(tni_cache_store *store, uint64_t limit, tn_error *err)
{
    (void)err;
    tni_fork_lock_acquire(&lock);
    shrink(of(store), limit);
    tni_fork_lock_release(&lock);
    return TN_OK;
}

static tn_status visit_all(tni_cache_store *store, tni_cache_visit *visit, void *to, tn_error *err)
{
    (void)err;
    tni_fork_lock_acquire(&lock);
    for (const item *i = of(store)->oldest; i; i = i->newer)
        visit(to, i->id.kind, counted(i));
    tni_fork_lock_release(&lock);
    return TN_OK;
}

static void release(tni_cache_store *store)
{
    prune(store, 0, NULL);
    tni_release(store);
}

tni_cache_store *tni_cache_memory_create(uint64_t limit)
{
    static const tni_cache_calls calls = {release, put, get, remove_one, prune, visit_all};
    memory *m = tni_alloc_zeroed(1, sizeof *m);
    if (!m)
        return NULL;
    tni_fork_lock_watch(&lock);
    m->base.calls = &calls;
    m->limit = limit;
    return &m->base;
}
