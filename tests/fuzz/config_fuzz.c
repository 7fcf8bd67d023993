/* The parsers of configuration values: bytes, seconds, addresses, and the names in GYRE_ALGORITHM. Whatever they let
 * through is in range, and they touch their output only then. */
#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/schedule.h"
#include "core/config.h"
#include "fuzz/fuzz.h"
#include "net/address.h"

#define TEXT_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= TEXT_MAX)
        return 0;
    /* On the heap and of exact size: a parser that reads past the end is seen. */
    char *text = malloc(size + 1);
    if (text == NULL)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';

    size_t bytes = 4711;
    if (!gy_parse_bytes(text, &bytes) && bytes != 4711)
        abort();
    int64_t nanoseconds = 4711;
    const bool seconds = gy_parse_seconds(text, &nanoseconds);
    if (seconds ? nanoseconds < 0 : nanoseconds != 4711)
        abort();
    enum gy_collective collective;
    if (gy_collective_find(text, &collective) && strcmp(gy_collective_name(collective), text) != 0)
        abort();
    enum gy_algorithm algorithm;
    if (gy_algorithm_find(text, &algorithm) && strcmp(gy_algorithm_name(algorithm), text) != 0)
        abort();
    struct gy_address address = {.kind = GY_ADDRESS_NONE};
    const bool understood = gy_address_parse(text, &address);
    if (understood != (address.kind != GY_ADDRESS_NONE))
        abort();
    free(text);
    return 0;
}
