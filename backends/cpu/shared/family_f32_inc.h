/* Begins a family: the following code is compiled for f32, or for f64 with family_f64_inc.h, until
 * family_end_inc.h. Defines its parameters: REAL is the number type, VECTOR a vector of WIDTH of
 * them, PAIR two vectors, ROOM the number of elements in 4 KiB, used for local buffers in loops
 * over single elements, and F(name) the family's function of that name. FOR_DTYPE calls an inline
 * function with the dtype of elements in memory (FOR_FORM with their form, see pairs.h) as a first
 * argument that is a compile-time constant. */
#define REAL    float
#define VECTOR  vf
#define PAIR    pair_f32
#define WIDTH   LANES
#define ROOM    BLOCK
#define F(name) name##_f32
#define FOR_DTYPE(dtype, call, ...)                   \
    ((dtype) == TN_BF16  ? call(TN_BF16, __VA_ARGS__) \
     : (dtype) == TN_F16 ? call(TN_F16, __VA_ARGS__)  \
                         : call(TN_F32, __VA_ARGS__))
#define FOR_FORM(form, call, ...) \
    ((form) == SPLIT_BF16 ? call(SPLIT_BF16, __VA_ARGS__) : FOR_DTYPE(form, call, __VA_ARGS__))
