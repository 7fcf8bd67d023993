/* A rank's place in the tree of bootstrap: one branch up and at most log2 N down, each an authenticated stream. */
#ifndef GY_BOOTSTRAP_TREE_H
#define GY_BOOTSTRAP_TREE_H

#include "bootstrap/messages.h"
#include "net/message_stream.h"

#define GY_BOOTSTRAP_UP 31
#define GY_BOOTSTRAP_BRANCHES 32

struct gy_bootstrap_branch {
    struct gy_bootstrap_tree *tree;
    struct gy_stream stream;
    int rank;     /* −1: none yet */
    bool watched; /* HERE has been said: its end is a death */
    bool done;
};

struct gy_bootstrap_tree {
    struct gy_world *world;
    struct gy_error *error; /* that of bootstrap; after it is set gy_bootstrap_tree_end tells the branches */
    struct gy_bootstrap_branch branches[GY_BOOTSTRAP_BRANCHES];
    int position, expected, done;         /* expected: children there will be; done: children that said DONE */
    bool has_table, all_done, went, told; /* all_done: the whole subtree has the table; went: GO, bootstrap is over */
    bool welcome, turned_away;            /* our parent watches us; it ended before it did */
    uint8_t *table;
    size_t table_bytes;
};

/* Does not move in memory between begin and end. */
void gy_bootstrap_tree_begin(struct gy_bootstrap_tree *tree, struct gy_world *world, struct gy_error *error);
/* The tree position is known, and with it how many children will come. */
void gy_bootstrap_tree_sit(struct gy_bootstrap_tree *tree, int position);
/* Lets children in; world->listener is open. */
void gy_bootstrap_tree_open(struct gy_bootstrap_tree *tree);
/* Takes over `fd`, authenticated, to our parent; until it has said welcome, it is for rank 0 to see us die. */
void gy_bootstrap_tree_join(struct gy_bootstrap_tree *tree, int parent, int fd, const struct gy_seal_keys *keys);
/* world->members is complete: passes it down. */
void gy_bootstrap_tree_table(struct gy_bootstrap_tree *tree);
/* Rank 0, when all_done: sends GO; bootstrap is over. */
void gy_bootstrap_tree_go(struct gy_bootstrap_tree *tree);
/* The error is set: tells every branch that has not been told. */
void gy_bootstrap_tree_tell(struct gy_bootstrap_tree *tree);
/* Sends the failure to the branches that do not know it, waits at most 200 ms until everything is sent, closes.
 * Idempotent. */
void gy_bootstrap_tree_end(struct gy_bootstrap_tree *tree);
/* The error message for a rank whose connection ended with `errnum` (0: end of file) too early. */
void gy_bootstrap_lost(const struct gy_world *world, int rank, int errnum, struct gy_error *error);

#endif
