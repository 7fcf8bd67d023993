/* Two ranks over TCP with a proxy in between (proxy.h) that changes what passes, from a seed:
 *
 *   proxy_test crc|mac|encrypt|off COUNT [SEED]
 *
 * At crc, mac and encrypt every change that happened ends on both ranks in GYRE_CORRUPTED, with an error message
 * that names a rank. A connection that is cut ends in an error that names a rank; a delay changes nothing; and no
 * rank ever sees a wrong result. While the ranks still bootstrap, a change may also be survived: the rank comes
 * again. At off there are only delays. */
#include "support/launcher.h"

#include "proxy.h"

#define ROUNDS 60
#define MOST 60000
#define HEARD_NS (30 * INT64_C(1000000000)) /* only a failure that is not reported takes so long */

struct outcome {
    gyre_status status;
    bool created;
    int rounds;
    char text[600];
};

static struct proxy *proxy;
static struct outcome *outcomes; /* [2] */
static int32_t in[MOST], out[MOST];

static int32_t element(int rank, int round, size_t i)
{
    return (int32_t)((unsigned)i * 2654435761u + (unsigned)round * 97u + (unsigned)rank * 31u) >> 4;
}

static gyre_status one_round(gyre_comm *comm, int rank, int round)
{
    static const size_t counts[] = {1, 700, 6000, MOST, 40};
    size_t count = counts[round % 5];
    for (size_t i = 0; i < count; i++)
        in[i] = element(rank, round, i);
    gyre_status status = gyre_all_reduce(comm, in, out, count, GYRE_INT32, GYRE_SUM);
    for (size_t i = 0; i < count && status == GYRE_SUCCESS; i++)
        if (out[i] != element(0, round, i) + element(1, round, i))
            rank_fail("round %d: element %zu is wrong", round, i);
    return status;
}

/* The fault has happened, and what it did to may be on its way still: until then they go on. Both or none do. */
static gyre_status hear_of_it(gyre_comm *comm)
{
    gyre_status status;
    int32_t struck;
    int64_t limit = rank_now_ns() + HEARD_NS;
    do {
        struck = atomic_load(&proxy->struck) && proxy->plan.purpose != GY_PURPOSE_BOOTSTRAP && rank_now_ns() < limit;
        status = gyre_all_reduce(comm, &struck, &struck, 1, GYRE_INT32, GYRE_MAX);
    } while (status == GYRE_SUCCESS && struck);
    return status;
}

static void body(int rank)
{
    struct outcome *outcome = &outcomes[rank];
    gyre_comm *comm = NULL;
    alarm(60);
    setenv("GYRE_HOST_ID", rank ? "one" : "other",
           1); /* a process's end must not overtake what is still in the proxy */
    outcome->status = gyre_comm_create(NULL, &comm);
    outcome->created = outcome->status == GYRE_SUCCESS;
    while (outcome->status == GYRE_SUCCESS && outcome->rounds < ROUNDS) {
        if (outcome->rounds >= ROUNDS - 4 && outcome->rounds % 2 == rank)
            usleep(20000); /* the other waits for it and hears what the proxy has had no core for until now */
        outcome->status = one_round(comm, rank, outcome->rounds++);
    }
    if (outcome->status == GYRE_SUCCESS)
        outcome->status = hear_of_it(comm);
    if (outcome->status != GYRE_SUCCESS)
        snprintf(outcome->text, sizeof(outcome->text), "%s", gyre_last_error(comm));
    if (comm)
        gyre_comm_destroy(comm);
}

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

static struct proxy_plan choose(uint64_t seed, bool sealed, bool readable)
{
    static const enum gy_purpose purposes[] = {GY_PURPOSE_TCP, GY_PURPOSE_TCP,     GY_PURPOSE_TCP,
                                               GY_PURPOSE_TCP, GY_PURPOSE_OVERLAY, GY_PURPOSE_BOOTSTRAP};
    static const uint64_t within[GY_PURPOSES] = {0, 200, 40, 250000}; /* so many bytes there are at least */
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    struct proxy_plan plan = {.seed = seed};
    for (int i = 0; i < 8; i++)
        draw(&state);
    plan.purpose = purposes[draw(&state) % 6];
    plan.of_initiator = draw(&state) & 1;
    plan.bytes = 1 + (unsigned)(draw(&state) % 64);
    plan.bit = (unsigned)draw(&state);
    plan.at = draw(&state) % within[plan.purpose];
    if (draw(&state) % 4 == 0)
        plan.at %= 200;
    plan.fault = (enum proxy_fault)(PROXY_FLIP + draw(&state) % (readable ? 7 : 4));
    if (draw(&state) % 8 == 0)
        plan.fault = PROXY_CLOSE;
    if (plan.purpose != GY_PURPOSE_TCP && plan.fault != PROXY_REPEAT)
        plan.fault = PROXY_FLIP; /* little is said there, so that what is missing may never be missed */
    if (plan.purpose != GY_PURPOSE_TCP)
        plan.bytes = plan.bytes % 16 + 1;
    if (plan.fault >= PROXY_FRAME_CUT)
        plan.at %= 20;
    if (!sealed || draw(&state) % 12 == 0)
        plan.fault = PROXY_DELAY;
    return plan;
}

