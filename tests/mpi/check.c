#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN = 0x77, MOST_REPORTS = 10 };

static char *memory[3];
static int failures;

struct check check_begin(MPI_Comm comm, const struct type *type, size_t count, bool factors)
{
    struct check it = {.comm = comm, .count = count, .type = type, .words = ""};
    MPI_Comm_rank(comm, &it.rank);
    MPI_Comm_size(comm, &it.size);
    it.bytes = ((size_t)it.size + 1) * (count + 1) * 16;
    for (int i = 0; i < 3; i++) {
        free(memory[i]);
        memory[i] = calloc(1, it.bytes);
        if (!memory[i])
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    it.in = memory[0];
    it.out = memory[1];
    it.expected = memory[2];
    type_fill(type, it.in, 0, count * (size_t)it.size, it.rank, factors);
    check_again(&it);
    return it;
}

void check_again(struct check *check)
{
    memset(check->out, PATTERN, check->bytes);
    memset(check->expected, PATTERN, check->bytes);
}

void check_expect(struct check *check, size_t at, size_t count, int rank, size_t first)
{
    type_fill(check->type, check->expected + at * check->type->extent, first, count, rank, false);
}

void check_expect_reduced(struct check *check, size_t at, size_t count, size_t first, enum rule rule, bool factors)
{
    for (size_t i = 0; i < count; i++) {
        struct number result = type_number(check->type, first + i, 0, factors);
        for (int rank = 1; rank < check->size; rank++)
            result = operation_apply(rule, result, type_number(check->type, first + i, rank, factors));
        type_put(check->type, check->expected + (at + i) * check->type->extent, result);
    }
}

static void report(const struct check *check, const char *call, size_t byte)
{
    if (failures++ < MOST_REPORTS)
        fprintf(stderr, "rank %d of %d: MPI_%s: %s, %s, %zu elements: byte %zu is 0x%02x and should be 0x%02x\n",
                check->rank, check->size, call, check->type->name, check->words, check->count, byte,
                (unsigned char)check->out[byte], (unsigned char)check->expected[byte]);
}

void check_end_of(struct check *check, const char *call, size_t bytes)
{
    type_clean(check->type, check->out, check->bytes);
    type_clean(check->type, check->expected, check->bytes);
    for (size_t byte = 0; byte < bytes; byte++) {
        if (check->out[byte] == check->expected[byte])
            continue;
        report(check, call, byte);
        break;
    }
    check_again(check);
}

void check_end(struct check *check, const char *call)
{
    check_end_of(check, call, check->bytes);
}

void check_fail(const char *sentence)
{
    failures++;
    fprintf(stderr, "%s\n", sentence);
}

int check_failures(void)
{
    return failures;
}
