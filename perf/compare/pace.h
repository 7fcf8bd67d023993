/* How quick this rank's core is at the moment. A hypervisor runs virtual processors on threads of cores, whose units the other thread
 * may use at the same time, for this machine or for another one. That cannot be seen from inside but by what it takes. */
#ifndef GYRE_COMPARE_PACE_H
#define GYRE_COMPARE_PACE_H

struct gy_pace {
    double chain_ns; /* a multiplication that waits for the one before: the clock's frequency, whoever uses the core */
    double work_ns;  /* one of many additions that wait for nothing: how much of the core there is */
};

/* Medians over some tens of microseconds. */
struct gy_pace gy_pace_measure(void);

#endif