/* What must have come of it on both ranks. */
static bool as_expected(const struct proxy_plan *plan, bool struck)
{
    bool good = true;
    for (int rank = 0; rank < 2; rank++) {
        const struct outcome *outcome = &outcomes[rank];
        bool fine = outcome->status == GYRE_SUCCESS && outcome->rounds == ROUNDS;
        bool named = outcome->status == GYRE_CORRUPTED && strstr(outcome->text, "rank ");
        if (!struck)
            good &= fine;
        else if (plan->fault == PROXY_CLOSE)
            good &= outcome->status == GYRE_PEER_UNREACHABLE && strstr(outcome->text, "rank ");
        else
            good &= named || (fine && plan->purpose == GY_PURPOSE_BOOTSTRAP);
    }
    return good && (outcomes[0].status == GYRE_SUCCESS) == (outcomes[1].status == GYRE_SUCCESS);
}

static bool trial(const char *mode, uint64_t seed, bool *struck_p)
{
    static const char *const purposes[] = {"?", "meeting", "overlay", "link"};
    struct proxy_plan plan = choose(seed, strcmp(mode, "off") != 0, strcmp(mode, "encrypt") != 0);
    char what[160];
    snprintf(what, sizeof(what), "%s, seed %llu: %s at %llu of the %s's %s, %u bytes", mode, (unsigned long long)seed,
             proxy_fault_name(plan.fault), (unsigned long long)plan.at, purposes[plan.purpose],
             plan.of_initiator ? "dialer" : "acceptor", plan.bytes);
    memset(outcomes, 0, 2 * sizeof(*outcomes));
    proxy_start(proxy, &plan);
    bool good = launch(2, body, 70, what);
    proxy_settle(proxy);
    bool struck = atomic_load(&proxy->struck);
    proxy_stop(proxy);
    if (good && !as_expected(&plan, struck)) {
        fprintf(stderr, "%s: %s\n", what, struck ? "struck" : "not struck");
        for (int rank = 0; rank < 2; rank++)
            fprintf(stderr, "  rank %d: %s after %d rounds: %s\n", rank, gyre_status_name(outcomes[rank].status),
                    outcomes[rank].rounds, outcomes[rank].text);
        good = false;
    }
    if (getenv("GYRE_TEST_VERBOSE"))
        printf("%s: %s: %s: %s\n", what, struck ? "struck" : "not struck", gyre_status_name(outcomes[0].status),
               outcomes[0].text);
    *struck_p = struck;
    return good;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: proxy_test off|crc|mac|encrypt COUNT [SEED]\n");
        return 2;
    }
    int count = atoi(argv[2]), faults = 0, bad = 0;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    setenv("GYRE_INTEGRITY", argv[1], 1);
    setenv("GYRE_TRANSPORT", "tcp", 1);
    setenv("GYRE_INTERFACE", "lo", 1);
    setenv("GYRE_PEER_TIMEOUT", "1", 1);
    setenv("GYRE_STALL_TIMEOUT", "4", 1);
    proxy = launch_share(sizeof(*proxy));
    outcomes = launch_share(2 * sizeof(*outcomes));
    for (int i = 0; i < count; i++) {
        bool struck = false;
        bad += !trial(argv[1], seed + (uint64_t)i, &struck);
        faults += struck;
    }
    printf("%s: %d trials, %d faults, %d not as expected\n", argv[1], count, faults, bad);
    if (strcmp(argv[1], "off") != 0 && 3 * faults < count) {
        fprintf(stderr, "too few faults happened for this to prove anything\n");
        return 1;
    }
    return bad ? 1 : 0;
}
