/* A registry of made-up modules and the set of platforms over it. The modules are built in, so no
 * file is opened:
 *     cpu     kind CPU, 1 device
 *     acme    kind OOT, 3 devices, lists of quantizations and model architectures, a language and a
 *             communicator, links, a variable that hides devices (ACME_VISIBLE)
 *     bolt    kind OOT, 1 device, no function but those that a platform must have
 *     broken  kind ROCM, its probe finds a fault
 *     away    kind CUDA, its probe finds no driver
 *     stand   kind OOT, stands in, takes described devices */
#ifndef TENON_TEST_WORLD_H
#define TENON_TEST_WORLD_H

#include "test.h"

#include "base/alloc.h"
#include "device/platform/platforms.h"
#include "device/platform/report.h"
#include "tenon/module/communicator.h"
#include "tenon/module/language.h"
#include "tenon/tenon.h"

enum {
    WORLD_CPU = 1,
    WORLD_ACME = 2,
    WORLD_BOLT = 4,
    WORLD_BROKEN = 8,
    WORLD_AWAY = 16,
    WORLD_STAND = 32,
    WORLD_ALL = 63
};

typedef struct world {
    tni_registry *registry;
    tni_platforms *set;
} world;

/* `root` stands for "/" where traces are looked for; NULL for the running system. */
void world_make(world *out, unsigned modules, const char *root);
void world_end(world *w);

/* The modules as a registry takes them. */
const tni_builtin *world_builtins(unsigned modules);

/* What the world's modules were asked so far. */
extern _Atomic int world_probes;
extern _Atomic int world_describes;

/* The numbers that `stand` gives its described devices; NULL: from 0 on. */
extern const int32_t *world_numbers;

const tn_platform *world_platform(world *w, const char *name);
tn_device *world_device(world *w, const char *name);

#endif
