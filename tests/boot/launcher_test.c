/* Which launcher's variables hold, where its ranks meet, and a launcher's end of PMI-1 that answers right, wrong or not
 * at all. Real launchers are run by tests/launchers. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/launcher.h"

static struct gy_error error;
static struct gy_identity identity;

extern char **environ;

/* Nothing of what started the tests themselves. */
static void clear(void)
{
    static const char *const starts[] = {"OMPI_",         "PMI",   "SLURM_", "MASTER_",    "GYRE_",
                                         "TORCHELASTIC_", "RANK=", "MPI_",   "LOCAL_RANK", "WORLD_SIZE"};
    char name[128];

    for (char **entry = environ; *entry;) {
        bool ours = false;
        for (size_t i = 0; i < GY_ARRAY_LENGTH(starts); i++)
            ours |= strncmp(*entry, starts[i], strlen(starts[i])) == 0;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="), *entry);
        if (!ours || unsetenv(name) != 0)
            entry++;
    }
    setenv("GYRE_LOG", "error", 1);
}

TestSuite(launcher, .init = clear);

/* "RANK=3 WORLD_SIZE=8" */
static void set(const char *list)
{
    char copy[512], *save, *word;

    snprintf(copy, sizeof(copy), "%s", list);
    for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');

        *value++ = '\0';
        if (*value)
            setenv(word, value, 1);
        else
            unsetenv(word);
    }
}

static gyre_status read_identity(void)
{
    struct gy_config config;
    gyre_status status;

    gy_error_clear(&error);
    memset(&identity, 0, sizeof(identity));
    status = gy_config_read(&config, &error);
    return status == GYRE_SUCCESS ? gy_identity_read(NULL, &config, &identity, &error) : status;
}

static void expect_rank(const char *launcher, int rank, int size)
{
    cr_assert_eq(read_identity(), GYRE_SUCCESS, "%s", error.text);
    cr_assert_str_eq(identity.launcher->name, launcher);
    cr_assert_eq(identity.rank, rank);
    cr_assert_eq(identity.size, size);
}

static void expect_error(gyre_status wanted, const char *words)
{
    gyre_status status = read_identity();

    cr_assert_eq(status, wanted, "%d instead of %d: %s", status, wanted, error.text);
    cr_assert(strstr(error.text, words), "\"%s\" lacks \"%s\"", error.text, words);
}

#define MEET " MASTER_ADDR=10.0.0.1 MASTER_PORT=4000"
#define OPENMPI "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1"
#define HYDRA "PMI_RANK=3 PMI_SIZE=8 MPI_LOCALRANKID=1"
#define STEP                                                                                 \
    "SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=8 SLURM_LOCALID=1 SLURM_JOB_ID=77 SLURM_STEP_ID=2 " \
    "SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=n[08-11]"

Test(launcher, each_is_known_by_its_variables)
{
    static const struct {
        const char *name, *variables;
    } rows[] = {
        {"torchrun", "RANK=3 WORLD_SIZE=8 LOCAL_RANK=1"}, {"openmpi", OPENMPI}, {"pmi", HYDRA}, {"slurm", STEP}};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(rows); i++) {
        clear();
        set(rows[i].variables);
        set(MEET);
        expect_rank(rows[i].name, 3, 8);
        cr_assert_eq(identity.local_rank, 1);
        cr_assert_str_eq(identity.address.host, "10.0.0.1");
        cr_assert_eq(identity.address.port, 4000);
        cr_assert_null(identity.exchange);
        setenv("GYRE_LAUNCHER", rows[i].name, 1); /* the same when it is said */
        expect_rank(rows[i].name, 3, 8);
    }
}

