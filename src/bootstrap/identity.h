/* The identity of this process: rank, size, rendezvous address and shared secret. From gyre_config first, then from the
 * environment. */
#ifndef GY_BOOTSTRAP_IDENTITY_H
#define GY_BOOTSTRAP_IDENTITY_H

#include "core/config.h"
#include "core/error.h"
#include "net/address.h"
#include "net/handshake.h"

/* Characters of base64, or hexadecimal digits, in a secret of 128 random bits, at least. As many of either are
 * different, except once in a billion. */
#define GY_SECRET_LEAST 22
#define GY_SECRET_DIGITS 32
#define GY_SECRET_DIFFERENT 6

struct gy_launcher;

struct gy_identity {
    int rank, size;
    int local_rank;                     /* −1: not given */
    const struct gy_launcher *launcher; /* NULL: gyre_config gave rank and size */
    struct gy_address address;          /* kind NONE: not needed (size 1, or an exchange) */
    char address_from[64];              /* "GYRE_ADDRESS", for error messages */
    bool has_secret;
    bool insecure;                       /* no secret, and GYRE_INSECURE=1 */
    uint8_t key[GY_HANDSHAKE_KEY_BYTES]; /* from the secret; a constant without one */
    uint64_t label;                      /* hash of the launcher's run id, 0: none; ranks of other runs are refused */
    gyre_exchange_func exchange;         /* or NULL */
    void *exchange_user;
    void (*exchange_end)(void *user); /* the launcher's, called after bootstrap or its failure; NULL: nothing to end */
};

/* `identity_p` should be secret memory: it has a key until gy_identity_end. On failure it has none. */
gyre_status gy_identity_read(const gyre_config *user, const struct gy_config *config, struct gy_identity *identity_p,
                             struct gy_error *error);
/* For a joiner, which is told its rank later: the address (NONE if not given), the secret and torchrun's run. */
gyre_status gy_identity_read_joiner(const gyre_config *user, const struct gy_config *config,
                                    struct gy_identity *identity_p, struct gy_error *error);
/* After bootstrap: ends the exchange, and overwrites the key. */
void gy_identity_end(struct gy_identity *identity);

#endif
