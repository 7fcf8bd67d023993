/* The paths of a blocking call: dispatch.h. */
#ifndef GY_COLLECTIVES_CALL_PATH_H
#define GY_COLLECTIVES_CALL_PATH_H

enum gy_path {
    GY_PATH_NONE, /* in the call cache: the entry is empty */
    GY_PATH_MESSAGE,
    GY_PATH_LINK_EXCHANGE,
    GY_PATH_EAGER,
    GY_PATH_MAPPED,
    GY_PATH_ROOTED,
    GY_PATH_REQUEST,
    GY_PATHS
};

#endif
