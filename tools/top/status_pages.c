/* Searches /proc/PID/fd of every process for links to GYRE_PAGE_NAME. Directories that may not be read, such as another
 * user's, are skipped, as ps does.
 *
 * Pages are read with pread and not mapped. So a page that shrinks, or is no page at all, is a short read and no
 * signal. Only communicators in use are read. */
#include "top/status_pages.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINK "/memfd:" GYRE_PAGE_NAME
#define RANKS_MOST 65536

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Returns the letter after the name. The name stands in brackets and may hold any character. */
static char process_state(pid_t process)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return 0;
    text[got] = '\0';
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' ? end[2] : 0;
}

static bool read_all(int fd, void *to, size_t bytes, size_t offset)
{
    return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Makes a text of another process safe: it is terminated, and a terminal interprets none of it as a command. */
static void clean(char *text, size_t bytes)
{
    text[bytes - 1] = '\0';
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

#define CLEAN(text) clean(text, sizeof(text))

/* Checks the values that are used as an index, or as a text. */
static bool check(struct gyre_page *page)
{
    if (page->size < 1 || page->size > RANKS_MOST || page->rank < 0 || page->rank >= page->size)
        return false;
    for (int i = 0; i < GYRE_PAGE_NAMES; i++) {
        CLEAN(page->collective[i]);
        CLEAN(page->algorithm[i]);
    }
    for (int c = 0; c < GYRE_PAGE_COMMS; c++)
        CLEAN(page->comm[c].name);
    page->comms &= (1u << GYRE_PAGE_COMMS) - 1;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < page->waits && i < GYRE_PAGE_WAITS; i++) {
        struct gyre_page_wait wait = page->wait[i];
        const struct gyre_page_record *record;
        if (wait.comm >= GYRE_PAGE_COMMS || wait.rank < (wait.window ? -1 : 0) || wait.rank >= page->size)
            continue;
        if (wait.window) {
            page->wait[kept++] = wait;
            continue;
        }
        record = top_record(&page->comm[wait.comm], wait.serial);
        if (record && record->state == GYRE_PAGE_RUNNING) /* else it has been answered since it was noted */
            page->wait[kept++] = wait;
    }
    page->waits = kept;
    return true;
}

static bool copy_page(int fd, struct gyre_page *page)
{
    if (!read_all(fd, page, offsetof(struct gyre_page, comm), 0))
        return false;
    for (size_t c = 0; c < GYRE_PAGE_COMMS; c++)
        if (page->comms & 1u << c && !read_all(fd, &page->comm[c], sizeof page->comm[c],
                                               offsetof(struct gyre_page, comm) + c * sizeof page->comm[c]))
            return false;
    return check(page);
}

static struct top_rank *copy_rank(int fd, pid_t process)
{
    struct top_rank *rank = calloc(1, sizeof *rank);
    if (!rank || !copy_page(fd, &rank->page))
        goto fail;
    size_t bytes = (size_t)rank->page.size * sizeof *rank->members;
    rank->members = malloc(bytes);
    if (!rank->members || !read_all(fd, rank->members, bytes, sizeof(struct gyre_page)))
        goto fail;
    rank->when = now();
    rank->process = process_state(process);
    return rank;
fail:
    if (rank)
        free(rank->members);
    free(rank);
    return NULL;
}

static bool add(struct top_look *look, struct top_rank *rank)
{
    if (top_look_find(look, rank->page.job, rank->page.rank)) { /* the same page by two descriptors */
        free(rank->members);
        free(rank);
        return true;
    }
    struct top_rank **ranks = realloc(look->ranks, (look->count + 1) * sizeof(struct top_rank *));
    if (!ranks)
        return false;
    look->ranks = ranks;
    look->ranks[look->count++] = rank;
    return true;
}

/* Adds the page of one descriptor that has the name of a page. Returns false if out of memory. */
static bool look_at(struct top_look *look, pid_t process, int folder, const char *name)
{
    uint64_t head[2];
    uint32_t version[2];
    struct stat about;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return true;
    bool good = true;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && read_all(fd, head, sizeof head, 0) &&
        head[0] == GYRE_PAGE_MAGIC) {
        memcpy(version, &head[1], sizeof version);
        struct top_rank *rank = NULL;
        if (version[0] == GYRE_PAGE_VERSION && version[1] == sizeof(struct gyre_page))
            rank = copy_rank(fd, process);
        else
            look->strange++;
        good = !rank || add(look, rank);
    }
    close(fd);
    return good;
}