Test(launcher, a_name_for_it_must_be_right)
{
    set("RANK=3 WORLD_SIZE=8" MEET);
    setenv("GYRE_LAUNCHER", "mpirun", 1);
    expect_error(GYRE_BAD_CONFIGURATION, "it must be torchrun, openmpi, pmix, pmi or slurm");
    setenv("GYRE_LAUNCHER", "slurm", 1);
    expect_error(GYRE_MEETING_FAILED, "GYRE_LAUNCHER=slurm, but SLURM_STEP_NUM_TASKS is not set: start the program "
                                      "with Slurm's srun");
}

Test(launcher, none_is_there)
{
    expect_error(GYRE_MEETING_FAILED, "start the program with gyre-run -n N, torchrun, mpirun, mpiexec or srun");
    set("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=77"); /* a batch script, which is no task of a step */
    expect_error(GYRE_MEETING_FAILED, "WORLD_SIZE is not set");
}

Test(launcher, half_of_one_is_named)
{
    set(OPENMPI MEET " OMPI_COMM_WORLD_RANK=");
    expect_error(GYRE_MEETING_FAILED, "OMPI_COMM_WORLD_RANK is not set, but OMPI_COMM_WORLD_SIZE is: one of the "
                                      "variables of Open MPI's mpirun is missing");
    clear();
    set(HYDRA MEET " PMI_SIZE=");
    expect_error(GYRE_MEETING_FAILED, "PMI_SIZE is not set, but PMI_RANK is");
    clear();
    set(STEP MEET " SLURM_PROCID=");
    expect_error(GYRE_MEETING_FAILED, "SLURM_PROCID is not set, but SLURM_STEP_NUM_TASKS is");
    clear();
    set(HYDRA MEET " PMI_RANK=8");
    expect_error(GYRE_BAD_CONFIGURATION, "PMI_RANK=8 with PMI_SIZE=8 is impossible");
}

Test(launcher, two_that_contradict_each_other)
{
    set("RANK=0 WORLD_SIZE=2" MEET);
    set(OPENMPI);
    expect_error(GYRE_BAD_CONFIGURATION, "RANK=0 and WORLD_SIZE=2 (torchrun), OMPI_COMM_WORLD_RANK=3 and "
                                         "OMPI_COMM_WORLD_SIZE=8 (openmpi); set GYRE_LAUNCHER=torchrun or "
                                         "GYRE_LAUNCHER=openmpi, or unset those of the other");
    setenv("GYRE_LAUNCHER", "openmpi", 1);
    expect_rank("openmpi", 3, 8);
    set("RANK=3 WORLD_SIZE=8 GYRE_LAUNCHER="); /* now they agree: the first row */
    expect_rank("torchrun", 3, 8);
    set("RANK=3 WORLD_SIZE=9");
    expect_error(GYRE_BAD_CONFIGURATION, "contradict each other");
}

Test(launcher, one_inside_of_a_step_of_slurm)
{
    set(OPENMPI MEET);
    set("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=77 SLURM_STEP_ID=2");
    expect_rank("openmpi", 3, 8);
    clear();
    set("RANK=3 WORLD_SIZE=8 TORCHELASTIC_RUN_ID=x SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2" MEET);
    expect_rank("torchrun", 3, 8);
    unsetenv("TORCHELASTIC_RUN_ID"); /* which launcher has set RANK is unknown */
    expect_error(GYRE_BAD_CONFIGURATION, "GYRE_LAUNCHER=torchrun or GYRE_LAUNCHER=slurm");
}

