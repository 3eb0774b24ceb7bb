#include "../../cpu_process.h"
#include "blis.h"

#if defined(__linux__)
#include <link.h>
#endif

/* More architectures than any release of BLIS has. */
enum { MOST_ARCHITECTURES = 128 };

/* The number of a set of kernels that this release has a name for, whether it is built or not; -1
 * if none exists. */
static int number_of(const tni_blis *self, const char *name)
{
    for (int i = 0; i < MOST_ARCHITECTURES; i++) {
        const char *found = self->name_of(i);
        if (!found || strcmp(found, name) == 0)
            return found ? i : -1;
        if (strcmp(found, "generic") == 0)
            return -1;
    }
    return -1;
}

#if defined(__linux__) && defined(__x86_64__)

/* If BLIS is configured for a set that it was not built with, it ends the process, and no function
 * reports the sets it was built with. But only its AVX-512 kernels use 512-bit registers. */
enum { ENOUGH = 64 };

/* vfmadd231ps of 512-bit registers, from Intel's manual: an EVEX prefix with its map, operand size
 * and length, and the opcode. */
static bool is_fma_512(const unsigned char *at)
{
    return at[0] == 0x62 && (at[1] & 0x0F) == 0x02 && (at[2] & 0x87) == 0x05 &&
           (at[3] & 0x60) == 0x40 && at[4] == 0xB8;
}

static int count_fma_512(const unsigned char *code, size_t size)
{
    enum { LENGTH = 5 };
    int count = 0;
    for (size_t i = 0; i + LENGTH <= size && count < ENOUGH; i++) {
        const unsigned char *at = memchr(code + i, 0x62, size - LENGTH + 1 - i);
        if (!at)
            break;
        count += is_fma_512(at);
        i = (size_t)(at - code);
    }
    return count;
}

typedef struct hunt {
    uintptr_t inside; /* an address of the library's code */
    bool found;
} hunt;

/* Searches the one segment that contains the address; ends the iteration there. */
static int look(struct dl_phdr_info *info, size_t size, void *user)
{
    hunt *h = user;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t begin = (uintptr_t)(info->dlpi_addr + segment->p_vaddr);
        const uint32_t wanted = PF_R | PF_X;
        if (segment->p_type != PT_LOAD || (segment->p_flags & wanted) != wanted ||
            h->inside < begin || h->inside - begin >= segment->p_filesz)
            continue;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader reports addresses as numbers
        h->found = count_fma_512((const unsigned char *)begin, segment->p_filesz) >= ENOUGH;
        return 1;
    }
    return 0;
}

static bool has_avx512_kernels(const tni_blis *self)
{
    hunt h = {.inside = (uintptr_t)self->init};
    (void)dl_iterate_phdr(look, &h);
    return h.found;
}

#else

static bool has_avx512_kernels(const tni_blis *self)
{
    (void)self;
    return false;
}

#endif

static void init(void *user)
{
    ((const tni_blis *)user)->init();
}

/* Does nothing for AMD's own BLIS, which handles its processors itself; it has names that this one
 * lacks. */
static int choose_arch(const tn_host *host, const tni_blis *self)
{
    tn_machine_facts facts;
    if (tni_cpu_variable_is_set("BLIS_ARCH_TYPE") || !tni_cpu_machine_read(host, &facts) ||
        !tni_cpu_machine_has(&facts, "avx512f,avx512bw,avx512dq,avx512vl") ||
        strstr(facts.model, "AMD") || number_of(self, "zen4") >= 0 || !has_avx512_kernels(self))
        return -1;
    return number_of(self, "skx");
}

void tni_blis_start(const tn_host *host, tni_blis *self)
{
    static char variable[32]; /* stays in the environment's list as long as that is used */
    int arch = choose_arch(host, self);
    if (arch >= 0)
        snprintf(variable, sizeof variable, "BLIS_ARCH_TYPE=%d", arch);
    if (arch < 0 || !tni_cpu_call_with(variable, init, self))
        self->init();
}
