/* Some rows of a unit whose keys are packed, computed by one task with steps. Attention takes steps
 * through all keys that the rows see, attention-sparse through those of listed blocks. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_STACK_H
#define TENON_BACKENDS_CPU_ATTENTION_STACK_H

#include "attention_layout.h"

/* The panels of a unit; `v` is V itself if it is not packed. */
typedef struct tni_at_panels {
    char *k, *v;
    uint8_t *nonfinite; /* of each panel of keys: whether some of its values are not finite */
} tni_at_panels;

/* The panels at `packed`. `v` is V, which is used only if it is not packed. */
tni_at_panels tni_at_panels_at(const tni_at_layout *layout, char *packed, char *v);

/* Packs panels `first` to `end` of a unit's keys. */
void tni_at_pack_panels(const tni_at_set *set, const tni_at_problem *problem,
                        const tni_at_layout *layout, const tni_at_unit *unit, int64_t first,
                        int64_t end, const tni_at_panels *to, char *room);

/* The memory of a task. */
typedef struct tni_at_desk {
    char *q;
    char *room;
    char *bias;
    tni_at_state state; /* of all rows of a task */
} tni_at_desk;

tni_at_desk tni_at_desk_at(const tni_at_layout *layout, char *memory);

typedef struct tni_at_stack {
    const tni_at_set *set;
    const tni_at_problem *problem;
    const tni_at_layout *layout;
    const tni_at_unit *unit;
    int64_t row, rows; /* at least one */
    tni_at_panels at;
    tni_at_desk desk;
    /* Set by tni_at_stack_begin: the panels of rows, of about equal height; and the rows. */
    int64_t panels;
    const char *q;
} tni_at_stack;

/* Clears the states of the rows and packs them. */
void tni_at_stack_begin(tni_at_stack *stack);

/* The step of panel n of the rows; it has no keys and no bias. */
tni_at_step tni_at_stack_step(const tni_at_stack *stack, int64_t n);

/* Gives the step the panels that keys `from` to `to` are in. */
void tni_at_stack_keys(const tni_at_stack *stack, int64_t from, int64_t to, tni_at_step *step);

/* Writes out and lse of the rows. */
void tni_at_stack_end(const tni_at_stack *stack);

#endif
