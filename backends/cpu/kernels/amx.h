/* AMX's registers: four of sums, which two of A and two of B are multiplied into. They belong to a thread. */
#ifndef TENON_BACKENDS_CPU_KERNELS_AMX_H
#define TENON_BACKENDS_CPU_KERNELS_AMX_H

#include "vector.h"

/* Numbers of registers, which instructions want as literals. */
#define SUM_00 0
#define SUM_01 1
#define SUM_10 2
#define SUM_11 3
#define A_0    4
#define A_1    5
#define B_0    6
#define B_1    7

enum { AMX_REGISTERS = 8, AMX_ROWS = 16, AMX_ROW_BYTES = 64 };

/* The compiler does not know that registers are loaded from memory and stored there: what is there is so now. */
INLINE void settle(const void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

/* Until _tile_release: registers of whole rows, of sums and A at most `rows` of them. */
INLINE void amx_begin(int64_t rows)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } form = {.palette = 1};
    for (int i = 0; i < AMX_REGISTERS; i++) {
        const bool whole = i == B_0 || i == B_1 || rows > AMX_ROWS;
        form.bytes[i] = AMX_ROW_BYTES;
        form.rows[i] = (uint8_t)(whole ? AMX_ROWS : rows);
    }
    settle(&form);
    _tile_loadconfig(&form);
}

#endif
