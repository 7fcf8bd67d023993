/* What ranks tell each other while they meet: they hold the key, but may be of a broken build. The first byte of the
 * input chooses the decoder; the rest is the body of the message, in memory of exactly its size.
 *
 *   TABLE     what is accepted says the same when it is encoded again
 *   FAILED    what is accepted has a status of ours and an error message that ends
 *   settings  compared with ours: what is shown of a difference is bounded and printable; without one, each of our
 *   lines
 *             is in theirs */
#include <stdlib.h>
#include <string.h>

#include "bootstrap/messages.h"
#include "core/mem.h"
#include "fuzz/fuzz.h"

#define RANKS 3

static void table(uint8_t *body, size_t size)
{
    struct gy_member members[RANKS] = {0};
    struct gy_world world = {.size = RANKS, .members = members};
    uint8_t *again;
    size_t bytes;

    if (!gy_bootstrap_table_decode(&world, body, size))
        return;
    check(gy_bootstrap_table_encode(&world, &again, &bytes) && bytes == size);
    for (int rank = 0; rank < RANKS; rank++) {
        /* An address has bytes that its family does not use; all before it is taken as it is. */
        size_t at = 4 + (size_t)rank * GY_MEMBER_WIRE;

        check(memcmp(again + at, body + at, GY_MEMBER_WIRE - GY_ADDRESS_WIRE) == 0);
        check(members[rank].pid > 0);
    }
    gy_free(again);
}

static void failed(uint8_t *body, size_t size)
{
    struct gy_error error = {.rank = -1};

    if (!gy_bootstrap_failed_decode(body, size, &error)) {
        check(error.status == GYRE_SUCCESS);
        return;
    }
    check(gy_status_is_failure(error.status) && strlen(error.text) <= GY_BOOTSTRAP_TEXT);
}

static void printable(const char *text, size_t room)
{
    check(memchr(text, 0, room) != NULL);
    for (; *text; text++)
        check(*text >= ' ' && *text <= '~');
}

static void settings(const uint8_t *body, size_t size)
{
    static const char mine[] = "GYRE_TCP_TILE=1\nGYRE_ALGORITHM=\n";
    struct gy_config_difference difference;
    char *theirs = calloc(1, size + 1);

    check(theirs != NULL);
    memcpy(theirs, body, size);
    if (gy_config_differs(mine, theirs, &difference)) {
        printable(difference.name, sizeof(difference.name));
        printable(difference.mine, sizeof(difference.mine));
        printable(difference.theirs, sizeof(difference.theirs));
    } else {
        check(strstr(theirs, "GYRE_TCP_TILE=1") && strstr(theirs, "GYRE_ALGORITHM"));
    }
    free(theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *body;

    if (size == 0)
        return 0;
    body = malloc(size - 1 ? size - 1 : 1); /* exactly: one byte behind it is an error that the sanitizer sees */
    check(body != NULL);
    memcpy(body, data + 1, size - 1);
    if (data[0] % 3 == 0)
        table(body, size - 1);
    else if (data[0] % 3 == 1)
        failed(body, size - 1);
    else
        settings(body, size - 1);
    free(body);
    return 0;
}
