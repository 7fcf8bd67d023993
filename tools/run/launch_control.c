/* Orders of gyre-run to the agent of a host. The end of the standard input means that gyre-run, or the connection to
 * it, is gone: all ranks are killed at once. */
#include "run/launch_job.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "run/frame.h"

static void end(struct gy_launch_job *job)
{
    job->control = -1;
    gy_launch_enter(job, KILLING);
}

static void obey(struct gy_launch_job *job, const struct gy_frame *frame)
{
    if (frame->kind == GY_FRAME_SIGNAL && frame->length == 1) {
        gy_launch_interrupt(job, frame->payload[0]);
    } else if (frame->kind == GY_FRAME_FAILURE && job->phase == RUNNING) {
        gy_launch_note_endings(job);
        gy_launch_enter(job, GRACE);
    }
}

void gy_launch_obey(struct gy_launch_job *job)
{
    struct gy_frame frame;
    ssize_t used, got = read(job->control, job->orders + job->ordered, sizeof job->orders - job->ordered);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        end(job);
        return;
    }
    job->ordered += (size_t)got;
    while ((used = gy_frame_parse(job->orders, job->ordered, &frame)) > 0) {
        obey(job, &frame);
        job->ordered -= (size_t)used;
        memmove(job->orders, job->orders + used, job->ordered);
    }
    if (used < 0 || job->ordered == sizeof job->orders)
        end(job); /* no order is so long */
}
