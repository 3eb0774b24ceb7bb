#include "store.h"

#include "base/alloc.h"
#include "base/log.h"
#include "dispatch/judge.h"
#include "os/cache/cache.h"
#include "os/fork.h"
#include "os/thread.h"
#include "setup.h"

static const char where[] = "tuning";

enum { BUCKETS = 256, PROBLEMS_MOST = 4096 };

/* One kernel's time. */
typedef struct kept {
    char kernel[104];
    int64_t version;
    int64_t library_version;
    int64_t ns;
    int64_t level; /* the value it is compared by: the level of the smallest time it ties with */
} kept;

/* The times of one problem; immutable. */
typedef struct page {
    struct page *next;
    uint64_t hash;
    size_t key_length;
    char *key;
    size_t count;
    kept times[];
} page;

static tni_fork_lock lock = {TNI_FORK_LOCK_INIT};
static tni_once begun = TNI_ONCE_INIT;
static page *buckets[BUCKETS]; /* under the lock, like the next */
static size_t page_count;
static tni_cache *cache; /* NULL: nothing is stored beyond the process */

static void init_store(void)
{
    cache = tni_cache_open_default("times are");
    tni_fork_lock_watch(&lock);
}

static void release_page(page *p)
{
    if (p)
        tni_release(p->key);
    tni_release(p);
}

/* Keys. */

static uint64_t hash_of(const tni_buffer *key)
{
    uint64_t hash = key->length;
    for (size_t i = 0; i < key->length; i++)
        hash = tni_hash_mix(hash, (unsigned char)key->text[i]);
    return hash;
}

/* The key leaves out numbers that are not part of plan keys, such as alpha, and alignments that no
 * kernel distinguishes. */
static bool make_key(const tni_question *question, tni_buffer *key)
{
    uint64_t words[TNI_KEY_MOST];
    char room[TNI_SETUP_DRIVER];
    tni_setup setup;
    size_t count = tni_op_key_up_to(
        question->op, tni_kernels_alignment(question->device->platform->name, question->op->kind),
        words);
    tni_setup_of(question->device, room, &setup);
    tni_settings_differing(question->context, question->op, true, key);
    tni_buffer_format(key, "\n%d\n%s\n%s\n%s\n%lld\n", TNI_SELECTIONS_FORMAT, setup.name,
                      setup.architecture, setup.driver, (long long)setup.threads);
    for (size_t i = 0; i < count; i++)
        tni_buffer_format(key, "%llx ", (unsigned long long)words[i]);
    return !key->failed;
}

/* Pages. */

/* Returns NULL if out of memory. */
static page *make_page(const tni_buffer *key, size_t room)
{
    page *made = tni_alloc_zeroed(1, sizeof *made + room * sizeof made->times[0]);
    if (!made)
        return NULL;
    made->key = tni_text_copy_part(key->text, key->length);
    made->key_length = key->length;
    made->hash = hash_of(key);
    if (made->key)
        return made;
    tni_release(made);
    return NULL;
}

/* Must be called with the lock held. */
static page **find_page(const tni_buffer *key)
{
    uint64_t hash = hash_of(key);
    page **at = &buckets[hash % BUCKETS];
    while (*at && ((*at)->hash != hash || (*at)->key_length != key->length ||
                   memcmp((*at)->key, key->text, key->length) != 0))
        at = &(*at)->next;
    return at;
}

/* Must be called with the lock held. */
static void drop_pages(void)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        while (buckets[i]) {
            page *gone = buckets[i];
            buckets[i] = gone->next;
            release_page(gone);
        }
    }
    page_count = 0;
}

/* Adds a page. An existing page is replaced; without `replaces` it is kept. If there are too many
 * pages, all are dropped; those still needed are read again from the cache directory. */
static void publish_page(page *made, const tni_buffer *key, bool replaces)
{
    tni_fork_lock_acquire(&lock);
    if (page_count >= PROBLEMS_MOST)
        drop_pages();
    page **at = find_page(key), *gone = *at;
    if (gone && !replaces) {
        gone = made;
    } else {
        made->next = gone ? gone->next : NULL;
        page_count += !gone;
        *at = made;
    }
    tni_fork_lock_release(&lock);
    release_page(gone);
}

static kept *find_kept(page *p, const tni_kernel *kernel)
{
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->times[i].kernel, kernel->row->name) == 0)
            return &p->times[i];
    }
    return NULL;
}

static bool is_of(const kept *k, const tni_kernel *kernel, int64_t library_version)
{
    return k->version == kernel->row->version && k->library_version == library_version;
}

double tni_times_tie(const tn_device *device)
{
    const tn_device_properties *is = &device->properties;
    bool is_apart = (is->known & TN_DEVICE_KNOWS(is_integrated)) && !is->is_integrated;
    return is_apart ? 0.001 : 0.025;
}

/* The smallest time becomes the level of all times within the tie; then the same for the rest. The
 * result does not depend on the order of the times. */
static void set_levels(page *p, double tie)
{
    int64_t done = 0;
    for (size_t i = 0; i < p->count; i++)
        p->times[i].level = p->times[i].ns;
    for (;;) {
        int64_t least = INT64_MAX;
        for (size_t i = 0; i < p->count; i++) {
            if (p->times[i].level > done && p->times[i].level < least)
                least = p->times[i].level;
        }
        if (least == INT64_MAX)
            return;
        for (size_t i = 0; i < p->count; i++) {
            int64_t *at = &p->times[i].level;
            if (*at > done && (double)*at <= (double)least * (1 + tie))
                *at = least;
        }
        done = least;
    }
}

/* Reading and writing. */

