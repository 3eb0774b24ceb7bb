#include "thread_state.h"

_Thread_local tni_thread_state tni_thread_state_own;
