#include "machine_read.h"

#include "os/sha256.h"

/* The system's own id must not be disclosed, so it is hashed, with a prefix so that the hash
 * differs from those of other programs. */
void tni_machine_uuid(const char *kind, tni_span text, char out[TNI_UUID_SIZE])
{
    static const char purpose[] = "tenon cpu device";
    unsigned char digest[TNI_SHA256_SIZE];
    char hex[TNI_SHA256_HEX];
    tni_sha256 hash;
    tni_sha256_begin(&hash);
    tni_sha256_add(&hash, purpose, sizeof purpose);
    tni_sha256_add(&hash, kind, strlen(kind) + 1);
    tni_sha256_add(&hash, text.text, text.length);
    tni_sha256_end(&hash, digest);
    digest[6] = (unsigned char)((digest[6] & 0x0F) | 0x80); /* version 8: custom format */
    digest[8] = (unsigned char)((digest[8] & 0x3F) | 0x80); /* variant of RFC 9562 */
    tni_sha256_hex(digest, hex);
    snprintf(out, TNI_UUID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
             hex + 20);
}
