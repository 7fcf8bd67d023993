/* What launchers say as text: Slurm's lists of hosts, lines of PMI-1. What is let through fits its place, is no longer
 * than what it was taken from, and has nothing in it that its grammar has not. */
#include <stdlib.h>
#include <string.h>

#include "bootstrap/launcher.h"
#include "fuzz/fuzz.h"

#define TEXT_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= TEXT_MAX)
        return 0;
    /* On the heap and of exact size, as the places are: reads and writes past an end are found. */
    char *text = malloc(size + 1), *host = malloc(64), *value = malloc(32);
    if (!text || !host || !value)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    if (gy_slurm_first_host(text, host, 64) &&
        (strlen(host) == 0 || strlen(host) > strlen(text) || strpbrk(host, "[], \n") != NULL))
        abort();
    if (gy_pmi_value(text, "value", value, 32) && (strlen(value) > strlen(text) || strchr(value, ' ') != NULL))
        abort();
    uint16_t port = gy_slurm_port(text, "0");
    if (port < 10000 || port >= 30000)
        abort();
    free(value);
    free(host);
    free(text);
    return 0;
}
