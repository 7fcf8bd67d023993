#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bootstrap/identity.h"
#include "bootstrap/world.h"
#include "net/handshake.h"

#define SECRET "0123456789abcdef0123456789abcdef"

static struct gy_error error;
static struct gy_identity identity;

static void clear(void)
{
    static const char *const names[] = {"RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "TORCHELASTIC_RUN_ID",
                                        "TORCHELASTIC_USE_AGENT_STORE",
                                        "GYRE_ADDRESS",
                                        "GYRE_SECRET",
                                        "GYRE_SECRET_FILE",
                                        "GYRE_INSECURE"};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(names); i++)
        unsetenv(names[i]);
    setenv("GYRE_LOG", "error", 1);
    gy_error_clear(&error);
    memset(&identity, 0, sizeof(identity));
}

/* As torchrun sets it for rank 3 of 8. */
static void torchrun(void)
{
    clear();
    setenv("RANK", "3", 1);
    setenv("WORLD_SIZE", "8", 1);
    setenv("LOCAL_RANK", "1", 1);
    setenv("MASTER_ADDR", "10.1.2.3", 1);
    setenv("MASTER_PORT", "29500", 1);
    setenv("TORCHELASTIC_RUN_ID", "run-17", 1);
}

TestSuite(environment, .init = torchrun);

static gyre_status read_identity(const gyre_config *user)
{
    struct gy_config config;
    gyre_status status;

    gy_error_clear(&error);
    status = gy_config_read(&config, &error);
    return status == GYRE_SUCCESS ? gy_identity_read(user, &config, &identity, &error) : status;
}

static void expect(const gyre_config *user, gyre_status wanted, const char *words)
{
    gyre_status status = read_identity(user);

    cr_assert_eq(status, wanted, "%d: %s", status, error.text);
    cr_assert(strstr(error.text, words), "\"%s\" lacks \"%s\"", error.text, words);
}

static void expect_bad(const char *name, const char *value)
{
    torchrun();
    setenv(name, value, 1);
    expect(NULL, GYRE_BAD_CONFIGURATION, name);
}

Test(environment, torchrun)
{
    cr_assert_eq(read_identity(NULL), GYRE_SUCCESS, "%s", error.text);
    cr_assert_eq(identity.rank, 3);
    cr_assert_eq(identity.size, 8);
    cr_assert_eq(identity.address.kind, GY_ADDRESS_TCP);
    cr_assert_str_eq(identity.address.host, "10.1.2.3");
    cr_assert_eq(identity.address.port, 29500);
    cr_assert_neq(identity.label, 0);
    cr_assert_not(identity.has_secret);
    cr_assert_not(identity.insecure);
}

Test(environment, the_agent_of_torchrun_holds_the_port)
{
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    cr_assert_eq(read_identity(NULL), GYRE_SUCCESS, "%s", error.text);
    cr_assert_eq(identity.address.port, 29501);
    cr_assert(strstr(identity.address_from, "MASTER_PORT+1"), "%s", identity.address_from);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "False", 1);
    cr_assert_eq(read_identity(NULL), GYRE_SUCCESS, "%s", error.text);
    cr_assert_eq(identity.address.port, 29500);
    expect_bad("TORCHELASTIC_USE_AGENT_STORE", "yes");
    torchrun();
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1); /* there is no port after this one */
    setenv("MASTER_PORT", "65535", 1);
    expect(NULL, GYRE_BAD_CONFIGURATION, "MASTER_PORT=\"65535\" is not a number from 1 to 65534");
}

Test(environment, a_run_is_told_from_another)
{
    uint64_t label;

    read_identity(NULL);
    label = identity.label;
    read_identity(NULL);
    cr_assert_eq(identity.label, label);
    setenv("TORCHELASTIC_RUN_ID", "run-18", 1);
    read_identity(NULL);
    cr_assert_neq(identity.label, label);
    unsetenv("TORCHELASTIC_RUN_ID");
    read_identity(NULL);
    cr_assert_eq(identity.label, 0);
}

Test(environment, what_is_missing_is_named)
{
    static const struct {
        const char *name, *words;
    } needed[] = {{"RANK", "RANK is not set"},
                  {"WORLD_SIZE", "WORLD_SIZE is not set"},
                  {"MASTER_ADDR", "MASTER_ADDR is not set"},
                  {"MASTER_PORT", "MASTER_PORT is not set"}};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(needed); i++) {
        torchrun();
        unsetenv(needed[i].name);
        expect(NULL, GYRE_MEETING_FAILED, needed[i].words);
        setenv(needed[i].name, "", 1); /* empty is not set */
        expect(NULL, GYRE_MEETING_FAILED, needed[i].words);
    }
}

