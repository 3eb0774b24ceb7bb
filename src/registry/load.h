/* Bringing one module into this process, stage by stage. */
#ifndef TNI_REGISTRY_LOAD_H
#define TNI_REGISTRY_LOAD_H

#include "record.h"

/* Told whenever a stage is reached; may be NULL. */
typedef void tni_load_progress(void *user, const tni_record *record);

/* FOUND to OPENED: checks the file and who may write to it without running any of it, then opens
 * it. A built-in is open already. The outcome is in the record, which is what is returned. */
tn_status tni_load_inspect(tni_record *record);
tn_status tni_load_open(tni_record *record);

/* TN_INCOMPATIBLE unless code built with these sanitizers can live in this process. */
tn_status tni_load_check_sanitizer(tni_record *record, uint64_t sanitizers);

/* OPENED to NEGOTIATED: calls its entry, compares ABIs, checks every row. */
tn_status tni_load_negotiate(tni_record *record);

/* NEGOTIATED to READY: asks its platforms for devices. */
tn_status tni_load_probe(tni_record *record, tni_load_progress *progress, void *user);

/* Asks every device for its properties and forgets them: what crashes or hangs there is to do so in a
 * process that can be spared. */
void tni_load_try_devices(const tni_record *record);

#endif
