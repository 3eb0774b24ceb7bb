#include "machine_read.h"

/* Implementer and part numbers in MIDR_EL1 of cores by Arm and its licensees, for machines likely
 * to be used for computing. */
static const struct core {
    int32_t implementer, part;
    const char *name;
} cores[] = {
    {0x41, 0xc07, "Cortex-A7"},
    {0x41, 0xc08, "Cortex-A8"},
    {0x41, 0xc09, "Cortex-A9"},
    {0x41, 0xc0d, "Cortex-A17"},
    {0x41, 0xc0e, "Cortex-A17"},
    {0x41, 0xc0f, "Cortex-A15"},
    {0x41, 0xd03, "Cortex-A53"},
    {0x41, 0xd04, "Cortex-A35"},
    {0x41, 0xd05, "Cortex-A55"},
    {0x41, 0xd07, "Cortex-A57"},
    {0x41, 0xd08, "Cortex-A72"},
    {0x41, 0xd09, "Cortex-A73"},
    {0x41, 0xd0a, "Cortex-A75"},
    {0x41, 0xd0b, "Cortex-A76"},
    {0x41, 0xd0c, "Neoverse-N1"},
    {0x41, 0xd0d, "Cortex-A77"},
    {0x41, 0xd0e, "Cortex-A76AE"},
    {0x41, 0xd40, "Neoverse-V1"},
    {0x41, 0xd41, "Cortex-A78"},
    {0x41, 0xd42, "Cortex-A78AE"},
    {0x41, 0xd43, "Cortex-A65AE"},
    {0x41, 0xd44, "Cortex-X1"},
    {0x41, 0xd46, "Cortex-A510"},
    {0x41, 0xd47, "Cortex-A710"},
    {0x41, 0xd48, "Cortex-X2"},
    {0x41, 0xd49, "Neoverse-N2"},
    {0x41, 0xd4a, "Neoverse-E1"},
    {0x41, 0xd4b, "Cortex-A78C"},
    {0x41, 0xd4c, "Cortex-X1C"},
    {0x41, 0xd4d, "Cortex-A715"},
    {0x41, 0xd4e, "Cortex-X3"},
    {0x41, 0xd4f, "Neoverse-V2"},
    {0x41, 0xd80, "Cortex-A520"},
    {0x41, 0xd81, "Cortex-A720"},
    {0x41, 0xd82, "Cortex-X4"},
    {0x41, 0xd83, "Neoverse-V3AE"},
    {0x41, 0xd84, "Neoverse-V3"},
    {0x41, 0xd85, "Cortex-X925"},
    {0x41, 0xd87, "Cortex-A725"},
    {0x41, 0xd8e, "Neoverse-N3"},
    {0x42, 0x516, "ThunderX2"},
    {0x43, 0x0a1, "ThunderX"},
    {0x43, 0x0af, "ThunderX2"},
    {0x46, 0x001, "A64FX"},
    {0x48, 0xd01, "Kunpeng-920"},
    {0x4e, 0x000, "Denver"},
    {0x4e, 0x003, "Denver 2"},
    {0x4e, 0x004, "Carmel"},
    {0x51, 0x001, "Oryon"},
    {0x51, 0x800, "Kryo 2xx gold"},
    {0x51, 0x801, "Kryo 2xx silver"},
    {0x51, 0x802, "Kryo 3xx gold"},
    {0x51, 0x803, "Kryo 3xx silver"},
    {0x51, 0x804, "Kryo 4xx gold"},
    {0x51, 0x805, "Kryo 4xx silver"},
    {0x51, 0xc00, "Falkor"},
    {0x61, 0x022, "Icestorm (M1)"},
    {0x61, 0x023, "Firestorm (M1)"},
    {0x61, 0x032, "Blizzard (M2)"},
    {0x61, 0x033, "Avalanche (M2)"},
    {0x6d, 0xd49, "Azure Cobalt 100"},
    {0xc0, 0xac3, "Ampere-1"},
    {0xc0, 0xac4, "Ampere-1a"},
};

const char *tni_arm_core_words(tni_reading *reading, int32_t implementer, int32_t part)
{
    for (size_t i = 0; i < sizeof cores / sizeof cores[0]; i++) {
        if (cores[i].implementer == implementer && cores[i].part == part)
            return cores[i].name;
    }
    return tni_reading_format(reading, "Arm implementer 0x%02x part 0x%03x", (unsigned)implementer,
                              (unsigned)part);
}
