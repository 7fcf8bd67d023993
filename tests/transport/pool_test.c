/* Which payloads go through the pool (transport/tcp/zero_copy_policy.c, tcp_pool.c): by what both ends' copies take,
 * each length by itself, on links between sockets of a host only, and a few now and then the other way. What is written
 * past the caches is there when the socket is given it. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/late_stores.h"
#include "transport/tcp/internal.h"

#define LONG ((uint32_t)256 << 10)
#define FIRST (129 * 8) /* frames; then none is tried the other way for 126 times 8 */

static struct tcp tcp;
static struct tcp_link link_;
static char somewhere; /* only its address is looked at */

void __wrap_gy_copy_stream(void *dst, const void *src, size_t bytes);
void __wrap_gy_copy_stream(void *dst, const void *src, size_t bytes)
{
    late_store(dst, src, bytes);
}

/* Of which trials are: the long ones, or those that are shorter by half at least. */
static uint32_t tried_bytes;
static unsigned tried_sort;

static void begin(void)
{
    tried_bytes = LONG;
    tried_sort = 3;
    memset(&tcp, 0, sizeof(tcp));
    memset(&link_, 0, sizeof(link_));
    link_.tcp = &tcp;
    link_.same_machine = true;
    link_.out.left = link_.in.left = SIZE_MAX;
}

static void begin_shorter(void)
{
    begin();
    tried_bytes = LONG / 4;
    tried_sort = 2;
}

static bool marked(uint8_t kind, uint32_t bytes, uint8_t flags)
{
    struct gy_frame header = {.kind = kind, .bytes = bytes, .flags = flags};
    gy_tcp_zero_copy_mark(&link_, &header);
    cr_assert_eq(header.flags & ~(GY_TCP_FRAME_NT | GY_TCP_FRAME_TIMED), flags);
    return header.flags & GY_TCP_FRAME_NT;
}

static int of(int frames)
{
    int count = 0;
    for (int i = 0; i < frames; i++)
        count += marked(GY_FRAME_DATA, tried_bytes, 0);
    return count;
}

/* Nanoseconds for a KiB. */
static void paces(int send_plain, int send_past, unsigned read_plain, unsigned read_past)
{
    for (unsigned i = 0; i < GY_TCP_FIGURES; i++) {
        gy_tcp_zero_copy_timed(&link_.policy.sort[tried_sort].sends[0], LONG, LONG, (int64_t)send_plain * LONG / 1024);
        gy_tcp_zero_copy_timed(&link_.policy.sort[tried_sort].sends[1], LONG, LONG, (int64_t)send_past * LONG / 1024);
    }
    struct gy_frame back = {.kind = GY_FRAME_CREDIT,
                            .flags = (uint8_t)(tried_sort << GY_TCP_FRAME_CLASS_SHIFT),
                            .pace = {(uint16_t)read_plain, (uint16_t)read_past},
                            .taken = 5};
    gy_tcp_zero_copy_heard(&link_, &back);
}

Test(pool, a_few_now_and_then_until_both_are_known)
{
    begin_shorter();
    cr_assert_eq(of(4), 0);
    cr_assert_eq(of(4), 4);
    cr_assert_eq(of(16), 8);
    cr_assert_eq(of(8), 0);
    cr_assert_eq(of(124 * 8), 5 * 4);
    cr_assert_eq(of(4), 0);
    cr_assert_eq(of(4), 4);
    cr_assert_eq(of(127 * 8), 0);
    cr_assert_eq(of(8), 4);
    paces(500, 200, 100, 0);
    cr_assert_eq(of(64), 0, "what it takes to read is not known");
}

Test(pool, what_takes_less_at_both_ends_together)
{
    begin_shorter();
    of(FIRST);
    paces(500, 200, 100, 200);
    cr_assert_eq(of(64), 64);
    paces(200, 200, 200, 190);
    cr_assert_eq(of(64), 64, "it still takes less");
    paces(120, 160, 70, 160);
    cr_assert_eq(of(64), 0);
    paces(200, 200, 200, 190);
    cr_assert_eq(of(64), 0, "not worth to begin");
}

Test(pool, the_other_way_is_tried_whichever_it_is)
{
    begin_shorter();
    of(FIRST);
    paces(500, 200, 100, 200);
    cr_assert_eq(of(127 * 8), 127 * 8);
    cr_assert_eq(of(4), 4);
    cr_assert_eq(of(4), 0);
}

