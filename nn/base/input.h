/* Files that are read from beginning to end. Opening one returns, whatever the path names. For gyre-nn and the
 * tools; uses libc only. */
#ifndef GY_NN_INPUT_H
#define GY_NN_INPUT_H

#define GY_INPUT_SECONDS 60

/* Returns a descriptor of the file, or of a pipe that has data to read. -1: errno says why: ENODEV for a device,
 * EISDIR for a folder, ETIMEDOUT for a pipe without a writer's data within GY_INPUT_SECONDS (`seconds` where that is
 * above 0). */
int gy_input_open(const char *path, int seconds);

#endif
