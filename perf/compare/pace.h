/* The speed of this rank's core at the moment. A hypervisor runs virtual processors on hardware threads. The other
 * thread of the core may use the same units at the same time, for this machine or for another one. A virtual machine
 * can see that only by the time that work takes. */
#ifndef GYRE_COMPARE_PACE_H
#define GYRE_COMPARE_PACE_H

struct gy_pace {
    double chain_ns; /* a multiplication that needs the one before: the clock's frequency, on a shared core too */
    double work_ns;  /* one of many additions that wait for nothing: how much of the core there is */
};

/* Medians over some tens of microseconds. */
struct gy_pace gy_pace_measure(void);

#endif