Test(pool, a_lost_core_counts_for_nothing)
{
    begin_shorter();
    of(FIRST);
    paces(500, 200, 100, 200);
    for (int lost = 0; lost < 2; lost++) {
        gy_tcp_zero_copy_timed(&link_.policy.sort[tried_sort].sends[1], LONG, LONG, 1000000000);
        cr_assert_eq(of(64), 64);
    }
    gy_tcp_zero_copy_timed(&link_.policy.sort[tried_sort].sends[1], LONG, LONG, 1000000000);
    cr_assert_eq(of(64), 0, "so often is no accident");
}

Test(pool, the_mean_counts_where_calls_differ)
{
    begin_shorter();
    of(FIRST);
    paces(300, 250, 100, 150);
    for (int i = 0; i < 4; i++) {
        gy_tcp_zero_copy_timed(&link_.policy.sort[tried_sort].sends[0], LONG, LONG, 200 * (int64_t)LONG / 1024);
        gy_tcp_zero_copy_timed(&link_.policy.sort[tried_sort].sends[0], LONG, LONG, 500 * (int64_t)LONG / 1024);
    }
    cr_assert_eq(of(64), 0, "300 and 100 beside 250 and 150");
    for (int i = 0; i < 4; i++) {
        gy_tcp_zero_copy_timed(&link_.policy.sort[tried_sort].sends[0], LONG, LONG, 200 * (int64_t)LONG / 1024);
        for (int k = 0; k < 2; k++)
            gy_tcp_zero_copy_timed(&link_.policy.sort[tried_sort].sends[0], LONG, LONG, 600 * (int64_t)LONG / 1024);
    }
    cr_assert_eq(of(64), 64, "466 and 100");
}

Test(pool, of_long_ones_one_in_a_while)
{
    begin();
    cr_assert_eq(of(3), 0);
    cr_assert_eq(of(1), 1);
    cr_assert_eq(of(12), 3);
    cr_assert_eq(of(48), 1);
    cr_assert_eq(of(64), 1);
    paces(500, 200, 100, 200);
    cr_assert_eq(of(64), 63);
}

/* The first plain sends of long payloads are quick, and the later ones, all of which are timed, are not. */
Test(pool, a_lucky_beginning_does_not_last)
{
    begin();
    of(64);
    paces(100, 200, 100, 150);
    cr_assert_eq(of(63), 0);
    for (unsigned i = 0; i < GY_TCP_FIGURES; i++) {
        struct gy_frame header = {.kind = GY_FRAME_DATA, .bytes = LONG};
        gy_tcp_zero_copy_mark(&link_, &header);
        cr_assert(header.flags & GY_TCP_FRAME_TIMED);
        gy_tcp_zero_copy_timed(&link_.policy.sort[3].sends[0], LONG, LONG, 500 * (int64_t)LONG / 1024);
    }
    cr_assert_eq(of(32), 32);
}

Test(pool, short_reads_count_together)
{
    struct tcp_pace pace = {0};
    for (int i = 0; i < 64; i++)
        gy_tcp_zero_copy_timed(&pace, LONG, 4096, 400);
    cr_assert_eq(pace.count, 2);
    cr_assert_eq(pace.figure[0], 100);
    cr_assert_eq(pace.figure[1], 100);
    cr_assert_eq(pace.mean, 100);
    gy_tcp_zero_copy_timed(&pace, LONG, LONG, 1);
    cr_assert_eq(pace.figure[2], 1, "never none");
    gy_tcp_zero_copy_timed(&pace, 16 << 10, 16 << 10, 16 * 300);
    cr_assert_eq(pace.figure[3], 300, "a whole one is enough");
}

Test(pool, a_length_of_plain_near_links)
{
    begin();
    of(FIRST);
    paces(500, 200, 100, 200);
    cr_assert(marked(GY_FRAME_DATA, LONG, 0));
    cr_assert(marked(GY_FRAME_DATA, LONG / 2, GY_FRAME_EAGER));
    for (uint32_t bytes = LONG / 4; bytes >= 16 << 10; bytes /= 2) {
        for (int i = 0; i < 4; i++)
            cr_assert_not(marked(GY_FRAME_DATA, bytes, GY_FRAME_EAGER), "it has figures of its own");
        for (int i = 0; i < 4; i++)
            cr_assert(marked(GY_FRAME_DATA, bytes, GY_FRAME_EAGER));
    }
    for (int i = 0; i < 64; i++)
        cr_assert_not(marked(GY_FRAME_DATA, (16 << 10) - 1, GY_FRAME_EAGER));
    cr_assert_not(marked(GY_FRAME_PUT, LONG, 0));
    cr_assert_not(marked(GY_FRAME_GRANT, 0, 0));
    struct tcp_link good = link_;
    struct gy_envelopes sealed;
    link_.envelopes = &sealed;
    cr_assert_not(marked(GY_FRAME_DATA, LONG, 0));
    link_ = good;
    link_.rails = (struct tcp_rails *)&somewhere;
    cr_assert_not(marked(GY_FRAME_DATA, LONG, 0));
    link_ = good;
    link_.same_machine = false;
    cr_assert_not(marked(GY_FRAME_DATA, LONG, 0));
    link_ = good;
    tcp.pool.refused = true;
    cr_assert_eq(of(64), 0);
}

