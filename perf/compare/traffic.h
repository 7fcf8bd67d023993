#ifndef GYRE_COMPARE_TRAFFIC_H
#define GYRE_COMPARE_TRAFFIC_H

#include <stdint.h>

/* Bytes of payload that the TCP sockets of this process, open now, have sent since they were made. */
uint64_t gy_traffic_sent(void);
/* Packets that all RDMA devices of this machine have sent since they were made. */
uint64_t gy_traffic_rdma(void);

#endif
