#undef REAL
#undef VECTOR
#undef WIDTH
#undef F
