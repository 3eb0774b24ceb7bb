/* AMX tile registers: four of sums, computed from two of A and two of B. They are per thread. */
#ifndef TENON_BACKENDS_CPU_AMX_H
#define TENON_BACKENDS_CPU_AMX_H

#include "vector.h"

/* Register numbers. Instructions require literals. */
#define SUM_00 0
#define SUM_01 1
#define SUM_10 2
#define SUM_11 3
#define A_0    4
#define A_1    5
#define B_0    6
#define B_1    7

enum { AMX_REGISTERS = 8, AMX_ROWS = 16, AMX_ROW_BYTES = 64 };

/* A compiler barrier: the compiler does not know that tile registers are loaded from memory and
 * stored to it. */
INLINE void order_memory(const void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

/* Configures the registers, until _tile_release: whole rows; those of sums and A have at most
 * `rows` rows. */
INLINE void amx_configure(int64_t rows)
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
    order_memory(&form);
    _tile_loadconfig(&form);
}

#endif
