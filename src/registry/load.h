/* Loads one module into this process, stage by stage. */
#ifndef TNI_REGISTRY_LOAD_H
#define TNI_REGISTRY_LOAD_H

#include "record.h"

/* Called whenever a stage is reached; may be NULL. */
typedef void tni_load_progress(void *user, const tni_record *record);

/* FOUND to OPENED: checks the file and its write permissions without running it, then opens it. A
 * built-in is already open. The result is stored in the record and returned. */
tn_status tni_load_inspect(tni_record *record);
tn_status tni_load_open(tni_record *record);

/* Fails with TN_INCOMPATIBLE unless code built with these sanitizers can run in this process. */
tn_status tni_load_check_sanitizer(tni_record *record, uint64_t sanitizers);

/* OPENED to NEGOTIATED: calls the module's entry, compares ABIs, checks every row. */
tn_status tni_load_negotiate(tni_record *record);

/* NEGOTIATED to READY: probes the module's platforms for devices. */
tn_status tni_load_probe(tni_record *record, tni_load_progress *progress, void *user);

/* Queries the properties of every device and discards them, so that a crash or hang there happens
 * in an expendable process. */
void tni_load_try_devices(const tni_record *record);

#endif
