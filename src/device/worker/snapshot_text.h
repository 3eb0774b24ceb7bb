/* What the writer and the reader of a snapshot's text agree on; snapshot_write.c shows it. */
#ifndef TNI_DEVICE_WORKER_SNAPSHOT_TEXT_H
#define TNI_DEVICE_WORKER_SNAPSHOT_TEXT_H

#include "tenon/module/device.h"

/* What the text begins with, and which form of it this is. */
#define TNI_SNAPSHOT_KEY "worker"
enum { TNI_SNAPSHOT_FORMAT = 1 };

/* The section that it ends with, and its key: how many sections come before it. */
#define TNI_SNAPSHOT_END      "end"
#define TNI_SNAPSHOT_SECTIONS "sections"

/* 1 in a device that is for planning only; else not there. */
#define TNI_SNAPSHOT_PLANS "plans_only"

enum { TNI_PROPERTY_TEXT, TNI_PROPERTY_CAPABILITY, TNI_PROPERTY_DTYPES, TNI_PROPERTY_NUMBER };

/* One property of a device: its key, what it is, where it lies, and its bit of `known`, if any. */
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
