/* Kernels over the operands of ranks that are processes of one host. Each rank offers its operands (call_fact.h). The
 * lowest rank of each device is a leader: it maps the operands of all ranks, and launches a kernel for its part of the
 * call. The driver's events do not order work of several processes, so the ranks' workers do: mapped_call.h. */
#ifndef GY_COLLECTIVES_DEVICE_MAPPER_H
#define GY_COLLECTIVES_DEVICE_MAPPER_H

#include "collectives/device/arrangement.h"
#include "collectives/device/call_fact.h"
#include "collectives/device/launcher.h"
#include "collectives/device/staging.h"

struct gy_mapper {
    struct gy_device *device; /* the attachment's */
    struct gy_share *share;
    struct gy_staging staging; /* of calls that no kernel can do; the worker's */
    gy_cu_stream stream;       /* copies of these */
    int size;
    int part, parts;                /* of this rank's device, among the devices of all ranks */
    int *part_of;                   /* [size] */
    bool leads;                     /* this rank launches the kernels of its device */
    uint64_t calls;                 /* made by the caller's thread */
    uint64_t forgotten;             /* exports whose end the other ranks have been told */
    int32_t done_here, done_by_all; /* operands of a request */
    struct gy_launcher launcher;    /* of the leader, as what follows */
    struct gy_fused_plan plan;
    size_t fact_bytes;
    unsigned char *facts; /* of all ranks; this rank's own, which is sent, lies behind them */
    struct gy_call *call;
    struct gy_arrival *arrival, **of;
    struct gy_share_mapping **mapping; /* in use, [held] */
    size_t held;
    gy_cu_address probe; /* memory whose offer tells whether memory can be shared at all */
};

struct gy_mapper_setup {
    int size, rank;
    const struct gy_device_fact *facts; /* of all ranks; read by gy_mapper_open only */
    const char *kernels;                /* GYRE_CUDA_KERNELS */
    unsigned blocks_most;
};

/* Returns false with a sentence in `why`; then nothing is held. The device's context is current. */
bool gy_mapper_open(struct gy_mapper *mapper, struct gy_device *device, const struct gy_mapper_setup *setup, char *why,
                    size_t why_bytes);
/* Idempotent. No request uses the facts any more. The device's context is current. */
void gy_mapper_close(struct gy_mapper *mapper);

/* offer_probe: writes an offer of a piece of memory into the fact to be sent. map_probes: the leader maps those of all
 * ranks, whose facts are there. They return false with a sentence in `why`. The device's context is current. */
bool gy_mapper_offer_probe(struct gy_mapper *mapper, char *why, size_t why_bytes);
bool gy_mapper_map_probes(struct gy_mapper *mapper, char *why, size_t why_bytes);

/* The fact of a rank; that of rank `size` is the one to be sent. */
struct gy_call_fact *gy_mapper_fact(const struct gy_mapper *mapper, int rank);
/* Closes the mappings of memory that other ranks have forgotten, as their facts say. */
void gy_mapper_close_forgotten(struct gy_mapper *mapper);
/* plan: maps the operands of all ranks, whose facts are there, for a call of this rank; returns false with a sentence
 * in `why` where no kernel can do it. launch: launches what is planned, on the launcher's stream. release: ends the use
 * of the operands, whether they were launched or not. The device's context is current. */
bool gy_mapper_plan(struct gy_mapper *mapper, const struct gy_arrival *own, char *why, size_t why_bytes);
gy_cu_result gy_mapper_launch(struct gy_mapper *mapper);
void gy_mapper_release(struct gy_mapper *mapper);

#endif