Test(environment, what_is_malformed_is_named)
{
    static const char *const bad[] = {"x", "3x", "-1", " 3", "+3", "3.0", "0x3", "99999999999999999999", "1000000"};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(bad); i++) {
        expect_bad("RANK", bad[i]);
        expect_bad("WORLD_SIZE", bad[i]);
        expect_bad("MASTER_PORT", bad[i]);
    }
    expect_bad("WORLD_SIZE", "0");
    expect_bad("MASTER_PORT", "0");
    expect_bad("MASTER_PORT", "65536");
    expect_bad("GYRE_ADDRESS", "10.0.0.1:29500");
    expect_bad("GYRE_ADDRESS", "tcp://10.0.0.1");
    expect_bad("GYRE_ADDRESS", "file://relative");
    expect_bad("GYRE_SECRET", "short");
    expect_bad("GYRE_INSECURE", "yes");
}

Test(environment, values_that_conflict_are_named)
{
    gyre_config user = {.size = sizeof(user), .rank = 5, .world_size = 5};

    setenv("RANK", "8", 1);
    expect(NULL, GYRE_BAD_CONFIGURATION, "RANK=8 with WORLD_SIZE=8 is impossible");
    expect(&user, GYRE_BAD_CONFIGURATION, "gyre_config.rank=5 with gyre_config.world_size=5 is impossible");
    user.world_size = -1;
    expect(&user, GYRE_BAD_CONFIGURATION, "gyre_config.world_size=-1");
    torchrun();
    setenv("GYRE_SECRET", "a secret in the environment", 1);
    setenv("GYRE_SECRET_FILE", "/nowhere", 1);
    expect(NULL, GYRE_BAD_CONFIGURATION, "GYRE_SECRET and GYRE_SECRET_FILE are both set");
}

Test(environment, what_is_said_more_plainly_wins)
{
    gyre_config user = {.size = sizeof(user), .rank = 1, .world_size = 2};

    setenv("GYRE_ADDRESS", "tcp://[::1]:7", 1);
    cr_assert_eq(read_identity(NULL), GYRE_SUCCESS, "%s", error.text);
    cr_assert_str_eq(identity.address.host, "::1"); /* GYRE_ADDRESS before MASTER_ADDR */
    cr_assert_str_eq(identity.address_from, "GYRE_ADDRESS");
    user.address = "file:///tmp/place";
    user.secret = "a secret, in the struct";
    setenv("RANK", "nonsense", 1); /* not looked at */
    cr_assert_eq(read_identity(&user), GYRE_SUCCESS, "%s", error.text);
    cr_assert_eq(identity.rank, 1);
    cr_assert_eq(identity.size, 2);
    cr_assert_eq(identity.address.kind, GY_ADDRESS_FILE);
    cr_assert(identity.has_secret);
    user.address = "nonsense";
    expect(&user, GYRE_BAD_CONFIGURATION, "gyre_config.address");
    user.address = NULL;
    user.secret = "short";
    expect(&user, GYRE_BAD_CONFIGURATION, "gyre_config.secret");
}

Test(environment, a_world_of_one_needs_nothing_but_its_size)
{
    clear();
    setenv("WORLD_SIZE", "1", 1);
    cr_assert_eq(read_identity(NULL), GYRE_SUCCESS, "%s", error.text);
    cr_assert_eq(identity.rank, 0);
    cr_assert_eq(identity.address.kind, GY_ADDRESS_NONE);
    setenv("RANK", "1", 1);
    expect(NULL, GYRE_BAD_CONFIGURATION, "RANK=1 with WORLD_SIZE=1");
}

