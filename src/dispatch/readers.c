/* Everyone who reads settings, on whichever floor. */
#include "platform/platforms.h"

const tni_setting_reader *const tni_setting_readers[] = {&tni_cpu_reader, &tni_library_reader,
                                                         &tni_platform_reader, NULL};
