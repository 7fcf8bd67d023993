/* See gcm.h. The library's functions are members of its manager, whose layout is given by its header: a library of
 * another minor version is not used. */
#include "net/gcm.h"

#include <sodium.h>
#include <string.h>

#if GY_IPSEC_MB
#include <dlfcn.h>
#include <intel-ipsec-mb.h>
#include <pthread.h>
#include <stdio.h>

#include "core/log.h"

#define LIBRARY "libIPSec_MB.so.1"
#define MINOR(version) ((version) >> 8)

static IMB_MGR *manager; /* for the life of the process; its functions for single pieces keep nothing in it */

/* dlsym gives an object pointer for a function: POSIX says that the bytes may be used so. */
static bool find(void *library, const char *name, void *function_p)
{
    void *found = dlsym(library, name);

    memcpy(function_p, &found, sizeof(found));
    return found != NULL;
}

static void open_library(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    unsigned (*version)(void);
    IMB_MGR *(*make)(uint64_t);
    void (*init)(IMB_MGR *, IMB_ARCH *);
    void (*give_back)(IMB_MGR *);
    IMB_ARCH architecture = IMB_ARCH_NONE;

    if (!library)
        return;
    if (!find(library, "imb_get_version", &version) || !find(library, "alloc_mb_mgr", &make) ||
        !find(library, "init_mb_mgr_auto", &init) || !find(library, "free_mb_mgr", &give_back) ||
        MINOR(version()) != MINOR((unsigned)IMB_VERSION_NUM)) {
        gy_log(GY_LOG_INFO, "%s is of another version than " IMB_VERSION_STR ": AES-256-GCM is libsodium's", LIBRARY);
        return;
    }
    IMB_MGR *made = make(0);
    if (!made)
        return;
    init(made, &architecture);
    if (architecture > IMB_ARCH_NOAESNI && architecture < IMB_ARCH_NUM &&
        (made->features & (IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ)) == (IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ))
        manager = made;
    else
        give_back(made);
}

static IMB_MGR *fast(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_library);
    return manager;
}

/* The piece at `in`, or the `more` bytes at `associated`, which travel as they are. */
struct piece {
    const uint8_t *in, *associated;
    uint8_t *out;
    size_t bytes, more;
};

static void run(IMB_MGR *m, bool seals, const uint8_t *key, const uint8_t *nonce, const struct piece *piece,
                uint8_t tag_p[GY_GCM_TAG_BYTES])
{
    struct gcm_key_data expanded;
    struct gcm_context_data context;

    IMB_AES256_GCM_PRE(m, key, &expanded);
    if (seals)
        IMB_AES256_GCM_ENC(m, &expanded, &context, piece->out, piece->in, piece->bytes, nonce, piece->associated,
                           piece->more, tag_p, GY_GCM_TAG_BYTES);
    else
        IMB_AES256_GCM_DEC(m, &expanded, &context, piece->out, piece->in, piece->bytes, nonce, piece->associated,
                           piece->more, tag_p, GY_GCM_TAG_BYTES);
    sodium_memzero(&expanded, sizeof(expanded));
    sodium_memzero(&context, sizeof(context));
}
#endif

bool gy_gcm_usable(void)
{
    return sodium_init() >= 0 && crypto_aead_aes256gcm_is_available();
}

#if GY_IPSEC_MB
bool gy_gcm_fast(void)
{
    return fast() != NULL;
}
#else
bool gy_gcm_fast(void)
{
    return false;
}
#endif

void gy_gcm_seal(const uint8_t key[GY_GCM_KEY_BYTES], const uint8_t nonce[GY_GCM_NONCE_BYTES], const uint8_t *plain,
                 size_t bytes, uint8_t *sealed_p, uint8_t tag_p[GY_GCM_TAG_BYTES])
{
#if GY_IPSEC_MB
    if (fast()) {
        run(fast(), true, key, nonce, &(struct piece){.in = plain, .out = sealed_p, .bytes = bytes}, tag_p);
        return;
    }
#endif
    crypto_aead_aes256gcm_encrypt_detached(sealed_p, tag_p, NULL, plain, bytes, NULL, 0, NULL, nonce, key);
}

bool gy_gcm_open(const uint8_t key[GY_GCM_KEY_BYTES], const uint8_t nonce[GY_GCM_NONCE_BYTES], uint8_t *bytes,
                 size_t count, const uint8_t tag[GY_GCM_TAG_BYTES])
{
#if GY_IPSEC_MB
    if (fast()) {
        uint8_t expected[GY_GCM_TAG_BYTES];

        run(fast(), false, key, nonce, &(struct piece){.in = bytes, .out = bytes, .bytes = count}, expected);
        return sodium_memcmp(expected, tag, sizeof(expected)) == 0;
    }
#endif
    return crypto_aead_aes256gcm_decrypt_detached(bytes, NULL, bytes, count, tag, NULL, 0, nonce, key) == 0;
}

void gy_gcm_authenticate(const uint8_t key[GY_GCM_KEY_BYTES], const uint8_t nonce[GY_GCM_NONCE_BYTES],
                         const uint8_t *bytes, size_t count, uint8_t tag_p[GY_GCM_TAG_BYTES])
{
#if GY_IPSEC_MB
    if (fast()) {
        run(fast(), true, key, nonce, &(struct piece){.associated = bytes, .more = count}, tag_p);
        return;
    }
#endif
    uint8_t nothing;
    crypto_aead_aes256gcm_encrypt_detached(&nothing, tag_p, NULL, NULL, 0, bytes, count, NULL, nonce, key);
}
