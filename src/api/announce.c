#include "api/announce.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "collectives/comm/context.h"
#include "collectives/select/selector.h"
#include "core/log.h"

#define TEXT_BYTES 800
#define LEAST_BYTES ((size_t)8)
#define MOST_BYTES ((size_t)256 << 20)

struct text {
    char bytes[TEXT_BYTES];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(text->bytes + text->used, sizeof(text->bytes) - text->used, format, arguments);
    va_end(arguments);
    text->used = gy_min_size(text->used + (size_t)(length > 0 ? length : 0), sizeof(text->bytes) - 1);
}

/* "0-3, 8": the ranks that transport `t` reaches. */
static void add_ranks(struct text *text, const struct gy_context *ctx, int t)
{
    int size = ctx->world->size;
    const char *separator = "";

    for (int first = 0, last; first < size; first = last + 1) {
        last = first;
        if (ctx->peers[first].transport != t)
            continue;
        while (last + 1 < size && ctx->peers[last + 1].transport == t)
            last++;
        add(text, first == last ? "%s%d" : "%s%d-%d", separator, first, last);
        separator = ", ";
    }
}

static bool is_used(const struct gy_context *ctx, int t)
{
    for (int p = 0; p < ctx->world->size; p++)
        if (ctx->peers[p].transport == t)
            return true;
    return false;
}

static void announce_rank(const struct gy_context *ctx)
{
    static const char *const integrities[] = {"off", "crc", "mac", "encrypt"};
    struct text text = {.used = 0};
    char host[65] = "";

    gethostname(host, sizeof(host) - 1);
    for (int t = 0; t < ctx->transports; t++) {
        if (!is_used(ctx, t))
            continue;
        add(&text, "; ranks ");
        add_ranks(&text, ctx, t);
        add(&text, " by %s", ctx->ops[t]->name);
    }
    gy_log(GY_LOG_INFO, "gyre %s: rank %d of %d, process %ld on %s, integrity %s%s", gyre_version(), ctx->world->rank,
           ctx->world->size, (long)getpid(), host, integrities[ctx->config.integrity], text.bytes);
}

static void add_size(struct text *text, size_t bytes)
{
    if (bytes >> 20)
        add(text, "%zu MiB", bytes >> 20);
    else if (bytes >> 10)
        add(text, "%zu KiB", bytes >> 10);
    else
        add(text, "%zu B", bytes);
}

/* "ring to 64 KiB, double_tree beyond", of sizes that are powers of two. */
static void announce_collective(struct gyre_comm *comm, enum gy_collective collective)
{
    struct text text = {.used = 0};
    struct gy_error error = {.quiet = true};
    enum gy_algorithm before = GY_ALGORITHMS, algorithm;

    for (size_t bytes = LEAST_BYTES; bytes <= MOST_BYTES; bytes *= 2) {
        if (gy_select(comm, collective, false, bytes, &algorithm, &error) != GYRE_SUCCESS)
            return;
        if (before != GY_ALGORITHMS && algorithm != before) {
            add(&text, "%s to ", gy_algorithm_name(before));
            add_size(&text, bytes / 2);
            add(&text, ", ");
        }
        before = algorithm;
    }
    gy_log(GY_LOG_INFO, "%s: %s%s%s", gy_collective_name(collective), text.bytes, gy_algorithm_name(before),
           text.used > 0 ? " beyond" : "");
}

void gy_announce_world(struct gyre_comm *comm)
{
    const struct gy_context *ctx = comm->ctx;

    if (!gy_log_enabled(GY_LOG_INFO) || ctx->closed)
        return;
    announce_rank(ctx);
    if (comm->rank != 0 || comm->size < 2)
        return;
    for (enum gy_collective c = 0; c < GY_COLLECTIVES; c = (enum gy_collective)(c + 1))
        if (c != GY_SEND_TO && c != GY_RECEIVE_FROM)
            announce_collective(comm, c);
}
