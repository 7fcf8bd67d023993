/* The payload is a sequence of texts, each with a final 0. The first character says what a text is:
 *
 *   d FOLDER   s SECRET   f FIRST   n RANKS   w WORLD   g GRACE_MS   l (label)   b (bind)   u GPUS   a ARGUMENT
 *   e NAME=VALUE
 *
 * a and e may be repeated; an unknown character is an error, so that an older agent does not ignore what it must do. */
#include "run/host_part.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/frame.h"
#include "run/gpu_list.h"
#include "run/launch.h"

#define WORLD_MOST 65536 /* GYRE's own limit of ranks */
#define GRACE_MOST_MS 60000

static void put_lists(FILE *stream, const struct gy_host_part *part)
{
    for (const char **argument = part->argv; *argument; argument++)
        fprintf(stream, "a%s%c", *argument, 0);
    for (const char **variable = part->environment; *variable; variable++)
        fprintf(stream, "e%s%c", *variable, 0);
}

unsigned char *gy_host_part_encode(const struct gy_host_part *part, size_t *length_p)
{
    char *text = NULL;
    FILE *stream = open_memstream(&text, length_p);
    if (!stream)
        return NULL;
    fprintf(stream, "d%s%cs%s%c", part->folder, 0, part->secret, 0);
    fprintf(stream, "f%d%cn%d%cw%d%cg%d%c", part->first, 0, part->ranks, 0, part->world, 0, part->grace_ms, 0);
    if (part->label)
        fprintf(stream, "l%c", 0);
    if (part->bind)
        fprintf(stream, "b%c", 0);
    if (part->gpus)
        fprintf(stream, "u%s%c", part->gpus, 0);
    put_lists(stream, part);
    bool whole = !ferror(stream);
    if (fclose(stream) == 0 && whole && *length_p <= GY_FRAME_JOB_MOST)
        return (unsigned char *)text;
    free(text);
    errno = whole ? EMSGSIZE : ENOMEM;
    return NULL;
}

static bool number(const char *text, int least, int most, int *value_p)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || value < least || value > most)
        return false;
    *value_p = (int)value;
    return true;
}

/* Stores one text. `arguments` and `variables`: how many were stored before. */
static bool take(struct gy_host_part *part, const char *text, size_t *arguments, size_t *variables)
{
    const char *value = text + 1;
    switch (*text) {
    case 'd': part->folder = value; return true;
    case 's': part->secret = value; return true;
    case 'f': return number(value, 0, WORLD_MOST - 1, &part->first);
    case 'n': return number(value, 1, GY_LAUNCH_RANKS_MOST, &part->ranks);
    case 'w': return number(value, 1, WORLD_MOST, &part->world);
    case 'g': return number(value, 0, GRACE_MOST_MS, &part->grace_ms);
    case 'l': part->label = true; return *value == '\0';
    case 'b': part->bind = true; return *value == '\0';
    case 'u': part->gpus = value; return gy_gpu_list_check(value);
    case 'a': part->argv[(*arguments)++] = value; return true;
    case 'e': part->environment[(*variables)++] = value; return strchr(value, '=') && *value != '=';
    default: return false;
    }
}

static const char *check(const struct gy_host_part *part)
{
    if (!part->folder || !part->secret || part->ranks == 0 || part->world == 0 || !part->argv[0])
        return "a text is missing";
    return part->first > part->world - part->ranks ? "ranks outside of the world" : NULL;
}

const char *gy_host_part_decode(char *payload, size_t length, struct gy_host_part *part_p)
{
    size_t texts = 0, arguments = 0, variables = 0;
    *part_p = (struct gy_host_part){0};
    if (length == 0 || payload[length - 1] != '\0')
        return "it is cut off";
    for (size_t i = 0; i < length; i++)
        texts += payload[i] == '\0';
    part_p->argv = calloc(texts + 1, sizeof *part_p->argv);
    part_p->environment = calloc(texts + 1, sizeof *part_p->environment);
    if (!part_p->argv || !part_p->environment)
        return "there is no memory for it";
    for (char *text = payload; text < payload + length; text += strlen(text) + 1)
        if (!take(part_p, text, &arguments, &variables))
            return "it has a text that this version does not know";
    return check(part_p);
}

void gy_host_part_free(struct gy_host_part *part)
{
    free(part->argv);
    free(part->environment);
    *part = (struct gy_host_part){0};
}
