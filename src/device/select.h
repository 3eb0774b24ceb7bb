/* Selection of devices by conditions: "memory>=40g,capability>=9.0". */
#ifndef TNI_DEVICE_SELECT_H
#define TNI_DEVICE_SELECT_H

#include "device/device.h"

enum { TNI_SELECT_CONDITIONS = 16, TNI_SELECT_TEXT = 64 };

/* What a condition compares. */
enum { TNI_SELECT_WORD, TNI_SELECT_CAPABILITY, TNI_SELECT_NUMBER };
enum { TNI_SELECT_EQ, TNI_SELECT_NE, TNI_SELECT_LT, TNI_SELECT_LE, TNI_SELECT_GT, TNI_SELECT_GE };

typedef struct tni_select_term {
    int32_t kind;
    int32_t key; /* word: its index in the list; number: its bit in `known` */
    int32_t op;
    int64_t number;
    tn_capability capability;
    char word[TNI_SELECT_TEXT];
    char text[TNI_SELECT_TEXT]; /* the whole condition as written */
} tni_select_term;

typedef struct tni_select_terms {
    size_t count; /* 0 for "best" */
    tni_select_term items[TNI_SELECT_CONDITIONS];
} tni_select_terms;

/* Whether a name is a selection: "best", or anything with a comparison in it. */
bool tni_select_is(const char *name);

/* Fails with TN_INVALID_ARGUMENT; the message says which part is invalid, and why. */
tn_status tni_select_parse(const char *text, tni_select_terms *out, tn_error *err);

/* Queries the late properties that the conditions use, if the device can match them at all. Must be
 * called with no lock held. */
void tni_select_query(const tn_device *device, const tni_select_terms *conditions);

/* An unknown property meets no condition. */
bool tni_select_meets(const tn_device *device, const tni_select_terms *conditions);
bool tni_select_meets_one(const tn_device *device, const tni_select_term *condition);

/* The platform that a condition names; NULL if it is about something else. */
const char *tni_select_platform(const tni_select_term *condition);

#endif
