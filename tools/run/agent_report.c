/* The end of a rank is five little-endian numbers of four bytes: rank, process id, 1 for a death by signal, signal or
 * exit status, 1 for an early end. A problem is one byte of exit status and a text without a final 0. */
#include "run/agent_report.h"

#include <stdint.h>
#include <string.h>

#define NUMBERS 5u

void gy_agent_report_end(int fd, const struct gy_rank_end *end)
{
    const uint32_t numbers[NUMBERS] = {(uint32_t)end->rank, (uint32_t)end->pid, end->by_signal, (uint32_t)end->status,
                                       end->early};
    unsigned char payload[4 * NUMBERS];
    for (unsigned i = 0; i < sizeof payload; i++)
        payload[i] = (unsigned char)(numbers[i / 4] >> (8 * (i % 4)));
    (void)gy_frame_write(fd, GY_FRAME_END, payload, sizeof payload);
}

bool gy_agent_report_read_end(const struct gy_frame *frame, struct gy_rank_end *end_p)
{
    uint32_t numbers[NUMBERS] = {0};
    if (frame->length != 4 * NUMBERS)
        return false;
    for (unsigned i = 0; i < frame->length; i++)
        numbers[i / 4] |= (uint32_t)frame->payload[i] << (8 * (i % 4));
    if (numbers[0] > INT32_MAX || numbers[1] > INT32_MAX || numbers[2] > 1 || numbers[3] > 255 || numbers[4] > 1)
        return false;
    *end_p = (struct gy_rank_end){.rank = (int)numbers[0],
                                  .pid = (int)numbers[1],
                                  .by_signal = numbers[2] == 1,
                                  .status = (int)numbers[3],
                                  .early = numbers[4] == 1};
    return true;
}

void gy_agent_report_problem(int fd, int status, const char *text)
{
    unsigned char payload[256];
    size_t length = strnlen(text, sizeof payload - 1);
    payload[0] = (unsigned char)status;
    memcpy(payload + 1, text, length);
    (void)gy_frame_write(fd, GY_FRAME_PROBLEM, payload, 1 + length);
}

bool gy_agent_report_read_problem(const struct gy_frame *frame, int *status_p, char *text, size_t bytes)
{
    if (frame->length < 2 || frame->payload[0] == 0)
        return false;
    size_t length = frame->length - 1 < bytes ? frame->length - 1 : bytes - 1;
    *status_p = frame->payload[0];
    memcpy(text, frame->payload + 1, length);
    text[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ')
            text[i] = ' ';
    return true;
}
