/* Launches of kernels for ranks that share a GPU, on a stream of gyre's own. Events order it with the ranks' streams:
 *
 *   rank's stream      ready                                      waits for done | ...
 *   launcher's stream         waits for every ready | kernel | done
 *
 * Several calls share a launch if they use the same kernel and fit into its argument. The caller holds the lock of the
 * meeting, and the device's context is current. */
#ifndef GY_COLLECTIVES_DEVICE_LAUNCHER_H
#define GY_COLLECTIVES_DEVICE_LAUNCHER_H

#include "collectives/device/fused_plan.h"
#include "cuda/image.h"

/* The event that ranks wait for. It is reused when the streams of all `users` wait for `done`. */
struct gy_launch {
    struct gy_launch *next;
    gy_cu_event done;
    _Atomic unsigned users;
    struct gy_launch_memory *memory; /* pinned blocks with arrays that kernels read */
    size_t memory_used;              /* bytes used of the first block */
};

struct gy_launcher {
    struct gy_device device; /* device of the owner; all ranks use its context */
    struct gy_image *image;
    gy_cu_stream stream;
    unsigned blocks_most;       /* GYRE_CUDA_BLOCKS; 0: one block per multiprocessor */
    _Atomic uint32_t *stop;     /* pinned abort word: if it is not 0, kernels that begin do nothing */
    struct gy_launch *launches; /* all launches */
    struct gy_launch *current;  /* the launch between begin and end */
    const char *what;           /* the driver function that has failed */
    char why[300];              /* the reason why a kernel is missing */
    uint8_t occupancy[GY_KERNEL_COUNT];
    /* The launch that is being filled. */
    int kernel;
    uint64_t work; /* bytes that it writes */
    struct gy_fused fused;
    struct gy_moves moves;
};

/* The launcher owns the image from here on, also after an error of the driver. */
gy_cu_result gy_launcher_open(struct gy_launcher *launcher, const struct gy_device *device, struct gy_image *image,
                              unsigned blocks_most);
/* Waits up to 200 ms for kernels that are running. If they do not end, the memory that they access and the image are
 * not freed. */
void gy_launcher_close(struct gy_launcher *launcher);
/* Makes kernels that have not begun do nothing. Called by any thread. */
void gy_launcher_stop(struct gy_launcher *launcher);

/* True if the image contains the kernel. The driver loads a kernel at its first look-up. */
bool gy_launcher_has(struct gy_launcher *launcher, int kernel);
/* begin takes an unused launch. wait makes the launcher's stream wait for an event of a rank. add adds the contents of
 * a plan; `of` are the arrivals of its `size` ranks. end launches the rest and gives the launch for which `users` ranks
 * wait. All return an error of the driver, whose function is then `what`. */
gy_cu_result gy_launcher_begin(struct gy_launcher *launcher);
gy_cu_result gy_launcher_wait(struct gy_launcher *launcher, gy_cu_event ready);
gy_cu_result gy_launcher_add(struct gy_launcher *launcher, const struct gy_fused_plan *plan,
                             struct gy_arrival *const *of, int size);
gy_cu_result gy_launcher_end(struct gy_launcher *launcher, unsigned users, struct gy_launch **launch_p);
/* Ends a rank's use of a launch: its stream already waits for `done`, or never will. Called by any thread, without the
 * lock. */
void gy_launch_release(struct gy_launch *launch);

#endif
