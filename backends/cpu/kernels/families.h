/* Includes FAMILY twice, for what computes in f32 and for what computes in f64. In it REAL is the number,
 * VECTOR a vector of WIDTH of them, and F(name) the family's function of that name. */
#define REAL    float
#define VECTOR  vf
#define WIDTH   LANES
#define F(name) name##_f32
#include FAMILY
#undef REAL
#undef VECTOR
#undef WIDTH
#undef F

#define REAL    double
#define VECTOR  vd
#define WIDTH   DOUBLES
#define F(name) name##_f64
#include FAMILY
#undef REAL
#undef VECTOR
#undef WIDTH
#undef F
#undef FAMILY
