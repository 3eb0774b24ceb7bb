/* The modules of the fault suites and what a registry makes of them. Each module is alone in a
 * folder, TENON_TEST_FAULT/NAME/tenon-NAME.so. */
#ifndef TENON_TEST_FAULT_ROWS_H
#define TENON_TEST_FAULT_ROWS_H

#include "test.h"

#include "tenon/tenon.h"

enum { ROWS_TEXT = 2048 };

#define FOLDER_OF(name) TENON_TEST_FAULT "/" name
#define FILE_OF(name)   TENON_TEST_FAULT "/" name "/tenon-" name ".so"

/* "NAME STAGE STATUS; " for every row. One that its own probe stopped for want of memory counts as
 * ready: the host's memory failed inside it, and it said so. */
static inline void rows_write(const tn_module_list *list, char out[ROWS_TEXT])
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < tn_module_list_count(list) && used < ROWS_TEXT; i++) {
        const tn_module_report *row = tn_module_list_get(list, i);
        bool its_own = row->status == TN_OUT_OF_MEMORY && row->stage == TN_STAGE_NEGOTIATED;
        used += (size_t)snprintf(out + used, ROWS_TEXT - used, "%s %s %s; ", row->name,
                                 tn_module_stage_name(its_own ? TN_STAGE_READY : row->stage),
                                 tn_status_name(its_own ? TN_OK : row->status));
    }
}

#endif
