/* What follows computes in double: REAL is the number, OF(name) the family's function of that name, and
 * MATH(name) that of <math.h>. Ended by real_end.h. */
#define REAL       double
#define OF(name)   name##_double
#define MATH(name) name
