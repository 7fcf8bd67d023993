/* The checks at the top of public functions: a required pointer is not NULL. */
#ifndef GY_NN_REQUIRE_H
#define GY_NN_REQUIRE_H

#include <gyre/nn.h>

/* Returns true if none of `count` pointers is NULL. Else writes the message "function: name is NULL" with the first
 * such pointer's name; `names` are those of all, separated by commas. */
bool gy_nn_require(const char *function, const char *names, size_t count, const void *const *pointers);

#define GY_NN_GIVEN(...)                                                                               \
    gy_nn_require(__func__, #__VA_ARGS__, sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *), \
                  (const void *const[]){__VA_ARGS__})

/* In a function that returns a status, a value that stands for none, or nothing. */
#define GY_NN_REQUIRE(...)                                  \
    do {                                                    \
        if (__builtin_expect(!GY_NN_GIVEN(__VA_ARGS__), 0)) \
            return GYRE_INVALID_ARGUMENT;                   \
    } while (0)
#define GY_NN_REQUIRE_OR(value, ...)                        \
    do {                                                    \
        if (__builtin_expect(!GY_NN_GIVEN(__VA_ARGS__), 0)) \
            return value;                                   \
    } while (0)
#define GY_NN_REQUIRE_VOID(...)                             \
    do {                                                    \
        if (__builtin_expect(!GY_NN_GIVEN(__VA_ARGS__), 0)) \
            return;                                         \
    } while (0)

#endif
