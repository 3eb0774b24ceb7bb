/* A communicator: collective operations between processes.
 * Thread-safety: rows are constant. */
#ifndef TENON_MODULE_COMMUNICATOR_H
#define TENON_MODULE_COMMUNICATOR_H

#include "module.h"

TN_BEGIN_DECLS

typedef struct tn_communicator_row {
    size_t struct_size;
    const char *name;     /* "nccl", "mpi"                             */
    const char *platform; /* "cuda"                                    */
    const char *remedy;   /* what to install if it is missing, or NULL */
    /* Returns the version of the library, or fails with TN_UNAVAILABLE and the reason. */
    tn_status (*version)(const tn_host *host, uint32_t *out_major, uint32_t *out_minor,
                         tn_error *err);
} tn_communicator_row;
TN_ENDS_WITH(tn_communicator_row, version);

TN_END_DECLS

#endif
