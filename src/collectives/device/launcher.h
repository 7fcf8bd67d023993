/* Launches of kernels for ranks that share a GPU, on a stream of gyre's own. The order is made by events:
 *
 *   rank's stream      ready                                      waits for done | ...
 *   launcher's stream         waits for every ready | kernel | done
 *
 * Pieces and moves of several calls go into one launch where they fit. The caller has the lock of the meeting, and its
 * device is entered. */
#ifndef GY_COLLECTIVES_DEVICE_LAUNCHER_H
#define GY_COLLECTIVES_DEVICE_LAUNCHER_H

#include "collectives/device/fused_plan.h"
#include "cuda/image.h"

/* What ranks wait for. It is used again when `users` streams wait for `done`. */
struct gy_launch {
    struct gy_launch *next;
    gy_cu_event done;
    _Atomic unsigned users;
    struct gy_launch_memory *memory; /* pinned: arrays that kernels read */
    size_t memory_used;              /* of the first one */
};

struct gy_launcher {
    struct gy_device device; /* its owner's; its context is that of all ranks */
    struct gy_image *image;
    gy_cu_stream stream;
    unsigned blocks_most;       /* GYRE_CUDA_BLOCKS; 0: as many as multiprocessors */
    _Atomic uint32_t *stop;     /* pinned: kernels that have not begun do nothing */
    struct gy_launch *launches; /* all */
    struct gy_launch *current;  /* between begin and end */
    const char *what;           /* the function of the driver that has failed */
    char why[300];              /* a kernel that is missing */
    uint8_t occupancy[GY_KERNEL_COUNT];
    /* The launch that is being filled. */
    int kernel;
    uint64_t work; /* bytes that its threads write */
    struct gy_fused fused;
    struct gy_moves moves;
};

/* The image belongs to the launcher from here on, also after an error of the driver. */
gy_cu_result gy_launcher_open(struct gy_launcher *launcher, const struct gy_device *device, struct gy_image *image,
                              unsigned blocks_most);
/* Waits up to 200 ms for what is under way; after that, its memory and the image stay. */
void gy_launcher_close(struct gy_launcher *launcher);
/* Kernels that have not begun do nothing. From any thread. */
void gy_launcher_stop(struct gy_launcher *launcher);

/* True if the image has what the call needs. The driver loads a kernel at the first look. */
bool gy_launcher_has(struct gy_launcher *launcher, int kernel);
/* begin: takes a launch. wait: for an event of a rank. add: what a plan holds; `of` are its `size` ranks, and
 * `divisor` that of an average. end: launches the rest, and gives what `users` ranks wait for. They return an error of
 * the driver, whose function is `what`. */
gy_cu_result gy_launcher_begin(struct gy_launcher *launcher);
gy_cu_result gy_launcher_wait(struct gy_launcher *launcher, gy_cu_event ready);
gy_cu_result gy_launcher_add(struct gy_launcher *launcher, const struct gy_fused_plan *plan,
                             struct gy_arrival *const *of, int size);
gy_cu_result gy_launcher_end(struct gy_launcher *launcher, unsigned users, struct gy_launch **launch_p);
/* A stream waits for it, or never will. From any thread, without the lock. */
void gy_launch_release(struct gy_launch *launch);

#endif
