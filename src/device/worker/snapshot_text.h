/* The text format of a snapshot, shared by its writer and reader; snapshot_write.c has an
 * example. */
#ifndef TNI_DEVICE_WORKER_SNAPSHOT_TEXT_H
#define TNI_DEVICE_WORKER_SNAPSHOT_TEXT_H

#include "tenon/module/device.h"

/* The first key of the text, and the version of the format. */
#define TNI_SNAPSHOT_KEY "worker"
enum { TNI_SNAPSHOT_FORMAT = 1 };

/* The last section, and its key: the number of sections before it. */
#define TNI_SNAPSHOT_END      "end"
#define TNI_SNAPSHOT_SECTIONS "sections"

/* 1 in a device that is for planning only; otherwise absent. */
#define TNI_SNAPSHOT_PLANS "plans_only"

enum { TNI_PROPERTY_TEXT, TNI_PROPERTY_CAPABILITY, TNI_PROPERTY_DTYPES, TNI_PROPERTY_NUMBER };

/* One property of a device: its key, its type, its location, and its bit of `known`, if any. */
typedef struct tni_property {
    const char *word;
    int32_t is;
    size_t offset;
    size_t size;
    uint64_t known;
} tni_property;

enum { TNI_PROPERTIES = 6 + TN_DEVICE_NUMBER_COUNT };
extern const tni_property tni_properties[TNI_PROPERTIES];

#endif
