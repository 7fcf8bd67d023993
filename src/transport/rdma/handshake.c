/* The one message of an rdma connection, before its one byte "ready": little-endian, fixed offsets.
 *
 *    0 magic u32 | 4 version u16 | 6 queue pairs u16 | 8 ring bytes u64 | 16 words u64 | 24 secret u64 | 32 their key
 *    u32
 *   36 28 zero bytes
 *   64 + 48·i: queue pair u32 | packet number u32 | ring u64 | key u32 | lid u16 | mtu u8 | ethernet u8 | GID 16
 *              | reads u8 | 7 zero bytes
 *
 * Both directions are pure; decoded lengths and numbers are bounded. */
#include <string.h>

#include "net/byte_codec.h"
#include "transport/rdma/internal.h"

#define MAGIC 0x72646779u /* "ygdr" */
#define VERSION 5
#define HEAD_BYTES 64
#define END_BYTES 48
#define RING_LEAST (UINT64_C(1) << 12)
#define RING_MOST (UINT64_C(1) << 28)

_Static_assert(HEAD_BYTES + GY_RDMA_PATHS * END_BYTES == GY_RDMA_HELLO_BYTES, "the message holds all queue pairs");

void gy_rdma_hello_encode(const struct gy_rdma_hello *hello, uint8_t wire_p[GY_RDMA_HELLO_BYTES])
{
    struct gy_wire wire = gy_wire_over(wire_p, GY_RDMA_HELLO_BYTES);

    memset(wire_p, 0, GY_RDMA_HELLO_BYTES);
    gy_wire_put(&wire, MAGIC, 4);
    gy_wire_put(&wire, VERSION, 2);
    gy_wire_put(&wire, (uint16_t)hello->paths, 2);
    gy_wire_put(&wire, hello->ring_bytes, 8);
    gy_wire_put(&wire, hello->words, 8);
    gy_wire_put(&wire, hello->secret, 8);
    gy_wire_put(&wire, hello->words_key, 4);
    for (int i = 0; i < hello->paths; i++) {
        const struct gy_rdma_end *end = &hello->end[i];

        wire.at = wire_p + HEAD_BYTES + i * END_BYTES;
        gy_wire_put(&wire, end->qp, 4);
        gy_wire_put(&wire, end->psn, 4);
        gy_wire_put(&wire, end->ring, 8);
        gy_wire_put(&wire, end->key, 4);
        gy_wire_put(&wire, end->lid, 2);
        gy_wire_put(&wire, end->mtu, 1);
        gy_wire_put(&wire, end->ethernet, 1);
        gy_wire_put_bytes(&wire, end->gid, sizeof(end->gid));
        gy_wire_put(&wire, end->reads, 1);
    }
}

static bool end_decode(struct gy_wire *wire, struct gy_rdma_end *end_p)
{
    uint64_t ethernet;

    end_p->qp = (uint32_t)gy_wire_get(wire, 4);
    end_p->psn = (uint32_t)gy_wire_get(wire, 4);
    end_p->ring = gy_wire_get(wire, 8);
    end_p->key = (uint32_t)gy_wire_get(wire, 4);
    end_p->lid = (uint16_t)gy_wire_get(wire, 2);
    end_p->mtu = (uint8_t)gy_wire_get(wire, 1);
    ethernet = gy_wire_get(wire, 1);
    end_p->ethernet = ethernet != 0;
    gy_wire_get_bytes(wire, end_p->gid, sizeof(end_p->gid));
    end_p->reads = (uint8_t)gy_wire_get(wire, 1);
    return gy_wire_get(wire, 7) == 0 && end_p->reads >= 1 && ethernet <= 1 && end_p->qp < 1u << 24 &&
           end_p->psn < 1u << 24 && end_p->mtu >= IBV_MTU_256 && end_p->mtu <= IBV_MTU_4096;
}

bool gy_rdma_hello_decode(const uint8_t wire_bytes[GY_RDMA_HELLO_BYTES], struct gy_rdma_hello *hello_p)
{
    uint8_t copy[GY_RDMA_HELLO_BYTES];
    struct gy_wire wire = gy_wire_over(copy, sizeof(copy));
    struct gy_rdma_hello hello = {0};
    uint8_t rest = 0;

    memcpy(copy, wire_bytes, sizeof(copy));
    bool known = gy_wire_get(&wire, 4) == MAGIC;
    known = gy_wire_get(&wire, 2) == VERSION && known;
    hello.paths = (int)gy_wire_get(&wire, 2);
    hello.ring_bytes = gy_wire_get(&wire, 8);
    hello.words = gy_wire_get(&wire, 8);
    hello.secret = gy_wire_get(&wire, 8);
    hello.words_key = (uint32_t)gy_wire_get(&wire, 4);
    if (!known || hello.paths < 1 || hello.paths > GY_RDMA_PATHS || hello.ring_bytes < RING_LEAST ||
        hello.ring_bytes > RING_MOST || (hello.ring_bytes & (hello.ring_bytes - 1)) != 0)
        return false;
    while (wire.at < copy + HEAD_BYTES)
        rest |= *wire.at++;
    for (int i = 0; i < hello.paths; i++)
        if (!end_decode(&wire, &hello.end[i]))
            return false;
    while (wire.at < copy + sizeof(copy))
        rest |= *wire.at++;
    if (rest != 0)
        return false;
    *hello_p = hello;
    return true;
}