Test(launcher, slurm_meets_at_its_first_host)
{
    uint64_t label;

    set(STEP);
    expect_rank("slurm", 3, 8);
    cr_assert_str_eq(identity.address.host, "n08");
    cr_assert_eq(identity.address.port, gy_slurm_port("77", "2"));
    cr_assert_str_eq(identity.address_from, "SLURM_STEP_NODELIST, job and step");
    label = identity.label;
    cr_assert_neq(label, 0);
    setenv("SLURM_STEP_ID", "3", 1); /* another step: another port, another run */
    expect_rank("slurm", 3, 8);
    cr_assert_neq(identity.label, label);
    cr_assert_neq(identity.address.port, gy_slurm_port("77", "2"));
    setenv("MASTER_PORT", "4001", 1);
    expect_rank("slurm", 3, 8);
    cr_assert_eq(identity.address.port, 4001);
    setenv("MASTER_ADDR", "there", 1);
    expect_rank("slurm", 3, 8);
    cr_assert_str_eq(identity.address.host, "there");
    set("MASTER_ADDR= MASTER_PORT= SLURM_STEP_NUM_NODES=1");
    expect_rank("slurm", 3, 8);
    cr_assert_str_eq(identity.address.host, "127.0.0.1"); /* whatever the host's name means */
    set("SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=n[,");
    expect_error(GYRE_BAD_CONFIGURATION, "SLURM_STEP_NODELIST=\"n[,\" is not understood: set GYRE_ADDRESS");
    unsetenv("SLURM_STEP_NODELIST");
    expect_error(GYRE_MEETING_FAILED, "SLURM_STEP_NODELIST is not set: set GYRE_ADDRESS");
    setenv("GYRE_ADDRESS", "tcp://elsewhere:7", 1);
    expect_rank("slurm", 3, 8);
    cr_assert_str_eq(identity.address.host, "elsewhere");
}

Test(launcher, lists_of_hosts)
{
    static const struct {
        const char *list, *host;
    } rows[] = {{"n1", "n1"},
                {"n1,n2", "n1"},
                {"n[1-4]", "n1"},
                {"n[08-11,14],login", "n08"},
                {"n[7]", "n7"},
                {"rack[0-1]n[08-11]-ib", "rack0n08-ib"},
                {"gpu-a.example.org,gpu-b", "gpu-a.example.org"},
                {"", NULL},
                {",n1", NULL},
                {"n[", NULL},
                {"n[]", NULL},
                {"n[a-b]", NULL},
                {"n[1-2", NULL},
                {"n]1", NULL},
                {"n 1", NULL},
                {"averylongname1234", NULL},
                {"n[12345678901234567890]", NULL}};
    char host[16];

    for (size_t i = 0; i < GY_ARRAY_LENGTH(rows); i++) {
        bool known = gy_slurm_first_host(rows[i].list, host, sizeof(host));

        if (strlen(rows[i].list) == strlen("gpu-a.example.org,gpu-b")) {
            cr_assert_not(known); /* too long for this buffer */
            continue;
        }
        cr_assert_eq(known, rows[i].host && strlen(rows[i].host) < sizeof(host), "%s", rows[i].list);
        if (known)
            cr_assert_str_eq(host, rows[i].host);
    }
    for (int job = 0; job < 5000; job++) {
        char text[16];

        snprintf(text, sizeof(text), "%d", job);
        cr_assert(gy_slurm_port(text, "0") >= 10000 && gy_slurm_port(text, "0") < 30000);
    }
}

/* ---- PMI-1 ---- */

/* What the other end of PMI_FD answers, line by line; NULL ends the answers, and then it closes or is silent. */
struct server {
    int fd;
    const char *const *answers;
    bool closes; /* otherwise it is silent, for as long as the test waits */
    char heard[16][1200];
    int lines;
};

static void *serve(void *argument)
{
    struct server *server = argument;
    FILE *in = fdopen(dup(server->fd), "r");

    for (int i = 0; server->answers[i] && i < 16; i++) {
        if (!fgets(server->heard[i], sizeof(server->heard[i]), in))
            break;
        server->lines++;
        if (write(server->fd, server->answers[i], strlen(server->answers[i])) < 0)
            break;
    }
    if (server->closes)
        shutdown(server->fd, SHUT_RDWR);
    fclose(in);
    return NULL;
}

