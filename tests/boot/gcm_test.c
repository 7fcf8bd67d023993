/* AES-256-GCM by the library that is there (net/gcm.h), beside libsodium's: the same bytes and tags, of every length
 * and alignment. */
#include <criterion/criterion.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "net/gcm.h"

#define MOST 70000

static uint8_t key[GY_GCM_KEY_BYTES], nonce[GY_GCM_NONCE_BYTES], plain[MOST + 64], ours[MOST + 64], theirs[MOST + 64];

static void fill(void *bytes_p, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++)
        ((uint8_t *)bytes_p)[i] = (uint8_t)rand_r(&seed);
}

static void compare(size_t bytes, size_t shift)
{
    uint8_t tag[GY_GCM_TAG_BYTES], expected[GY_GCM_TAG_BYTES], nothing;

    fill(key, sizeof(key), (unsigned)bytes);
    fill(nonce, sizeof(nonce), (unsigned)bytes + 1);
    fill(plain, sizeof(plain), (unsigned)bytes + 2);
    gy_gcm_seal(key, nonce, plain + shift, bytes, ours + shift, tag);
    crypto_aead_aes256gcm_encrypt_detached(theirs + shift, expected, NULL, plain + shift, bytes, NULL, 0, NULL, nonce,
                                           key);
    cr_assert_arr_eq(tag, expected, sizeof(tag), "tag of %zu bytes", bytes);
    cr_assert_arr_eq(ours + shift, theirs + shift, bytes, "%zu bytes", bytes);
    ours[shift] ^= bytes > 0; /* of nothing: the tag alone */
    tag[0] ^= bytes == 0;
    cr_assert_not(gy_gcm_open(key, nonce, ours + shift, bytes, tag));
    cr_assert(gy_gcm_open(key, nonce, theirs + shift, bytes, expected));
    cr_assert_arr_eq(theirs + shift, plain + shift, bytes);
    gy_gcm_authenticate(key, nonce, plain + shift, bytes, tag);
    crypto_aead_aes256gcm_encrypt_detached(&nothing, expected, NULL, NULL, 0, plain + shift, bytes, NULL, nonce, key);
    cr_assert_arr_eq(tag, expected, sizeof(tag), "tag alone of %zu bytes", bytes);
}

Test(gcm, gives_what_libsodium_gives)
{
    if (!gy_gcm_usable())
        cr_skip_test("this processor has no AES");
    for (size_t bytes = 0; bytes < 600; bytes++)
        compare(bytes, bytes % 33);
    for (size_t bytes = 600; bytes < MOST; bytes = bytes * 3 / 2 + 1)
        compare(bytes, bytes % 64);
}

Test(gcm, seals_in_place)
{
    uint8_t tag[GY_GCM_TAG_BYTES];

    if (!gy_gcm_usable())
        cr_skip_test("this processor has no AES");
    fill(plain, 1000, 1);
    memcpy(ours, plain, 1000);
    gy_gcm_seal(key, nonce, ours, 1000, ours, tag);
    cr_assert(memcmp(ours, plain, 1000) != 0);
    cr_assert(gy_gcm_open(key, nonce, ours, 1000, tag));
    cr_assert_arr_eq(ours, plain, 1000);
}
