/* The registrants at rank 0 during bootstrap, and the state that rank 0 keeps of all ranks. */
#ifndef GY_BOOTSTRAP_REGISTRATION_H
#define GY_BOOTSTRAP_REGISTRATION_H

#include "bootstrap/tree.h"

struct gy_registration;

/* Rank 0's side of bootstrap: registrants fill it, bootstrap/server.c waits for it to be full. */
struct gy_bootstrap_root {
    struct gy_rendezvous *meeting;
    struct gy_world *world;
    struct gy_listener *listener;
    struct gy_registration *registrants;
    int *positions; /* [size] by rank; 0: not registered */
    int *ranks;     /* [size] by tree position */
    struct gy_bootstrap_refusal {
        enum gy_refusal why;
        uint16_t theirs, ours; /* versions */
    } * refusals;              /* [size] why the last connection that claimed this rank was refused */
    bool impossible;           /* a connection that claimed an impossible rank was refused: */
    uint32_t impossible_rank;
    int registered, late; /* late: gets the failure instead of being registered */
    struct gy_error failure;
    struct gy_bootstrap_tree tree;
};

/* Lets them in from the listener. */
void gy_registrations_open(struct gy_bootstrap_root *root);
/* Removes registrants that are gone; slow ones free their slots. Not from a callback. */
void gy_registrations_sweep(struct gy_bootstrap_root *root);
/* Sends the failure to the registrants that have not been seated. */
void gy_registrations_tell(struct gy_bootstrap_root *root);
bool gy_registrations_flushed(const struct gy_bootstrap_root *root);
void gy_registrations_close(struct gy_bootstrap_root *root);

#endif
