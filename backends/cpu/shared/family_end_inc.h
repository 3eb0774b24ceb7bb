/* Ends a family; see family_f32_inc.h. */
#undef REAL
#undef VECTOR
#undef PAIR
#undef WIDTH
#undef ROOM
#undef F
#undef FOR_DTYPE
#undef FOR_FORM