Test(pool, frames_say_what_was_read_and_what_it_took)
{
    struct gy_frame back = {.kind = GY_FRAME_CREDIT}, came = {.kind = GY_FRAME_DATA, .bytes = LONG / 4};
    begin();
    for (int i = 0; i < 2; i++) {
        gy_tcp_zero_copy_timed(&link_.policy.sort[2].reads[0], LONG, LONG, 90 * (int64_t)LONG / 1024);
        gy_tcp_zero_copy_timed(&link_.policy.sort[2].reads[1], LONG, LONG, 150 * (int64_t)LONG / 1024);
    }
    gy_tcp_zero_copy_begin(&link_, &came);
    link_.in.left -= 12345;
    gy_tcp_zero_copy_mark(&link_, &back);
    cr_assert_eq(back.taken, 12345);
    cr_assert_eq(back.pace[0], 90);
    cr_assert_eq(back.pace[1], 150);
    cr_assert_eq(back.flags, 2 << GY_TCP_FRAME_CLASS_SHIFT);
    gy_tcp_zero_copy_heard(&link_, &back);
    cr_assert_eq(link_.policy.sort[2].theirs[0], 90);
    cr_assert_eq(link_.policy.sort[2].theirs[1], 150);
    cr_assert_eq(link_.policy.sort[3].theirs[0], 0);
    cr_assert_eq(link_.policy.taken, 12345);
    cr_assert_eq(back.flags, 0, "the layer above sees nothing of it");
    back.taken = 12000;
    gy_tcp_zero_copy_heard(&link_, &back);
    cr_assert_eq(link_.policy.taken, 12345, "what has been overtaken says less");
    came.bytes = 100;
    gy_tcp_zero_copy_begin(&link_, &came);
    gy_tcp_zero_copy_mark(&link_, &back);
    cr_assert_eq(back.pace[0], 0);
}

/* A complete frame has been read before its kind is known. */
Test(pool, eager_frames_are_timed_in_the_read_ahead)
{
    struct gy_frame first = {.kind = GY_FRAME_DATA, .bytes = 64 << 10, .flags = GY_FRAME_EAGER | GY_TCP_FRAME_TIMED},
                    next = first, other = {.kind = GY_FRAME_DATA, .bytes = 100};
    const struct tcp_sort *sort = &link_.policy.sort[2];
    begin();
    next.flags |= GY_TCP_FRAME_NT;
    gy_tcp_zero_copy_heard(&link_, &first);
    gy_tcp_zero_copy_begin(&link_, &first);
    cr_assert_eq(first.flags, GY_FRAME_EAGER);
    cr_assert(link_.policy.reading_timed);
    cr_assert_eq(sort->reads[0].count, 0);
    gy_tcp_zero_copy_read(&link_, 60 << 10, 60 * 200);
    gy_tcp_zero_copy_read(&link_, 4 << 10, 4 * 200);
    gy_tcp_zero_copy_heard(&link_, &next);
    gy_tcp_zero_copy_begin(&link_, &next);
    cr_assert_eq(sort->reads[1].count, 1);
    cr_assert_eq(sort->reads[1].figure[0], 200);
    gy_tcp_zero_copy_heard(&link_, &next);
    gy_tcp_zero_copy_begin(&link_, &next);
    cr_assert_eq(sort->reads[1].count, 1, "no more of it is known");
    cr_assert_not(link_.policy.reading_timed, "it did not say so");
    gy_tcp_zero_copy_heard(&link_, &other);
    gy_tcp_zero_copy_begin(&link_, &other);
    cr_assert_not(link_.policy.tells);
}

