#include "epoch.h"

_Atomic uint64_t tni_epoch;
