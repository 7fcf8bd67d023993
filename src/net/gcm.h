/* AES-256-GCM by the fastest available implementation. That is Intel's multi-buffer library, opened at run time where
 * it is installed: vectors of AES and carry-less multiplications, 22 GB/s, and 31 for a tag alone, on an AMD EPYC of
 * family 26. Otherwise it is libsodium (2.4 GB/s). Both give the same bytes. A pair of key and nonce is used once. */
#ifndef GY_NET_GCM_H
#define GY_NET_GCM_H

#include "core/base.h"

#define GY_GCM_KEY_BYTES 32
#define GY_GCM_NONCE_BYTES 12
#define GY_GCM_TAG_BYTES 16

/* True if this processor has what AES-256-GCM needs. */
bool gy_gcm_usable(void);
/* True if the multi-buffer library is there. The first call opens it. */
bool gy_gcm_fast(void);

/* `sealed_p` may be `plain`. gy_gcm_usable. */
void gy_gcm_seal(const uint8_t key[GY_GCM_KEY_BYTES], const uint8_t nonce[GY_GCM_NONCE_BYTES], const uint8_t *plain,
                 size_t bytes, uint8_t *sealed_p, uint8_t tag_p[GY_GCM_TAG_BYTES]);
/* In place; false: the tag does not fit, and the bytes are meaningless. gy_gcm_usable. */
bool gy_gcm_open(const uint8_t key[GY_GCM_KEY_BYTES], const uint8_t nonce[GY_GCM_NONCE_BYTES], uint8_t *bytes,
                 size_t count, const uint8_t tag[GY_GCM_TAG_BYTES]);
/* The tag over bytes that travel as they are (GMAC). gy_gcm_usable; 2.5 GB/s by libsodium. */
void gy_gcm_authenticate(const uint8_t key[GY_GCM_KEY_BYTES], const uint8_t nonce[GY_GCM_NONCE_BYTES],
                         const uint8_t *bytes, size_t count, uint8_t tag_p[GY_GCM_TAG_BYTES]);

#endif
