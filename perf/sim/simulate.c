/* All ranks' schedules on SimGrid: one simulated process per lane, over a star of hosts. Each run is a process of its
 * own, for the engine exists once per process; what it finds comes back through a pipe. */
#include <math.h>
#include <simgrid/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/schedule/layout.h"
#include "lane.h"

#define LIMIT_SECONDS 300
#define CALLS \
    3 /* where a link has a burst: what one call leaves in the buckets the next begins with; the last counts */

/* SimGrid reads a platform from a file only. */
static bool describe(const struct gy_cluster *cluster, int hosts, char *path)
{
    int fd = mkstemps(path, 4);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file)
        return false;
    fprintf(file,
            "<?xml version='1.0'?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\"><platform "
            "version=\"4.1\"><cluster id=\"c\" prefix=\"h\" suffix=\"\" radical=\"0-%d\" speed=\"1Gf\" bw=\"%.17gBps\" "
            "lat=\"0s\" sharing_policy=\"SPLITDUPLEX\"/></platform>\n",
            hosts - 1, cluster->bandwidth);
    return fclose(file) == 0;
}

static void lane_main(int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    sim_lane_run(sg_actor_self_get_data());
}

static void wire_main(int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    sim_wire_run(sg_actor_self_get_data());
}

static bool is_sending(const struct sim_lane *lane)
{
    const struct gy_schedule *schedule = lane->rank->schedule;
    return schedule->step[schedule->lane[lane->index].first].kind == GY_SEND;
}

static sg_actor_t actor(struct sim_lane *lane, const char *name)
{
    sg_actor_t actor = sg_actor_init(name, lane->rank->world->hosts[sim_host(lane->rank)].host);
    sg_actor_set_data(actor, lane);
    return actor;
}

static bool build(struct sim_world *world, const struct sim_case *it, int hosts)
{
    world->it = it;
    world->calls = it->cluster->burst > 0 ? CALLS : 1;
    world->ranks = calloc((size_t)it->ranks, sizeof(*world->ranks));
    world->hosts = calloc((size_t)hosts, sizeof(*world->hosts));
    int *groups = calloc((size_t)it->ranks, sizeof(*groups)); /* which the schedules go on pointing to */
    if (!world->ranks || !world->hosts || !groups)
        return false;
    for (int r = 0; r < it->ranks; r++)
        groups[r] = r / (int)it->cluster->ranks_per_host;
    for (int h = 0; h < hosts; h++) {
        char name[32];
        snprintf(name, sizeof(name), "h%d", h);
        struct sim_bucket full = {.tokens = it->cluster->burst};
        world->hosts[h] = (struct sim_host){.host = sg_host_by_name(name), .out = full, .in = full};
    }
    for (int r = 0; r < it->ranks; r++) {
        struct sim_rank *rank = &world->ranks[r];
        struct gy_schedule_shape shape = {.collective = it->collective,
                                          .algorithm = it->algorithm,
                                          .rank = r,
                                          .size = it->ranks,
                                          .root = it->root,
                                          .groups = groups};
        rank->world = world;
        rank->number = r;
        rank->schedule = gy_schedule_build(&shape);
        if (!rank->schedule)
            return false;
    }
    for (int r = 0; r < it->ranks; r++)
        for (int l = 0; l < world->ranks[r].schedule->lanes; l++) {
            struct sim_lane *lane = &world->ranks[r].lane[l];
            lane->rank = &world->ranks[r];
            lane->index = l;
            world->unfinished = ++world->lanes;
            lane->last = &lane->first;
            lane->wire.last = &lane->wire.first;
            lane->actor = actor(lane, "lane");
            lane->wire.actor = is_sending(lane) ? actor(lane, "wire") : NULL;
        }
    return true;
}

static double run(const struct sim_case *it)
{
    char path[] = "/tmp/gyre-sim-XXXXXX.xml";
    int argc = 8;
    char *arguments[] = {(char[]){"gyre-sim"},
                         (char[]){"--log=root.thresh:error"},
                         (char[]){"--cfg=network/model:CM02"},
                         (char[]){"--cfg=network/TCP-gamma:0"},
                         (char[]){"--cfg=network/crosstraffic:0"},
                         (char[]){"--cfg=contexts/factory:raw"},
                         (char[]){"--cfg=contexts/stack-size:32"},
                         (char[]){"--cfg=contexts/guard-size:0"},
                         NULL};
    char **argv = arguments;
    int hosts = (it->ranks + (int)it->cluster->ranks_per_host - 1) / (int)it->cluster->ranks_per_host;
    struct sim_world world = {0};
    if (!describe(it->cluster, hosts, path))
        return NAN;
    simgrid_init(&argc, argv);
    simgrid_load_platform(path);
    unlink(path);
    if (!build(&world, it, hosts))
        return NAN;
    for (int r = 0; r < it->ranks; r++)
        for (int l = 0; l < world.ranks[r].schedule->lanes; l++) {
            struct sim_lane *lane = &world.ranks[r].lane[l];
            sg_actor_start_(lane->actor, lane_main, 0, NULL);
            if (lane->wire.actor)
                sg_actor_start_(lane->wire.actor, wire_main, 0, NULL);
        }
    simgrid_run();
    if (world.unfinished > 0)
        fprintf(stderr, "gyre-sim: %d lanes of %s wait for ever\n", world.unfinished, gy_algorithm_name(it->algorithm));
    return world.unfinished > 0 ? NAN : world.end - world.start; /* the process ends: nothing is freed */
}

double simulate(const struct sim_case *it)
{
    int ends[2];
    double seconds = NAN;
    fflush(NULL);
    if (pipe(ends) != 0)
        return NAN;
    pid_t child = fork();
    if (child == 0) {
        alarm(LIMIT_SECONDS);
        seconds = run(it);
        _exit(write(ends[1], &seconds, sizeof(seconds)) == sizeof(seconds) ? 0 : 1);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &seconds, sizeof(seconds)) != sizeof(seconds)) {
        fprintf(stderr, "gyre-sim: the simulation of %d ranks did not end within %d s, or had no memory\n", it->ranks,
                LIMIT_SECONDS);
        seconds = NAN;
    }
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return seconds;
}

double simulate_messages(const struct sim_case *it)
{
    struct gy_schedule_shape shape = {.collective = it->collective,
                                      .algorithm = it->algorithm,
                                      .rank = it->ranks > 1,
                                      .size = it->ranks,
                                      .root = it->root};
    struct gy_schedule *schedule = gy_schedule_build(&shape);
    double messages = 0;
    for (int s = 0; schedule && s < schedule->steps; s++) {
        struct gy_layout layout = {.total = it->total, .blocks = schedule->blocks};
        size_t width = schedule->step[s].kind >= GY_PUBLISH ? 1 : (size_t)schedule->step[s].range.width;
        messages += (double)schedule->step[s].rounds *
                    (double)gy_layout_tiles(gy_layout_longest(&layout, (int32_t)width), it->tile);
    }
    gy_schedule_free(schedule);
    return messages * it->ranks;
}
