/* What the program sees of C. */
#include <tenon/tenon.h>