Test(environment, a_secret_file)
{
    char path[64], text[5000];
    uint8_t key[GY_KEY_BYTES];
    int fd;

    snprintf(path, sizeof(path), "/tmp/gyre-secret-%d", (int)getpid());
    setenv("GYRE_SECRET_FILE", path, 1);
    expect(NULL, GYRE_SYSTEM, "GYRE_SECRET_FILE: cannot open");
    fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);
    cr_assert(fd >= 0 && write(fd, SECRET "\n", 33) == 33);
    cr_assert_eq(read_identity(NULL), GYRE_SUCCESS, "%s", error.text);
    cr_assert(identity.has_secret);
    gy_handshake_key_of_secret(SECRET, 32, key); /* the end of the line is no part of it */
    cr_assert_arr_eq(identity.key, key, sizeof(key));
    memset(text, 'x', sizeof(text));
    cr_assert_eq(write(fd, text, sizeof(text)), (ssize_t)sizeof(text));
    expect(NULL, GYRE_BAD_CONFIGURATION, "GYRE_SECRET_FILE");
    cr_assert_eq(ftruncate(fd, 5), 0);
    expect(NULL, GYRE_BAD_CONFIGURATION, "the text in GYRE_SECRET_FILE, 5 bytes, can be guessed");
    close(fd);
    unlink(path);
    setenv("GYRE_SECRET_FILE", "/tmp", 1);
    expect(NULL, GYRE_BAD_CONFIGURATION, "GYRE_SECRET_FILE /tmp is no file");
}

/* A pipe gives what it has in pieces. */
Test(environment, a_secret_is_read_to_its_end)
{
    char path[40];
    int ends[2];
    uint8_t key[GY_KEY_BYTES];

    cr_assert_eq(pipe(ends), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
    setenv("GYRE_SECRET_FILE", path, 1);
    pid_t writer = fork();
    cr_assert(writer >= 0);
    if (writer == 0) {
        for (size_t i = 0; i < strlen(SECRET); i += 8) {
            if (write(ends[1], &SECRET[i], 8) != 8)
                _exit(1);
            usleep(i == 0 ? 0 : 20000);
        }
        _exit(0);
    }
    close(ends[1]);
    cr_assert_eq(waitpid(writer, NULL, 0), writer);
    cr_assert_eq(read_identity(NULL), GYRE_SUCCESS, "%s", error.text);
    gy_handshake_key_of_secret(SECRET, strlen(SECRET), key);
    cr_assert_arr_eq(identity.key, key, sizeof(key));
    close(ends[0]);
}

/* As ssh refuses a private key. */
Test(environment, a_secret_file_that_others_can_read_is_refused)
{
    static const struct {
        mode_t mode;
        uid_t owner;
        bool refused;
    } cases[] = {{0600, 0, false}, {0400, 0, false}, {0640, 0, true},
                 {0604, 0, true},  {0620, 0, true},  {0600, 12345, true}};
    char path[64];

    snprintf(path, sizeof(path), "/tmp/gyre-secret-%d", (int)getpid());
    setenv("GYRE_SECRET_FILE", path, 1);
    int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);
    cr_assert(fd >= 0 && write(fd, SECRET, 32) == 32);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        if (cases[i].owner && fchown(fd, cases[i].owner, (gid_t)-1) != 0)
            continue; /* not root */
        cr_assert_eq(fchmod(fd, cases[i].mode), 0);
        if (cases[i].refused)
            expect(NULL, GYRE_BAD_CONFIGURATION,
                   cases[i].owner ? "belongs to another user" : "can be read or written by other users");
        else
            cr_expect_eq(read_identity(NULL), GYRE_SUCCESS, "%s", error.text);
    }
    close(fd);
    unlink(path);
}

Test(environment, a_secret_that_can_be_guessed_is_refused)
{
    static const char *const weak[] = {"a secret of 21 chars!", "0123456789abcdef0123456789abcde",
                                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
                             *const strong[] = {"c2VjcmV0IG9mIHRoZSB0Zw", SECRET};
    gyre_config user = {.size = sizeof(user), .rank = 1, .world_size = 2, .address = "file:///tmp/place"};

    for (size_t i = 0; i < sizeof(weak) / sizeof(*weak); i++) {
        user.secret = weak[i];
        expect(&user, GYRE_BAD_CONFIGURATION, "can be guessed: a secret is a random text of at least 22 characters");
    }
    for (size_t i = 0; i < sizeof(strong) / sizeof(*strong); i++) {
        user.secret = strong[i];
        cr_expect_eq(read_identity(&user), GYRE_SUCCESS, "%s", error.text);
    }
}

/* Nothing of it is left when it has served its purpose. */
Test(environment, an_identity_that_has_ended_holds_no_key)
{
    static const uint8_t zeros[GY_KEY_BYTES];
    gyre_config user = {
        .size = sizeof(user), .rank = 1, .world_size = 2, .address = "file:///tmp/place", .secret = SECRET};

    cr_assert_eq(read_identity(&user), GYRE_SUCCESS, "%s", error.text);
    gy_identity_end(&identity);
    cr_assert_arr_eq(identity.key, zeros, sizeof(zeros));
}
