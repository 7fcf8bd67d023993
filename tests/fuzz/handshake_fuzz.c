/* The handshake of every socket, against a peer that does not hold the key. The first byte of the input chooses:
 *
 *   even   the rest is what an unauthenticated peer sends to an acceptor (bit 1 clear) or to an initiator (bit 1 set),
 *          in pieces: it must never end in DONE
 *   odd    two honest sides talk, and the rest is XORed over what passes between them: if a bit was changed, not both
 *          may end in DONE, and if none was, both must */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "net/address.h"
#include "net/handshake.h"

#define JOB UINT64_C(0x6a6f62)
#define SIZE 8u
#define MODE GY_INTEGRITY_ENCRYPT

static const uint8_t key[GY_HANDSHAKE_KEY_BYTES] = "nobody outside knows this key...";

static void drain(struct gy_handshake *side)
{
    const uint8_t *bytes;
    for (size_t count; (count = gy_handshake_take(side, &bytes)) > 0;)
        gy_handshake_taken(side, count);
}

/* The piece sizes come from the input too, so that every split of a message is met. */
static void stranger(struct gy_handshake *side, const uint8_t *data, size_t size)
{
    while (size > 0 && side->state == GY_HANDSHAKE_RUNNING) {
        const size_t wanted = gy_handshake_wants(side);
        check(wanted > 0 && wanted <= GY_HANDSHAKE_BYTES_MAX);
        const size_t piece = 1 + data[0] % size;
        gy_handshake_feed(side, data, piece);
        data += piece;
        size -= piece;
        drain(side);
    }
    check(side->state != GY_HANDSHAKE_DONE);
}

struct noise {
    const uint8_t *data;
    size_t size;
    bool changed;
};

/* Moves what `from` has to say to `to`, through the noise; false when there was nothing. */
static bool pass(struct gy_handshake *from, struct gy_handshake *to, struct noise *noise)
{
    const uint8_t *bytes;
    size_t count = gy_handshake_take(from, &bytes);
    if (count == 0)
        return false;
    uint8_t message[GY_HANDSHAKE_BYTES_MAX];
    check(count <= sizeof message);
    for (size_t i = 0; i < count; i++) {
        const uint8_t change = noise->size > 0 ? *noise->data : 0;
        if (noise->size > 0) {
            noise->data++;
            noise->size--;
        }
        noise->changed |= change != 0;
        message[i] = bytes[i] ^ change;
    }
    gy_handshake_taken(from, count);
    if (to->state == GY_HANDSHAKE_RUNNING)
        gy_handshake_feed(to, message, count);
    return true;
}

static void tampered(const uint8_t *data, size_t size)
{
    struct gy_handshake initiator, acceptor;
    struct noise noise = {.data = data, .size = size};
    gy_handshake_initiate(&initiator, key, JOB, GY_PURPOSE_TCP, 3, 1, MODE);
    gy_handshake_accept(&acceptor, key, JOB, 1, SIZE, 1u << GY_PURPOSE_TCP, MODE);
    for (int turn = 0; turn < 16; turn++) {
        const bool forth = pass(&initiator, &acceptor, &noise);
        const bool back = pass(&acceptor, &initiator, &noise);
        if (!forth && !back)
            break;
    }
    const bool both = initiator.state == GY_HANDSHAKE_DONE && acceptor.state == GY_HANDSHAKE_DONE;
    check(both == !noise.changed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const uint8_t mode = data[0];
    if (mode & 1) {
        tampered(data + 1, size - 1);
        return 0;
    }
    struct gy_handshake side;
    if (mode & 2)
        gy_handshake_initiate(&side, key, JOB, GY_PURPOSE_OVERLAY, 2, 5, MODE);
    else
        gy_handshake_accept(&side, key, JOB, 5, SIZE, 1u << GY_PURPOSE_OVERLAY | 1u << GY_PURPOSE_BOOTSTRAP, MODE);
    stranger(&side, data + 1, size - 1);

    struct sockaddr_storage address;
    if (size >= GY_ADDRESS_WIRE && gy_address_decode(data, &address)) {
        uint8_t wire[GY_ADDRESS_WIRE];
        struct sockaddr_storage again;
        gy_address_encode(&address, wire);
        check(gy_address_decode(wire, &again) && gy_address_port(&again) == gy_address_port(&address));
    }
    return 0;
}