Test(pool, a_piece_begins_with_the_header_or_behind_it)
{
    static unsigned char payload[LONG];
    struct gy_frame_out frame = {.header = {.kind = GY_FRAME_DATA, .bytes = LONG, .flags = GY_TCP_FRAME_NT},
                                 .payload = payload};
    struct gy_frame back;
    begin();
    for (size_t i = 0; i < LONG; i++)
        payload[i] = (unsigned char)(i * 7 >> 3);
    link_.base.first = &frame;
    frame.sent = 10;
    cr_assert_not(gy_tcp_pool_has(&link_, &frame), "the rest of a header goes first");
    frame.sent = 0;
    cr_assert(gy_tcp_pool_has(&link_, &frame));
    cr_assert(gy_frame_decode(tcp.pool.memory, &back));
    cr_assert_eq(back.bytes, LONG);
    cr_assert_eq(memcmp(tcp.pool.memory + GY_FRAME_BYTES, payload, link_.policy.bytes - GY_FRAME_BYTES), 0);
    cr_assert(gy_tcp_pool_has(&link_, &frame));
    cr_assert_eq(link_.policy.slot, 0, "it is there");
    cr_assert(link_.policy.fresh);
    frame.sent = link_.policy.bytes;
    link_.policy.frame = NULL;
    cr_assert(gy_tcp_pool_has(&link_, &frame));
    cr_assert_eq(link_.policy.slot, 1);
    cr_assert_eq(
        memcmp(tcp.pool.memory + ((size_t)256 << 10), payload + frame.sent - GY_FRAME_BYTES, link_.policy.bytes), 0);
    cr_assert_eq(frame.sent + link_.policy.bytes, GY_FRAME_BYTES + LONG);
    link_.policy.frame = NULL;
    link_.policy.taken = tcp.pool.slot[0].until;
    frame.sent = 0;
    cr_assert(gy_tcp_pool_has(&link_, &frame));
    cr_assert_eq(link_.policy.slot, 0, "it has been read");
    cr_assert_not(link_.policy.fresh);
    frame.header.flags = 0;
    cr_assert_not(gy_tcp_pool_has(&link_, &frame));
    gy_tcp_pool_leave(&link_);
    cr_assert_null(tcp.pool.slot[0].link);
    gy_tcp_pool_free(&tcp.pool);
}

/* A payload that is not long takes no slot away, and its header says that it goes plainly. */
Test(pool, new_pages_are_for_long_payloads)
{
    static unsigned char payload[LONG];
    struct gy_frame_out frames[2] = {{.header = {.kind = GY_FRAME_DATA, .bytes = LONG, .flags = GY_TCP_FRAME_NT}},
                                     {.header = {.kind = GY_FRAME_DATA, .bytes = 64 << 10, .flags = GY_TCP_FRAME_NT}}};
    struct tcp_link other = {.tcp = &tcp, .same_machine = true, .out.left = SIZE_MAX};
    begin();
    frames[0].payload = frames[1].payload = payload;
    for (int i = 0; i < GY_TCP_SLOTS; i++) {
        cr_assert(gy_tcp_pool_has(&other, &frames[0]));
        other.policy.frame = NULL;
        other.out.left--;
    }
    cr_assert_not(gy_tcp_pool_has(&link_, &frames[1]));
    cr_assert_eq(frames[1].header.flags, 0);
    cr_assert(gy_tcp_pool_has(&link_, &frames[0]));
    cr_assert(frames[0].header.flags & GY_TCP_FRAME_NT);
    gy_tcp_pool_free(&tcp.pool);
}

/* The peer has read whatever has left, and a grant of his said so before the rest found room. */
Test(pool, a_slot_is_in_use_until_all_of_it_has_been_read)
{
    static unsigned char payload[LONG];
    struct gy_frame_out frame = {.header = {.kind = GY_FRAME_DATA, .bytes = LONG, .flags = GY_TCP_FRAME_NT},
                                 .payload = payload},
                        others = frame;
    struct tcp_link other = {.tcp = &tcp, .same_machine = true, .out.left = SIZE_MAX};
    struct tcp_rail rail = {.link = &link_};
    int ends[2], small = 16 << 10;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    cr_assert_eq(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    cr_assert_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    begin();
    rail.watch.fd = ends[0];
    link_.out.rail = &rail;
    link_.base.first = &frame;
    other.base.first = &others;
    cr_assert(gy_tcp_pool_has(&link_, &frame));
    ssize_t sent = gy_tcp_pool_send(&link_);
    cr_assert(sent > 0 && (size_t)sent < link_.policy.bytes, "%zd bytes left", sent);
    frame.sent += (size_t)sent;
    link_.out.left -= (size_t)sent;
    link_.policy.taken = (uint64_t)sent;
    cr_assert(gy_tcp_pool_has(&other, &others));
    cr_assert_neq(other.policy.slot, link_.policy.slot);
    gy_tcp_pool_free(&tcp.pool);
    close(ends[0]);
    close(ends[1]);
}
