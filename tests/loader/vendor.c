/* A vendor's library with two versions of one function, as glibc has them; the older build of it
 * has the first alone. */
int stub_answer_1(void);
int stub_answer_2(void);
int stub_release(void);

#if STUB_VENDOR_RELEASE == 1
__asm__(".symver stub_answer_1, stub_answer@@STUB_1");
#else
__asm__(".symver stub_answer_1, stub_answer@STUB_1");
__asm__(".symver stub_answer_2, stub_answer@@STUB_2");
int stub_answer_2(void)
{
    return 2;
}
#endif

int stub_answer_1(void)
{
    return 1;
}

int stub_release(void)
{
    return STUB_VENDOR_RELEASE;
}
