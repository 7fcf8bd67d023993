/* The stream of a link over three rails, which are pairs of sockets here: what goes over each is the stream's stripes
 * of 64 KiB in turn, wherever frames begin and end; and frames come out in order, in whatever order the rails bring
 * theirs. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/mem.h"
#include "transport/tcp/internal.h"

#define RAILS 3
#define STRIPE (64u << 10)
#define FRAMES 40
#define MOST (300u << 10)
#define STREAM (FRAMES * (GY_FRAME_BYTES + MOST))

static struct gy_world world = {.rank = 0, .size = 2, .epoch = 1};
static struct gy_config config = {.interface = "a,b,c"};
static struct tcp tcp;
static struct tcp_link link_under_test;
static int far[RAILS]; /* the other ends */

static unsigned char *stream; /* what a link over one connection would send */
static size_t stream_bytes;
static unsigned char *payloads;

/* Sizes at which headers and payloads cross from stripe to stripe in many ways; the first is 0. */
static uint32_t size_of(int frame)
{
    return (uint32_t)frame * 2654435761u % (frame % 4 ? 3 * GY_FRAME_BYTES : MOST);
}

static struct gy_frame header_of(int frame)
{
    return (struct gy_frame){.magic = GY_FRAME_MAGIC,
                             .version = GY_WIRE_VERSION,
                             .kind = GY_FRAME_DATA,
                             .epoch = 1,
                             .sequence = (uint64_t)frame,
                             .bytes = size_of(frame)};
}

static void make_stream(void)
{
    stream = malloc(STREAM);
    payloads = malloc(STREAM);
    cr_assert(stream && payloads);
    for (size_t i = 0; i < STREAM; i++)
        payloads[i] = (unsigned char)(i * 2654435761u >> 13);
    for (int i = 0; i < FRAMES; i++) {
        struct gy_frame header = header_of(i);
        gy_frame_encode(&header, stream + stream_bytes);
        memcpy(stream + stream_bytes + GY_FRAME_BYTES, payloads + (size_t)i * MOST, header.bytes);
        stream_bytes += GY_FRAME_BYTES + header.bytes;
    }
}

static void set_up(void)
{
    struct gy_poller *poller;
    struct gy_error error = {.quiet = true};
    cr_assert_eq(gy_poller_create(&poller, &error), GYRE_SUCCESS);
    tcp = (struct tcp){.env = {.world = &world, .config = &config, .poller = poller}, .rails = RAILS};
    world.members = calloc(2, sizeof(*world.members));
    world.rank = 1; /* the lower one would begin with RAILS */
    link_under_test = (struct tcp_link){.base.peer = 0, .tcp = &tcp};
    cr_assert(gy_tcp_rails_make(&link_under_test));
    for (int i = 0; i < RAILS; i++) {
        int pair[2];
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
        link_under_test.rail[i].watch.fd = pair[0];
        far[i] = pair[1];
    }
    make_stream();
}

static void tear_down(void)
{
    for (int i = 0; i < RAILS; i++) {
        close(link_under_test.rail[i].watch.fd);
        close(far[i]);
    }
    gy_poller_free(tcp.env.poller);
    gy_free(link_under_test.rails);
    free(world.members);
    free(stream);
    free(payloads);
}

TestSuite(rails, .init = set_up, .fini = tear_down, .timeout = 120);

/* Where byte `at` of that rail stands in the stream. */
static size_t place_of(int rail, size_t at)
{
    return (at / STRIPE * RAILS + (size_t)rail) * STRIPE + at % STRIPE;
}

Test(rails, stripes_go_round)
{
    static struct gy_frame_out frames[FRAMES];
    size_t got[RAILS] = {0}, all = 0;
    for (int i = 0; i < FRAMES; i++) {
        frames[i].header = header_of(i);
        frames[i].payload = payloads + (size_t)i * MOST;
        gy_link_push(&link_under_test.base, &frames[i]);
    }
    while (all < stream_bytes) {
        gy_tcp_flush(&link_under_test);
        for (int rail = 0; rail < RAILS; rail++) {
            unsigned char bytes[10007];
            ssize_t count = read(far[rail], bytes, sizeof(bytes));
            for (ssize_t i = 0; i < count; i++, got[rail]++, all++) {
                cr_assert_lt(place_of(rail, got[rail]), stream_bytes);
                cr_assert_eq(bytes[i], stream[place_of(rail, got[rail])], "byte %zu of rail %d", got[rail], rail);
            }
        }
    }
    cr_assert(frames[FRAMES - 1].done && !link_under_test.base.first);
    cr_assert_eq(link_under_test.base.state, GY_LINK_OPEN);
}

static unsigned char landing[MOST];
static int arrived;

static void *place(void *user, int peer, const struct gy_frame *frame)
{
    (void)user, (void)peer, (void)frame;
    return landing;
}

static gyre_status hear(void *user, int peer, const struct gy_frame *frame, const void *payload)
{
    (void)user, (void)peer;
    cr_assert_eq(frame->sequence, (uint64_t)arrived, "frame %llu is number %d", (unsigned long long)frame->sequence,
                 arrived);
    cr_assert_eq(frame->bytes, size_of(arrived));
    if (frame->bytes)
        cr_assert_eq(memcmp(payload, payloads + (size_t)arrived * MOST, frame->bytes), 0, "frame %d", arrived);
    arrived++;
    return GYRE_SUCCESS;
}

/* The last rail brings as much as its socket holds before the first brings anything. */
Test(rails, whatever_comes_first)
{
    const struct gy_receive_handler handler = {.place = place, .arrived = hear};
    size_t put[RAILS] = {0};
    link_under_test.handler = &handler;
    while (arrived < FRAMES) {
        for (int rail = RAILS - 1; rail >= 0; rail--) {
            for (ssize_t count = 1; count > 0 && place_of(rail, put[rail]) < stream_bytes;) {
                size_t at = place_of(rail, put[rail]), rest = STRIPE - put[rail] % STRIPE;
                rest = rest < stream_bytes - at ? rest : stream_bytes - at;
                count = write(far[rail], stream + at, rest);
                put[rail] += count > 0 ? (size_t)count : 0;
            }
        }
        gy_tcp_receive(&link_under_test);
        cr_assert_eq(link_under_test.base.state, GY_LINK_OPEN, "%s", link_under_test.base.error.text);
    }
}

/* The end of a rail whose turn it is not is no end of the stream. */
Test(rails, end_comes_in_turn)
{
    const struct gy_receive_handler handler = {.place = place, .arrived = hear};
    link_under_test.handler = &handler;
    close(far[1]);
    cr_assert_eq(write(far[0], stream, GY_FRAME_BYTES), GY_FRAME_BYTES);
    gy_tcp_receive(&link_under_test);
    cr_assert_eq(arrived, 1);
    cr_assert_eq(link_under_test.base.state, GY_LINK_OPEN);
    close(far[0]);
    gy_tcp_receive(&link_under_test);
    cr_assert_eq(link_under_test.base.state, GY_LINK_FAILED);
    cr_assert(strstr(link_under_test.base.error.text, "over a ("), "%s", link_under_test.base.error.text);
}
