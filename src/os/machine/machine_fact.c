#include "machine_read.h"

#include "base/alloc.h"

const char *tni_fact_word(uint32_t state)
{
    static const char *const words[] = {"unknown", "known", "unlimited", "malformed"};
    return words[state <= TNI_FACT_MALFORMED ? state : TNI_FACT_UNKNOWN];
}

tni_fact tni_fact_known(int64_t value, const char *origin)
{
    return (tni_fact){value, TNI_FACT_KNOWN, origin};
}

tni_fact tni_fact_none(uint32_t state, const char *origin)
{
    return (tni_fact){0, state, origin};
}

tni_fact tni_reading_nothing(tni_reading *reading)
{
    uint32_t state = reading->state == TNI_FACT_MALFORMED ? TNI_FACT_MALFORMED : TNI_FACT_UNKNOWN;
    return tni_fact_none(state, tni_reading_format(reading, "%s", tni_reading_why(reading)));
}

static int weight(const tni_fact *fact)
{
    static const int weights[] = {[TNI_FACT_UNKNOWN] = 2,
                                  [TNI_FACT_KNOWN] = 4,
                                  [TNI_FACT_UNLIMITED] = 1,
                                  [TNI_FACT_MALFORMED] = 3};
    return fact->origin ? weights[fact->state] : 0;
}

void tni_fact_lessen(tni_fact *fact, tni_fact other)
{
    bool both = fact->state == TNI_FACT_KNOWN && other.state == TNI_FACT_KNOWN;
    if (both ? other.value < fact->value : weight(&other) > weight(fact))
        *fact = other;
}

const char *tni_limit_name(int32_t limit)
{
#define WORD(name, word) word,
    static const char *const words[] = {TNI_LIMIT_LIST(WORD)};
#undef WORD
    return limit >= 0 && limit < TNI_LIMIT_COUNT ? words[limit] : NULL;
}

void tni_machine_budget_compute(tni_machine_budget *budget, int32_t request)
{
    budget->limits[TNI_LIMIT_REQUEST] = request > 0
                                            ? tni_fact_known(request, "requested by the caller")
                                            : tni_fact_none(TNI_FACT_UNLIMITED, "no limit set");
    budget->threads = 1;
    budget->least = -1;
    for (int32_t i = 0; i < TNI_LIMIT_COUNT; i++) {
        const tni_fact *limit = &budget->limits[i];
        if (limit->state != TNI_FACT_KNOWN ||
            (budget->least >= 0 && limit->value >= budget->threads))
            continue;
        budget->threads = (int32_t)(limit->value < INT32_MAX ? limit->value : INT32_MAX);
        budget->least = i;
    }
}

tn_status tni_reading_end(tni_reading *reading, tni_machine *machine, tni_machine **out,
                          tn_error *err)
{
    const char **notes = tni_reading_keep(reading, reading->note_count, sizeof *notes);
    if (reading->failed) {
        tni_reading_discard(reading);
        return tni_no_memory(err, "tni_machine_read", "the facts of the machine");
    }
    memcpy((void *)notes, (const void *)reading->notes, reading->note_count * sizeof *notes);
    machine->notes = notes;
    machine->note_count = reading->note_count;
    machine->blocks = reading->blocks;
    *out = machine;
    return TN_OK;
}

void tni_machine_release(tni_machine *machine)
{
    if (machine)
        tni_blocks_release(machine->blocks);
}
