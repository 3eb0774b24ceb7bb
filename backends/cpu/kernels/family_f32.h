/* What follows computes in f32: REAL is the number, VECTOR a vector of WIDTH of them, and F(name) the
 * family's function of that name. Ended by family_end.h. */
#define REAL    float
#define VECTOR  vf
#define WIDTH   LANES
#define F(name) name##_f32
