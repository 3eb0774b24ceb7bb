/* The set of libraries: those that Tenon knows and those that modules offer, by name. */
#include "library.h"

#include "base/alloc.h"
#include "base/words.h"
#include "os/fork.h"
#include "os/thread.h"
#include "registry/registry.h"
#include "table.h"

/* Handles and offers are never released: programs keep them. */
static struct {
    tni_fork_lock lock;
    tni_condition changed;
    tn_library **items; /* in the order of their names */
    size_t count;
    size_t capacity;
    size_t records_seen;
    bool knows; /* the libraries that Tenon knows are in the set */
} set = {.lock = {TNI_FORK_LOCK_INIT, .condition = &set.changed}, .changed = TNI_CONDITION_INIT};

void tni_libraries_lock(void)
{
    tni_fork_lock_acquire(&set.lock);
}

void tni_libraries_unlock(void)
{
    tni_fork_lock_release(&set.lock);
}

void tni_libraries_wait(void)
{
    tni_condition_wait(&set.changed, &set.lock.mutex);
}

void tni_libraries_wake(void)
{
    tni_condition_wake_all(&set.changed);
}

void tni_libraries_watch_forks(void)
{
    tni_fork_lock_watch(&set.lock);
}

/* Returns the index of the name, or where to insert it. Must be called with the lock held. */
static size_t place_of(const char *name)
{
    size_t low = 0, high = set.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(set.items[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static tn_library *find_library(const char *name)
{
    size_t at = place_of(name);
    return at < set.count && strcmp(set.items[at]->name, name) == 0 ? set.items[at] : NULL;
}

/* Inserts into the list, which must have room. */
static void insert_library(tn_library *library)
{
    size_t at = place_of(library->name);
    memmove(&set.items[at + 1], &set.items[at], (set.count - at) * sizeof *set.items);
    set.items[at] = library;
    set.count++;
}

static bool reserve_libraries(size_t more)
{
    return tni_array_reserve((void **)&set.items, &set.capacity, set.count, set.count + more,
                             sizeof *set.items);
}

/* Adds the libraries that Tenon knows. This and the next two must be called with the lock held. */
static bool add_known(void)
{
    const tni_library_known *known = tni_libraries_known;
    size_t count = 0;
    while (known[count].name)
        count++;
    tn_library *libraries =
        reserve_libraries(count) ? tni_alloc_zeroed(count, sizeof *libraries) : NULL;
    for (size_t i = 0; libraries && i < count; i++) {
        libraries[i] = (tn_library){.name = known[i].name, .known = &known[i]};
        insert_library(&libraries[i]);
    }
    return libraries != NULL;
}

/* A module's row, and the handle in case the name is new. */
typedef struct arrival {
    tni_library_offer offer;
    tn_library library;
} arrival;

static void publish_library(arrival *a)
{
    tn_library *library = find_library(a->offer.row->name);
    if (!library) {
        library = &a->library;
        library->name = a->offer.row->name;
        insert_library(library);
    }
    tni_library_offer **end = &library->offers;
    while (*end)
        end = &(*end)->next;
    *end = &a->offer;
}

/* Adds all of a record's rows; returns false and adds none if out of memory. */
static bool add_record(const tni_record *record)
{
    const tn_library_row *const *rows = record->table ? record->table->libraries : NULL;
    if (!rows || !rows[0])
        return true;
    size_t count = (size_t)tni_rows_count(rows);
    arrival *arrivals = reserve_libraries(count) ? tni_alloc_zeroed(count, sizeof *arrivals) : NULL;
    for (size_t i = 0; arrivals && i < count; i++) {
        const char *talk = rows[i]->verbose ? rows[i]->verbose_setting : NULL;
        arrivals[i].offer = (tni_library_offer){
            .record = record, .row = rows[i], .talk = talk ? tni_setting_find(talk) : -1};
        publish_library(&arrivals[i]);
    }
    return arrivals != NULL;
}

/* Discovers modules, then adds what the registry found since the last call. */
static tn_status catch_up(tn_error *err)
{
    tni_registry *registry;
    const tni_record *record;
    tn_status status = tni_registry_process(&registry, err);
    if (!status)
        status = tni_registry_discover(registry, err);
    if (status)
        return status;
    tni_libraries_watch_forks();
    tni_libraries_lock();
    bool fits = set.knows || (set.knows = add_known());
    while (fits && (record = tni_registry_record(registry, set.records_seen))) {
        fits = add_record(record);
        set.records_seen += fits;
    }
    tni_libraries_unlock();
    return fits ? TN_OK : tni_no_memory(err, "libraries", "their list");
}

/* The same rule as for platforms: the last ready one that the program registered as a replacement,
 * else the first ready one, else the first. */
tni_library_offer *tni_library_served(const tn_library *library)
{
    tni_library_offer *best = NULL;
    for (tni_library_offer *offer = library->offers; offer; offer = offer->next) {
        bool ready = offer->record->stage == TN_STAGE_READY;
        if (atomic_load(&offer->record->withdrawn))
            continue;
        if (!best || (ready && (offer->record->replaces || best->record->stage != TN_STAGE_READY)))
            best = offer;
    }
    return best;
}

bool tni_library_is_being_tried(const tni_library_offer *offer)
{
    return offer->trial.stage == TNI_TRIAL_RUNS && offer->fork == tni_fork_generation();
}

static bool is_listed(const tn_library *library)
{
    return library->known || tni_library_served(library);
}

tn_status tn_library_count(size_t *out, tn_error *err)
{
    size_t count = 0;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_library_count", "out is NULL");
    tn_status status = catch_up(err);
    if (status)
        return status;
    tni_libraries_lock();
    for (size_t i = 0; i < set.count; i++)
        count += is_listed(set.items[i]);
    tni_libraries_unlock();
    *out = count;
    return TN_OK;
}

const tn_library *tn_library_at(size_t index)
{
    const tn_library *found = NULL;
    tni_libraries_lock();
    for (size_t i = 0; !found && i < set.count; i++) {
        if (is_listed(set.items[i]) && index-- == 0)
            found = set.items[i];
    }
    tni_libraries_unlock();
    return found;
}

static const char *other_name(const tn_library *library)
{
    const tni_library_offer *offer = tni_library_served(library);
    return offer ? offer->row->other : NULL;
}

/* Looks up a library by its own name first, then by the other name of any library. */
static const tn_library *find_by_any_name(const char *name)
{
    const tn_library *library = find_library(name);
    if (library && is_listed(library))
        return library;
    for (size_t i = 0; i < set.count; i++) {
        const char *other = other_name(set.items[i]);
        if (other && strcmp(other, name) == 0)
            return set.items[i];
    }
    return NULL;
}

static void prefer_nearer(const char *word, const char *candidate, const char **nearest)
{
    const char *const both[] = {*nearest ? *nearest : candidate, candidate};
    const char *found = tni_words_nearest(word, both, 2);
    if (found)
        *nearest = found;
}

static const char *find_nearest(const char *name)
{
    const char *nearest = NULL;
    for (size_t i = 0; i < set.count; i++) {
        if (!is_listed(set.items[i]))
            continue;
        const char *other = other_name(set.items[i]);
        prefer_nearer(name, set.items[i]->name, &nearest);
        if (other)
            prefer_nearer(name, other, &nearest);
    }
    return nearest;
}

tn_status tn_library_get(const char *name, const tn_library **out, tn_error *err)
{
    static const char where[] = "tn_library_get";
    char hint[TNI_HINT];
    if (!name || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", name ? "out" : "the name");
    tn_status status = catch_up(err);
    if (status)
        return status;
    tni_libraries_lock();
    const tn_library *found = find_by_any_name(name);
    const char *nearest = found ? NULL : find_nearest(name);
    tni_libraries_unlock();
    if (!found)
        return tn_fail(err, TN_NOT_FOUND, 0, where,
                       "unknown library \"%.80s\": no module offers it%s", name,
                       tni_words_hint(nearest, hint));
    *out = found;
    return TN_OK;
}

const char *tn_available_name(int32_t available)
{
    static const char *const names[] = {"no", "yes", "untried"};
    bool known = available >= TN_AVAILABLE_NO && available <= TN_AVAILABLE_UNTRIED;
    return known ? names[available] : "unknown";
}