static pthread_t begin(struct server *server, const char *const *answers, bool closes, bool complete)
{
    int ends[2];
    char number[16];
    pthread_t thread;

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    snprintf(number, sizeof(number), "%d", ends[0]);
    set("PMI_RANK=1 PMI_SIZE=2");
    setenv("GYRE_MEET_TIMEOUT", closes || complete ? "60" : "4", 1);
    setenv("PMI_FD", number, 1);
    *server = (struct server){.fd = ends[1], .answers = answers, .closes = closes};
    cr_assert_eq(pthread_create(&thread, NULL, serve, server), 0);
    return thread;
}

#define INIT "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
#define MAXES "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"
#define SPACE "cmd=my_kvsname kvsname=kvs_1\n"
#define PUT "cmd=put_result rc=0 msg=success\n"
#define OUT "cmd=barrier_out\n"
#define GET(value) "cmd=get_result rc=0 msg=success value=" value "\n"

Test(launcher, pmi_1_word_by_word)
{
    static const char *const answers[] = {INIT, MAXES, SPACE, PUT, OUT, GET("2.AA"), GET("4.AQID"), NULL};
    static struct server server;
    const uint8_t mine[8] = {1, 2, 3};
    uint8_t all[16] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    const uint8_t both[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3};
    pthread_t thread = begin(&server, answers, false, true);

    expect_rank("pmi", 1, 2);
    cr_assert_not_null(identity.exchange);
    cr_assert_eq(identity.exchange(identity.exchange_user, mine, all, 8), 0, "%s", error.text);
    pthread_join(thread, NULL);
    cr_assert_arr_eq(all, both, 16);
    cr_assert_str_eq(server.heard[0], "cmd=init pmi_version=1 pmi_subversion=1\n");
    cr_assert_str_eq(server.heard[3], "cmd=put kvsname=kvs_1 key=gyre-1-1-0 value=4.AQID\n");
    cr_assert_str_eq(server.heard[4], "cmd=barrier_in\n");
    cr_assert_str_eq(server.heard[5], "cmd=get kvsname=kvs_1 key=gyre-1-0-0\n");
    cr_assert_str_eq(server.heard[6], "cmd=get kvsname=kvs_1 key=gyre-1-1-0\n");
}

Test(launcher, pmi_1_in_pieces)
{
    /* A value of at most 96 characters: 64 of ours. 90 bytes are 120 characters. */
    static const char *const answers[] = {INIT,          "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=96\n",
                                          SPACE,         PUT,
                                          PUT,           OUT,
                                          GET("8.AQID"), GET("BAUG"),
                                          GET("0."),     NULL};
    static struct server server;
    uint8_t mine[90], all[180];
    pthread_t thread = begin(&server, answers, false, true);

    memset(mine, 7, sizeof(mine));
    expect_rank("pmi", 1, 2);
    cr_assert_eq(identity.exchange(identity.exchange_user, mine, all, 90), 0, "%s", error.text);
    pthread_join(thread, NULL);
    for (int i = 0; i < 180; i++)
        cr_assert_eq(all[i], i < 6 ? i + 1 : 0);
    cr_assert(strstr(server.heard[4], "key=gyre-1-1-1 value=BwcHBwcH"), "%s", server.heard[4]);
    cr_assert_eq(strlen(strstr(server.heard[4], "value=")), strlen("value=") + 56 + 1); /* 120 - 64, and a newline */
}

static void exchange_fails(const char *const *answers, bool closes, const char *words)
{
    static struct server server;
    const uint8_t mine[8] = {1};
    uint8_t all[16];
    pthread_t thread = begin(&server, answers, closes, false);

    if (read_identity() == GYRE_SUCCESS)
        cr_assert_neq(identity.exchange(identity.exchange_user, mine, all, 8), 0);
    pthread_join(thread, NULL);
    cr_assert(strstr(error.text, words), "\"%s\" lacks \"%s\"", error.text, words);
    cr_assert(strstr(error.text, "set GYRE_ADDRESS=tcp://HOST:PORT"), "%s", error.text);
    expect_error(GYRE_MEETING_FAILED, "the conversation with it has failed before");
}

