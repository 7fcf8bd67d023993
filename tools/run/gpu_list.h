/* The GPUs of the ranks of a host: which of them each rank sees, by CUDA_VISIBLE_DEVICES. */
#ifndef GYRE_TOOLS_GPU_LIST_H
#define GYRE_TOOLS_GPU_LIST_H

#include <stdbool.h>

/* True if the text is "auto", "none" or a list of devices as CUDA_VISIBLE_DEVICES has it. */
bool gy_gpu_list_check(const char *text);
/* Returns the list of the devices that the ranks take in turns, for free(). auto: the devices that a process on this
 * host sees. none: an empty list. NULL where `text` is NULL, and where auto finds no device, with the reason in `why`,
 * else an empty text. A process of its own asks the driver, which stays unused in this one. */
char *gy_gpu_list_make(const char *text, char *why, unsigned why_bytes);
/* Sets CUDA_VISIBLE_DEVICES of this process, which becomes local rank `local`: element `local` modulo their number. */
void gy_gpu_list_show(const char *list, int local);

#endif
