/* An agent writes its line, reads its part of the job, reports that it is ready, waits for the address of rank 0, and
 * runs the ranks. Standard input and output are frames from the job on. */
#include "run/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/agent_report.h"
#include "run/frame.h"
#include "run/host_part.h"
#include "run/launch.h"

static bool report(int status, const char *what, const char *name)
{
    char text[GY_HOST_PROBLEM_BYTES];
    snprintf(text, sizeof text, "%s%.150s: %s", what, name, strerror(errno));
    gy_agent_report_problem(STDOUT_FILENO, status, text);
    return false;
}

/* Sets the job's variables, its folder and its secret in this process. */
static bool take_over(const struct gy_host_part *part, struct gy_rendezvous *rendezvous)
{
    *rendezvous = (struct gy_rendezvous){.first = part->first, .world = part->world, .reserved = -1, .secret = -1};
    unsetenv("GYRE_SECRET");
    unsetenv("GYRE_SECRET_FILE");
    for (const char **variable = part->environment; *variable; variable++) {
        const char *value = strchr(*variable, '=') + 1;
        char *name = strndup(*variable, (size_t)(value - *variable) - 1);
        bool set = name && setenv(name, value, 1) == 0;
        free(name);
        if (!set)
            return report(1, "cannot set the environment", "");
    }
    if (chdir(part->folder))
        return report(1, "cannot change to the working directory ", part->folder);
    if (gy_rendezvous_hold_secret(rendezvous, part->secret))
        return report(1, "cannot keep the secret", "");
    if (part->first == 0 && gy_rendezvous_reserve(rendezvous, false))
        return report(1, "cannot reserve a port", "");
    return true;
}

/* Reports the address at which the host was reached, which sshd has put third into SSH_CONNECTION, and the port. */
static bool report_ready(const struct gy_rendezvous *rendezvous)
{
    char address[GY_HOST_ADDRESS_BYTES] = "", payload[GY_HOST_ADDRESS_BYTES + sizeof rendezvous->port];
    const char *connection = getenv("SSH_CONNECTION");
    if (!connection || sscanf(connection, "%*s %*s %63s", address) != 1)
        *address = '\0';
    int length = snprintf(payload, sizeof payload, "%s%c%s", address, 0, rendezvous->port);
    return gy_frame_write(STDOUT_FILENO, GY_FRAME_READY, payload, (size_t)length + 1);
}

static bool read_meeting(struct gy_rendezvous *rendezvous)
{
    struct gy_frame frame = {.kind = GY_FRAME_MEET};
    const char *texts[2] = {"", ""};
    frame.payload = gy_frame_read(STDIN_FILENO, GY_FRAME_MEET, &frame.length);
    bool good = frame.payload && gy_frame_texts(&frame, texts, 2) && strlen(texts[0]) < sizeof rendezvous->address &&
                strlen(texts[1]) < sizeof rendezvous->port;
    if (good) {
        snprintf(rendezvous->address, sizeof rendezvous->address, "%s", texts[0]);
        snprintf(rendezvous->port, sizeof rendezvous->port, "%s", texts[1]);
    }
    free(frame.payload);
    return good;
}

static int run(const struct gy_host_part *part, struct gy_rendezvous *rendezvous)
{
    const struct gy_launch_link link = {
        .control = STDIN_FILENO, .reports = STDOUT_FILENO, .grace_ms = part->grace_ms, .rendezvous = rendezvous};
    const struct gy_launch launch = {.tool = "gyre-run",
                                     .path = part->argv[0],
                                     .argv = (char *const *)part->argv,
                                     .ranks = part->ranks,
                                     .label = part->label,
                                     .bind = part->bind,
                                     .gpus = part->gpus,
                                     .link = &link};
    return gy_launch_run(&launch);
}

int gy_agent_run(void)
{
    static const char line[] = "\n" GY_AGENT_LINE "\n";
    struct gy_host_part part = {0};
    struct gy_rendezvous rendezvous = {.reserved = -1, .secret = -1};
    size_t length = 0;
    int status = 1;
    if (write(STDOUT_FILENO, line, sizeof line - 1) != (ssize_t)sizeof line - 1)
        return 1;
    char *payload = (char *)gy_frame_read(STDIN_FILENO, GY_FRAME_JOB, &length);
    const char *wrong = payload ? gy_host_part_decode(payload, length, &part) : NULL;
    if (wrong)
        gy_agent_report_problem(STDOUT_FILENO, 1, wrong);
    else if (payload && take_over(&part, &rendezvous) && report_ready(&rendezvous) && read_meeting(&rendezvous))
        status = run(&part, &rendezvous);
    gy_host_part_free(&part);
    if (payload)
        explicit_bzero(payload, length);
    free(payload);
    return status;
}
