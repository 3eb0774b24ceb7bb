/* What both stub libraries know: the environment, names and UUIDs. */
#include "stub.h"

size_t stub_number(const char *name, size_t standard)
{
    const char *text = getenv(name);
    return text && text[0] ? (size_t)strtoull(text, NULL, 10) : standard;
}

void stub_read_environment(stub_state *out)
{
    out->physical = (int)stub_number("STUB_DEVICES", 2);
    if (out->physical > STUB_DEVICES_MOST)
        out->physical = STUB_DEVICES_MOST;
    out->memory = stub_number("STUB_MEMORY", (size_t)256 << 20);
    out->pitch = stub_number("STUB_PITCH", 2147483647);
    out->pools = stub_number("STUB_POOLS", 1) != 0;
    out->peers = stub_number("STUB_PEERS", 1) != 0;
    out->modules = stub_number("STUB_MODULES", 1) != 0;
    out->mixed = stub_number("STUB_MIXED", 0) != 0;
    out->split = stub_number("STUB_MIG", 0) != 0;
    out->lose = getenv("STUB_LOSE");
    out->full = getenv("STUB_FULL");
    out->log = getenv("STUB_LOG");
}

void stub_name(const stub_state *of, int physical, char *out, size_t size)
{
    bool other = of->mixed && physical == of->physical - 1;
    snprintf(out, size, "Stub GPU%s%s", other ? " Fast" : "", of->split ? " MIG 1g.1gb" : "");
}

void stub_uuid(int physical, unsigned char out[16])
{
    for (int i = 0; i < 16; i++)
        out[i] = (unsigned char)(0xA0 + i);
    out[0] = (unsigned char)(physical * 16 + 1);
}
