/* The handler of frames that arrive over links. */
#ifndef GY_COLLECTIVES_EVENTS_RECEIVE_DISPATCH_H
#define GY_COLLECTIVES_EVENTS_RECEIVE_DISPATCH_H

#include "collectives/engine/request.h"

extern const struct gy_receive_handler gy_flow_handler; /* without `user` */

#endif