static void copy_times(page *to, const tni_selections *from)
{
    for (size_t i = 0; i < from->count; i++) {
        const tni_selection *s = &from->selections[i];
        kept *k = &to->times[to->count];
        if (s->ns == 0 || strlen(s->kernel) >= sizeof k->kernel)
            continue;
        tn_text_fit(k->kernel, sizeof k->kernel, s->kernel);
        k->version = s->version;
        k->library_version = s->library_version;
        k->ns = s->ns;
        to->count++;
    }
}

/* Loads the page from the cache directory. Returns a page without times if none exists or it
 * cannot be read, NULL if out of memory. */
static page *load_page(const tni_buffer *key, const tn_device *device)
{
    void *text = NULL;
    size_t size = 0;
    tni_selections read = {0};
    if (cache &&
        tni_cache_get(cache, "tuning", key->text, key->length, &text, &size, NULL) == TN_OK)
        (void)tni_selections_parse(text, size, "tuning", &read, NULL);
    page *made = make_page(key, read.count);
    if (made) {
        copy_times(made, &read);
        set_levels(made, tni_times_tie(device));
    }
    tni_selections_release(&read);
    tni_release(text);
    return made;
}

static tn_status write_times(const page *from, const tni_question *question, const char *problem,
                             const char *settings, tni_buffer *text)
{
    char room[TNI_SETUP_DRIVER];
    tni_setup setup;
    tni_setup_of(question->device, room, &setup);
    tn_status status = tni_selections_begin(text, false, NULL);
    if (!status)
        status = tni_selections_add_setup(text, &setup, NULL);
    for (size_t i = 0; !status && i < from->count; i++) {
        const kept *k = &from->times[i];
        if (k->ns <= 0)
            continue;
        status = tni_selections_add(text,
                                    &(tni_selection){.problem = problem,
                                                     .device = setup.id,
                                                     .kernel = k->kernel,
                                                     .version = k->version,
                                                     .module = "",
                                                     .library = "",
                                                     .library_version = k->library_version,
                                                     .settings = settings,
                                                     .ns = k->ns},
                                    NULL);
    }
    return status ? status : tni_selections_sign(text, NULL);
}

static void save_page(const page *from, const tni_question *question, const tni_buffer *key)
{
    tni_buffer text = {0}, problem = {0}, settings = {0};
    if (!cache)
        return;
    tni_problem_write(question->op, NULL, &problem);
    tni_settings_differing(question->context, question->op, true, &settings);
    if (!problem.failed && !settings.failed &&
        write_times(from, question, problem.text, tni_buffer_text(&settings), &text) == TN_OK)
        (void)tni_cache_put(cache, "tuning", key->text, key->length, text.text, text.length, NULL);
    tni_buffer_release(&settings);
    tni_buffer_release(&problem);
    tni_buffer_release(&text);
}

/* Loads the problem's page into memory, if memory permits. */
static void load_missing(const tni_buffer *key, const tn_device *device)
{
    tni_fork_lock_acquire(&lock);
    bool known = *find_page(key) != NULL;
    tni_fork_lock_release(&lock);
    page *read = known ? NULL : load_page(key, device);
    if (read)
        publish_page(read, key, false);
}

int64_t tni_times_find(const tni_question *question, const tni_kernel *kernel, int64_t *out_level)
{
    int64_t ns = TNI_TIME_UNKNOWN;
    int64_t version = tni_kernel_library_version(kernel, question->device);
    tni_buffer key = {0};
    tni_once_run(&begun, init_store);
    if (make_key(question, &key)) {
        load_missing(&key, question->device);
        tni_fork_lock_acquire(&lock);
        page *p = *find_page(&key);
        const kept *k = p ? find_kept(p, kernel) : NULL;
        if (k && is_of(k, kernel, version)) {
            ns = k->ns;
            *out_level = k->level;
        }
        tni_fork_lock_release(&lock);
    }
    tni_buffer_release(&key);
    return ns;
}

/* A new version invalidates the time of the old one; a failure does not invalidate a time of the
 * same version. */
static void set_time(page *to, const tni_timed *timed)
{
    kept *k = find_kept(to, timed->kernel);
    if (k && timed->ns == TNI_TIME_FAILED && is_of(k, timed->kernel, timed->library_version))
        return;
    if (!k)
        k = &to->times[to->count++];
    tn_text_fit(k->kernel, sizeof k->kernel, timed->kernel->row->name);
    k->version = timed->kernel->row->version;
    k->library_version = timed->library_version;
    k->ns = timed->ns;
}

/* Returns a copy of the problem's page, with room for `more` times. NULL if out of memory. */
static page *copy_page(const tni_buffer *key, size_t more)
{
    tni_fork_lock_acquire(&lock);
    const page *old = *find_page(key);
    size_t count = old ? old->count : 0;
    page *made = make_page(key, count + more);
    if (made && old) {
        made->count = count;
        memcpy(made->times, old->times, count * sizeof old->times[0]);
    }
    tni_fork_lock_release(&lock);
    return made;
}

tn_status tni_times_keep(const tni_question *question, const tni_timed *timed, size_t count,
                         tn_error *err)
{
    tni_buffer key = {0};
    page *made = NULL;
    tni_once_run(&begun, init_store);
    if (make_key(question, &key)) {
        load_missing(&key, question->device);
        made = copy_page(&key, count);
    }
    if (made) {
        for (size_t i = 0; i < count; i++)
            set_time(made, &timed[i]);
        set_levels(made, tni_times_tie(question->device));
        save_page(made, question, &key);
        publish_page(made, &key, true);
    }
    tni_buffer_release(&key);
    return made ? TN_OK : tni_no_memory(err, where, "times");
}

void tni_times_forget(void)
{
    tni_fork_lock_acquire(&lock);
    drop_pages();
    tni_fork_lock_release(&lock);
}
