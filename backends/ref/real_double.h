/* The following code computes in double: REAL is the number type, OF(name) the family's function of
 * that name, and MATH(name) the function of <math.h>. Ended by real_end.h. */
#define REAL       double
#define OF(name)   name##_double
#define MATH(name) name
