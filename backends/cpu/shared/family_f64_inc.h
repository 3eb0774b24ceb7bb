/* Begins a family of f64; see family_f32_inc.h. */
#define REAL                        double
#define VECTOR                      vd
#define PAIR                        pair_f64
#define WIDTH                       DOUBLES
#define ROOM                        (BLOCK / 2)
#define F(name)                     name##_f64
#define FOR_DTYPE(dtype, call, ...) call(TN_F64, __VA_ARGS__)
#define FOR_FORM(form, call, ...)   call(TN_F64, __VA_ARGS__)
