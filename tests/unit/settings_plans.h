/* That settings of dispatch do what they say. */
#ifndef TENON_TEST_SETTINGS_PLANS_H
#define TENON_TEST_SETTINGS_PLANS_H

#include "tenon/setting.h"

#include <stdbool.h>

/* Shows the effect of one row; false for a row that none of these shows. */
bool show_effect_on_plans(tn_setting setting);

#endif
