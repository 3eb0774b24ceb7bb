/* The following code computes in long double, for f64: see real_double.h. */
#define REAL       long double
#define OF(name)   name##_long
#define MATH(name) name##l