static bool look_through(struct top_look *look, pid_t process)
{
    char path[64], link[sizeof LINK];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)process);
    DIR *folder = opendir(path);
    bool good = true;
    for (struct dirent *entry; good && folder && (entry = readdir(folder));) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1);
        if (length == (ssize_t)sizeof link - 1 && memcmp(link, LINK, sizeof link - 1) == 0)
            good = look_at(look, process, dirfd(folder), entry->d_name);
    }
    if (folder)
        closedir(folder);
    return good;
}

static int compare(const void *left, const void *right)
{
    const struct gyre_page *a = &(*(struct top_rank *const *)left)->page,
                           *b = &(*(struct top_rank *const *)right)->page;
    if (a->job != b->job)
        return a->job < b->job ? -1 : 1;
    return a->rank - b->rank;
}

bool top_look(struct top_look *look_p)
{
    struct top_look look = {0};
    bool good = true;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; good && folder && (entry = readdir(folder));)
        if (isdigit((unsigned char)entry->d_name[0]))
            good = look_through(&look, (pid_t)atoi(entry->d_name));
    if (folder)
        closedir(folder);
    if (!good) {
        top_look_free(&look);
        return false;
    }
    if (look.count > 1)
        qsort(look.ranks, look.count, sizeof(struct top_rank *), compare);
    *look_p = look;
    return true;
}

void top_look_free(struct top_look *look)
{
    for (size_t i = 0; i < look->count; i++) {
        free(look->ranks[i]->members);
        free(look->ranks[i]);
    }
    free(look->ranks);
    *look = (struct top_look){0};
}

const struct top_rank *top_look_find(const struct top_look *look, uint64_t job, int rank)
{
    for (size_t i = 0; i < look->count; i++)
        if (look->ranks[i]->page.job == job && look->ranks[i]->page.rank == rank)
            return look->ranks[i];
    return NULL;
}

const struct gyre_page_record *top_record(const struct gyre_page_comm *comm, uint64_t serial)
{
    const struct gyre_page_record *record = &comm->record[serial % GYRE_PAGE_RECORDS];
    return serial != 0 && record->serial == serial ? record : NULL;
}

/* One whose beginning is not known stands behind another, or began just now. */
static bool began_before(const struct gyre_page_record *a, const struct gyre_page_record *b)
{
    if (a->began == 0 || b->began == 0)
        return a->began != 0 || (b->began == 0 && a->serial < b->serial);
    return a->began < b->began;
}

const struct gyre_page_record *top_running(const struct gyre_page *page, uint32_t *comm_p)
{
    const struct gyre_page_record *first = NULL;
    for (uint32_t c = 0; c < GYRE_PAGE_COMMS; c++) {
        for (size_t i = 0; page->comms & 1u << c && i < GYRE_PAGE_RECORDS; i++) {
            const struct gyre_page_record *record = &page->comm[c].record[i];
            if (record->serial == 0 || record->state != GYRE_PAGE_RUNNING || (first && !began_before(record, first)))
                continue;
            first = record;
            *comm_p = c;
        }
    }
    return first;
}

void top_describe(const struct gyre_page *page, const struct gyre_page_record *record, char *text_p, size_t bytes)
{
    unsigned collective = record->collective & ~GYRE_PAGE_VARYING;
    bool varying = record->collective & GYRE_PAGE_VARYING, message = (record->sequence & GYRE_PAGE_MESSAGE) != 0;
    const char *name = collective < GYRE_PAGE_NAMES ? page->collective[collective] : "?";
    const char *algorithm = record->algorithm < GYRE_PAGE_NAMES ? page->algorithm[record->algorithm] : "?";
    const char *dtype = gyre_dtype_name((gyre_dtype)record->dtype), *op = gyre_op_name((gyre_op)record->op);
    uint64_t number = record->sequence & ~GYRE_PAGE_MESSAGE;
    char elements[64] = "";
    if (strcmp(name, "barrier") != 0 && !varying)
        snprintf(elements, sizeof elements, "%s x %" PRIu64 ", ", dtype ? dtype : "?", record->count);
    if (message)
        snprintf(text_p, bytes, "message #%" PRIu64 " of rank %d (%s%s)", number, record->root, elements, algorithm);
    else
        snprintf(text_p, bytes, "%s%s #%" PRIu64 " (%s%s%s%s)", name, varying ? "v" : "", number, elements,
                 strstr(name, "reduce") ? (op ? op : "own operation") : "", strstr(name, "reduce") ? ", " : "",
                 algorithm);
}
