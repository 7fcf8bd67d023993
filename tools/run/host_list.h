/* The hosts of a job, with the number of ranks that each may run: from --hosts a:2,b:2 or from a file. */
#ifndef GYRE_TOOLS_HOST_LIST_H
#define GYRE_TOOLS_HOST_LIST_H

#include <stdbool.h>
#include <stddef.h>

#define GY_HOST_LIST_MOST 1024
#define GY_HOST_NAME_BYTES 256

struct gy_host_entry {
    char name[GY_HOST_NAME_BYTES]; /* as ssh takes it: [USER@]HOST, or an alias of its configuration */
    int slots;                     /* ranks that it may run */
    int ranks;                     /* ranks that it runs */
};

struct gy_host_list {
    struct gy_host_entry *entries; /* calloc */
    int count;
};

/* Append the hosts of "a:2,b:2", or of a file with a host per line: "a:2", "a slots=2" or "a", with # comments. A host
 * without a number has one slot. A host that is there already gets the slots as well. False: `why` says what is
 * wrong. */
bool gy_host_list_parse(struct gy_host_list *list, const char *text, char *why, size_t bytes);
bool gy_host_list_read(struct gy_host_list *list, const char *path, char *why, size_t bytes);
/* Places `ranks` ranks, host by host; 0: as many as there are slots. Hosts without a rank are removed. Returns the
 * number of ranks; 0: the slots are too few. */
int gy_host_list_place(struct gy_host_list *list, int ranks);
void gy_host_list_free(struct gy_host_list *list);

#endif
