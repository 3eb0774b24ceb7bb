/* Devices by conditions: "memory>=40g,capability>=9.0". */
#ifndef TNI_DEVICE_SELECT_H
#define TNI_DEVICE_SELECT_H

#include "device/device.h"

enum { TNI_SELECT_CONDITIONS = 16, TNI_SELECT_TEXT = 64 };

/* What a condition compares. */
enum { TNI_SELECT_WORD, TNI_SELECT_CAPABILITY, TNI_SELECT_NUMBER };
enum { TNI_SELECT_EQ, TNI_SELECT_NE, TNI_SELECT_LT, TNI_SELECT_LE, TNI_SELECT_GT, TNI_SELECT_GE };

typedef struct tni_select_term {
    int32_t kind;
    int32_t key; /* of a word: its place in the list; of a number: its bit in `known` */
    int32_t op;
    int64_t number;
    tn_capability capability;
    char word[TNI_SELECT_TEXT];
    char text[TNI_SELECT_TEXT]; /* the whole of it, as it was written */
} tni_select_term;

typedef struct tni_select_terms {
    size_t count; /* 0 for "best" */
    tni_select_term items[TNI_SELECT_CONDITIONS];
} tni_select_terms;

/* True when a name is meant as conditions: "best", or anything with a comparison in it. */
bool tni_select_is(const char *name);

/* TN_INVALID_ARGUMENT says which part makes no sense, and why. */
tn_status tni_select_parse(const char *text, tni_select_terms *out, tn_error *err);

/* Has the device's platform tell what conditions name and it tells late, if the device is one of those that they are
 * about. With no lock held. */
void tni_select_ask(const tn_device *device, const tni_select_terms *conditions);

/* What is unknown of a device meets no condition. */
bool tni_select_meets(const tn_device *device, const tni_select_terms *conditions);
bool tni_select_meets_one(const tn_device *device, const tni_select_term *condition);

/* The platform that a condition names, or NULL when it is about something else. */
const char *tni_select_platform(const tni_select_term *condition);

#endif
