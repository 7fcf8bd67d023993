/* Pages that are full of nonsense, short, or of another version: gyre-top shows what it can and ends in order. The
 * sanitizers see what it does with them. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <gyre/page.h>

#include "support/rank.h"

#define PAGES 12

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t dice(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Random but for the head, which says that it is a page; some are cut off, some of them by a byte. */
static int make_page(int number, bool strange)
{
    static union {
        struct gyre_page page;
        uint64_t words[sizeof(struct gyre_page) / 8];
    } it;
    static struct gyre_page_member members[64];
    for (size_t i = 0; i < sizeof it.words / sizeof *it.words; i++)
        it.words[i] = dice();
    it.page.magic = GYRE_PAGE_MAGIC;
    it.page.version = strange ? GYRE_PAGE_VERSION + 1 : GYRE_PAGE_VERSION;
    it.page.bytes = sizeof it.page;
    it.page.job = (uint64_t)number / 3; /* three ranks each */
    it.page.rank = number % 3 + (dice() % 4 == 0 ? -5 : 0);
    it.page.size = dice() % 4 ? 3 + (int)(dice() % 60) : (int32_t)dice();
    it.page.status = dice() % 2 ? 0 : (int32_t)dice();
    it.page.waits = (uint32_t)(dice() % 40);
    for (int c = 0; c < GYRE_PAGE_COMMS; c++)
        for (int r = 0; r < GYRE_PAGE_RECORDS; r++) { /* some are where they belong, and run */
            it.page.comm[c].record[r].serial = dice() % 2 ? (uint64_t)r : dice();
            it.page.comm[c].record[r].state = (uint8_t)(dice() % 4);
        }
    for (int w = 0; w < GYRE_PAGE_WAITS; w++) {
        it.page.wait[w].comm = (uint32_t)(dice() % 20);
        it.page.wait[w].rank = (int32_t)(dice() % 5) - 1;
        it.page.wait[w].serial = dice() % 300;
        it.page.wait[w].since = (int64_t)(dice() % 3);
    }
    for (size_t m = 0; m < 64; m++)
        members[m] = (struct gyre_page_member){(int32_t)(dice() % 2), (int32_t)dice()};
    int fd = memfd_create(GYRE_PAGE_NAME, MFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(write(fd, &it, sizeof it) == (ssize_t)sizeof it &&
          write(fd, members, sizeof members) == (ssize_t)sizeof members);
    if (number % 5 == 4)
        CHECK(ftruncate(fd, (off_t)(dice() % 2 ? sizeof it - 1 : dice() % sizeof it)) == 0);
    return fd;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    static char *const forms[][4] = {{"gyre-top", "--once", NULL},
                                     {"gyre-top", "--once", "--json", NULL},
                                     {"gyre-top", "--once", "--prometheus=/dev/stdout", NULL},
                                     {"gyre-top", "--trace=/dev/stdout", NULL}};
    for (int round = 0; round < 12; round++) {
        int fds[PAGES], status;
        for (int i = 0; i < PAGES; i++)
            fds[i] = make_page(i, i == PAGES - 1);
        pid_t top = fork();
        CHECK(top >= 0);
        if (top == 0) {
            int null = open("/dev/null", O_WRONLY);
            dup2(null, 1);
            execv(argv[1], forms[round % 4]);
            _exit(127);
        }
        CHECK(waitpid(top, &status, 0) == top);
        if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
            rank_fail("gyre-top ended with status %#x", (unsigned)status);
        for (int i = 0; i < PAGES; i++)
            close(fds[i]);
    }
    return 0;
}