#define FAILS(name, closes, words, ...)                           \
    Test(launcher, name)                                          \
    {                                                             \
        static const char *const answers[] = {__VA_ARGS__, NULL}; \
        exchange_fails(answers, closes, words);                   \
    }
FAILS(pmi_1_closes_at_once, true, "it closed the connection", INIT)
FAILS(pmi_1_says_nothing, false, "it does not answer", INIT, MAXES)
FAILS(pmi_1_refuses, true, "it refused: \"cmd=response_to_init rc=-1\"", "cmd=response_to_init rc=-1\n")
FAILS(pmi_1_speaks_otherwise, true, "it answered \"HTTP/1.1 400\" where response_to_init was expected",
      "HTTP/1.1 400\n")
FAILS(pmi_1_has_no_space, true, "it has no key-value space", INIT, MAXES, "cmd=my_kvsname rc=0\n")
FAILS(pmi_1_lacks_a_rank, false, "a rank of the job did not come to the meeting in time (GYRE_MEET_TIMEOUT)", INIT,
      MAXES, SPACE, PUT)
FAILS(pmi_1_gives_no_value, true, "an answer without a value", INIT, MAXES, SPACE, PUT, OUT, "cmd=get_result rc=0\n")
FAILS(pmi_1_gives_nonsense, true, "a rank's part is not gyre's", INIT, MAXES, SPACE, PUT, OUT, GET("x"))
FAILS(pmi_1_gives_a_huge_length, true, "a rank's part is not gyre's", INIT, MAXES, SPACE, PUT, OUT,
      GET("99999999999999999999.AA"))
FAILS(pmi_1_gives_too_much, true, "a rank's part is not gyre's", INIT, MAXES, SPACE, PUT, OUT, GET("2.AAAA"))
FAILS(pmi_1_gives_no_text, true, "a rank's part is not gyre's", INIT, MAXES, SPACE, PUT, OUT, GET("4.!!!!"))
FAILS(pmi_1_gives_nothing_more, true, "a rank's part is not gyre's", INIT, MAXES, SPACE, PUT, OUT, GET("8.AQID"),
      GET(""))

Test(launcher, pmi_without_a_socket)
{
    set(HYDRA);
    expect_error(GYRE_MEETING_FAILED, "PMI_RANK is set but PMI_FD is not");
    setenv("PMI_FD", "999", 1);
    expect_error(GYRE_MEETING_FAILED, "PMI_FD=999 is no socket of a launcher's");
    setenv("PMI_FD", "x", 1);
    expect_error(GYRE_BAD_CONFIGURATION, "PMI_FD=\"x\" is not a number");
}

Test(launcher, values_of_pmi)
{
    char value[8];

    cr_assert(gy_pmi_value("cmd=a rc=0", "rc", value, sizeof(value)));
    cr_assert_str_eq(value, "0");
    cr_assert(gy_pmi_value("xrc=1  rc=2", "rc", value, sizeof(value)));
    cr_assert_str_eq(value, "2");
    cr_assert(gy_pmi_value("rc=", "rc", value, sizeof(value)));
    cr_assert_str_eq(value, "");
    cr_assert_not(gy_pmi_value("cmd=a", "rc", value, sizeof(value)));
    cr_assert_not(gy_pmi_value("", "rc", value, sizeof(value)));
    cr_assert_not(gy_pmi_value("rc", "rc", value, sizeof(value)));
    cr_assert_not(gy_pmi_value("rc=12345678", "rc", value, sizeof(value)));
}

/* No server of PMIx is there: its library says so, at once. */
Test(launcher, pmix_without_a_server)
{
    set("PMIX_RANK=0 PMIX_NAMESPACE=x");
    gyre_status status = read_identity();

    if (strstr(error.text, "cannot be loaded")) /* nor the library */
        return;
    cr_assert_eq(status, GYRE_MEETING_FAILED, "%s", error.text);
    cr_assert(strstr(error.text, "cannot meet the others through PMIx: PMIx_Init gave"), "%s", error.text);
}
