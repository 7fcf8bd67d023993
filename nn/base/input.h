/* Files that are read from beginning to end: opening one returns, whatever the path names. For gyre-nn and the tools; uses libc
 * only. */
#ifndef GY_NN_INPUT_H
#define GY_NN_INPUT_H

#define GY_INPUT_SECONDS 60

/* A descriptor of the file, or of a pipe in which there is something to read. -1: errno says why; ENODEV for a device, EISDIR for
 * a folder, ETIMEDOUT for a pipe into which nobody has written within GY_INPUT_SECONDS, or `seconds` where that is above 0. */
int gy_input_open(const char *path, int seconds);

#endif
