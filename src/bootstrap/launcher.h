/* Launchers: the program that started this process, and the variables it gives the ranks.
 *
 * One row per launcher: its names of rank, size and local rank, the label that tells its runs apart, and the rendezvous
 * of its ranks. A row is one file, launcher_<name>.c; launcher.c selects the row. */
#ifndef GY_BOOTSTRAP_LAUNCHER_H
#define GY_BOOTSTRAP_LAUNCHER_H

#include "bootstrap/identity.h"

struct gy_launcher {
    const char *name;    /* as GYRE_LAUNCHER has it */
    const char *program; /* for error messages */
    const char *rank, *local;
    const char *size;   /* NULL: it has to be asked, with `ask` */
    const char *run[2]; /* variables that tell one run from another; NULL: none */
    /* The variable that only this launcher's own processes have inside a step of Slurm. NULL: they cannot be told from
     * processes with stale variables. */
    const char *inner;
    /* Sets identity->size and local_rank, and what `place` needs. Or NULL. */
    gyre_status (*ask)(struct gy_identity *identity, const struct gy_config *config, struct gy_error *error);
    /* Sets identity->address and address_from, or exchange, exchange_user and exchange_end. */
    gyre_status (*place)(struct gy_identity *identity, const struct gy_config *config, struct gy_error *error);
};

extern const struct gy_launcher gy_launcher_torchrun, gy_launcher_openmpi, gy_launcher_pmix, gy_launcher_pmi,
    gy_launcher_slurm;

/* Finds the launcher that started this process, by GYRE_LAUNCHER or by its variables; fills rank, size and local_rank.
 * MEETING_FAILED: there is none, or one of its variables is missing; BAD_CONFIGURATION: two contradict each other. */
gyre_status gy_launcher_find(const struct gy_config *config, struct gy_identity *identity, struct gy_error *error);
/* Hash of the launcher's name for this run; 0: it has none. */
uint64_t gy_launcher_run(const struct gy_launcher *launcher);

/* A variable as a number; false: BAD_CONFIGURATION. An empty variable counts as not set. */
bool gy_launcher_number(const char *name, long least, long most, long *value_p, bool *present_p,
                        struct gy_error *error);
/* The variable's value, NULL where it is not set or empty. */
const char *gy_launcher_text(const char *name);
/* MASTER_ADDR and MASTER_PORT. `otherwise` replaces a missing port; 0: both must be there. */
gyre_status gy_launcher_master(struct gy_identity *identity, uint16_t otherwise, struct gy_error *error);

/* The first host of a list as Slurm writes it: "rack[0-1]n[08-11,14],login" is "rack0n08". Pure; false: it is none, or
 * longer than `bytes` - 1. */
bool gy_slurm_first_host(const char *list, char *host_p, size_t bytes);
/* A port from 10000 to 29999, below the kernels' ephemeral ports, the same on every rank of a step. Pure. */
uint16_t gy_slurm_port(const char *job, const char *step);
/* The value of `key` in a line of PMI-1, "cmd=get_result rc=0 value=x"; false: not there, or longer than `bytes` - 1.
 * Pure. */
bool gy_pmi_value(const char *line, const char *key, char *value_p, size_t bytes);

#endif
