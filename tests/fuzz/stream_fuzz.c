/* Messages of bootstrap and overlay, over a real socket. The first byte of the input chooses the suite and the
 * sender:
 *
 *   bit 7 clear   the rest arrives, byte for byte: no message is longer than the limit, and at mac and above none is
 *                 delivered at all, since an unauthenticated peer has no key
 *   bit 7 set     an honest peer sends five messages, and the rest is a program of changes to the bytes on the way:
 *                 what is delivered is the first of these, whole and in order, and nothing else; at crc too, for the
 *                 changes are small */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "net/gcm.h"
#include "net/message_stream.h"

#define LIMIT 300u
#define MESSAGES 5u
#define WAY 2048

static struct gy_poller *poller;
static unsigned delivered;
static bool honest;

static size_t length_of(unsigned message)
{
    return message * 61 % LIMIT;
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    (void)user;
    check(bytes <= LIMIT && stream->fd >= 0);
    if (honest)
        check(kind == delivered + 1 && bytes == length_of(delivered));
    for (size_t i = 0; i < bytes && honest; i++)
        check(body[i] == (uint8_t)(i * 7 + delivered));
    delivered++;
}

static void open_stream(struct gy_stream *stream, int fd, const struct gy_seal_keys *keys)
{
    struct gy_error error = {.rank = -1};
    check(gy_stream_open(stream, poller, fd, keys, LIMIT, on_message, ignore_end, NULL, &error) == GYRE_SUCCESS);
}

/* What an honest peer says, as it leaves; returns the bytes. */
static size_t speak(const struct gy_seal_keys *keys, uint8_t *way_p)
{
    struct gy_stream stream = {0};
    int ends[2];
    uint8_t body[LIMIT];
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    open_stream(&stream, ends[0], keys);
    for (unsigned m = 0; m < MESSAGES; m++) {
        for (size_t i = 0; i < length_of(m); i++)
            body[i] = (uint8_t)(i * 7 + m);
        check(gy_stream_send(&stream, (uint8_t)(m + 1), body, length_of(m)));
    }
    const ssize_t got = recv(ends[1], way_p, WAY, 0);
    gy_stream_close(&stream);
    close(ends[1]);
    check(got > 0 && got < WAY);
    return (size_t)got;
}

/* Steps of three bytes: what, where, how much. Returns the bytes that are left; *changed_p: are they others? */
static size_t tamper(uint8_t *way, size_t bytes, const uint8_t *data, size_t size, bool *changed_p)
{
    uint8_t before[WAY], piece[64];
    const size_t all = bytes;
    memcpy(before, way, bytes);
    for (; size >= 3; data += 3, size -= 3) {
        const size_t where = bytes ? (size_t)(data[1] * 257u + data[2]) % bytes : 0;
        size_t count = 1 + data[2] % 64u;
        if (bytes - where < 2 * count || bytes + count > WAY)
            continue;
        switch (data[0] % 4) {
        case 0: way[where] ^= (uint8_t)(1u << data[2] % 8); break;
        case 1:
            memmove(way + where, way + where + count, bytes - where - count);
            bytes -= count;
            break;
        case 2:
            memmove(way + where + count, way + where, bytes - where);
            bytes += count;
            break;
        default:
            memcpy(piece, way + where, count);
            memmove(way + where, way + where + count, count);
            memcpy(way + where + count, piece, count);
        }
    }
    *changed_p = bytes != all || memcmp(before, way, bytes) != 0;
    return bytes;
}

static void hear(const struct gy_seal_keys *keys, const uint8_t *bytes, size_t count)
{
    struct gy_stream stream = {0};
    int ends[2];
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    open_stream(&stream, ends[0], keys);
    delivered = 0;
    while (count > 0) {
        const size_t piece = count < 1 + bytes[0] % 97u ? count : 1 + bytes[0] % 97u;
        (void)!send(ends[1], bytes, piece, MSG_NOSIGNAL);
        gy_stream_drain(&stream);
        bytes += piece;
        count -= piece;
    }
    gy_stream_close(&stream);
    close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gy_error error = {.rank = -1};
    uint8_t way[WAY];
    bool changed = false;
    if (size == 0)
        return 0;
    if (!poller)
        check(gy_poller_create(&poller, &error) == GYRE_SUCCESS);
    struct gy_seal_keys keys = {.suite = (enum gy_suite)(data[0] % GY_SUITES)};
    if ((keys.suite == GY_SUITE_AES || keys.suite == GY_SUITE_GMAC) && !gy_gcm_usable())
        keys.suite = GY_SUITE_CHACHA;
    honest = data[0] & 0x80;
    /* The honest one's key is another: the fuzzer finds out, through comparisons, what was sealed, and says it
     * again. */
    memset(keys.out, honest ? 0x5a : 0xa5, sizeof(keys.out));
    memcpy(keys.in, keys.out, sizeof(keys.in));
    if (!honest) {
        hear(&keys, data + 1, size - 1);
        check(keys.suite < GY_SUITE_MAC || delivered == 0);
        return 0;
    }
    if (keys.suite == GY_SUITE_OFF)
        return 0;
    const size_t bytes = tamper(way, speak(&keys, way), data + 1, size - 1, &changed);
    hear(&keys, way, bytes);
    check(changed || delivered == MESSAGES);
    check(delivered <= MESSAGES);
    return 0;
}
