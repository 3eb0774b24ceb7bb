#undef REAL
#undef OF
#undef MATH
