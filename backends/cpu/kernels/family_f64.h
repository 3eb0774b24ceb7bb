/* As family_f32.h, in f64. */
#define REAL    double
#define VECTOR  vd
#define WIDTH   DOUBLES
#define F(name) name##_f64
