/* Every rank sends every other one frames, as many as it gets, with as many under way as there is room for. */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void conformance_pause(int milliseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000L}, NULL);
}

/* What a rank sends to one other. */
struct stream {
    struct gy_frame_out frame[CONFORMANCE_POOL];
    unsigned char *payloads;
    uint64_t end; /* frames posted and arrived when the exchange is over */
};

/* Posts what there is room for; true while anything is to be posted, under way or awaited. */
static bool feed(struct rank *rank, struct rank_pair *pair, struct stream *stream, uint64_t pool,
                 uint32_t (*size)(uint64_t), uint32_t most)
{
    while (pair->posted < stream->end && !stream->frame[pair->posted % pool].queued) {
        size_t slot = pair->posted % pool;
        struct gy_frame_out *frame = &stream->frame[slot];
        rank_frame(rank, pair->peer, frame, pair->posted + 1, stream->payloads + slot * (most + 1), size(pair->posted));
        pair->posted++;
        rank->ops->post(pair->link, frame);
        CHECK(frame->queued != frame->done, "a posted frame is queued or done");
    }
    /* The peer may be done, and gone, when all has arrived. */
    CHECK(!pair->broken || pair->arrived == stream->end, "the link to rank %d broke", pair->peer);
    if (pair->broken)
        return false;
    bool open = pair->posted < stream->end || pair->arrived < stream->end;
    for (int i = 0; i < CONFORMANCE_POOL; i++)
        open = open || stream->frame[i].queued;
    return open;
}

void conformance_exchange(struct rank *rank, uint64_t count, uint32_t (*size)(uint64_t), uint32_t most, bool sleep)
{
    static _Thread_local struct stream streams[RANKS_MOST];
    uint64_t pool = rank->size > 2 && most > 65536 ? 8 : CONFORMANCE_POOL;
    bool open = true;
    memset(streams, 0, sizeof(streams));
    for (int i = 0; i < rank->pairs; i++) {
        streams[i].end = rank->pair[i].broken ? rank->pair[i].arrived : rank->pair[i].posted + count;
        streams[i].payloads = malloc((size_t)pool * (most + 1));
        CHECK(streams[i].payloads, "no memory");
        if (rank->announces)
            rank->ops->register_memory(rank->instance, streams[i].payloads, (size_t)pool * (most + 1));
    }
    while (open) {
        open = false;
        for (int i = 0; i < rank->pairs; i++)
            if (!rank->pair[i].broken)
                open = feed(rank, &rank->pair[i], &streams[i], pool, size, most) || open;
        if (open)
            rank_progress(rank, sleep);
    }
    for (int i = 0; i < rank->pairs; i++) {
        if (rank->announces)
            rank->ops->unregister_memory(rank->instance, streams[i].payloads);
        free(streams[i].payloads);
    }
}

uint32_t conformance_small(uint64_t i)
{
    return (uint32_t)(i * 2654435761u >> 7) % 500;
}

uint32_t conformance_mixed(uint64_t i)
{
    return (uint32_t)(i * 2654435761u >> 3) % (i % 5 ? 300 : 300000);
}
