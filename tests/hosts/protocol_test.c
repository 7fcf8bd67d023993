/* What gyre-run and its agents send each other: every length is bounded, and bytes that are cut off or changed are
 * refused or wait for more. */
#include <criterion/criterion.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/agent_report.h"
#include "run/byte_queue.h"
#include "run/frame.h"
#include "run/host_part.h"

static const char *const program[] = {"./a program", "", "-x", NULL};
static const char *const variables[] = {"GYRE_LOG=info", "EMPTY=", "TWO=a=b", NULL};

static struct gy_host_part sample(void)
{
    return (struct gy_host_part){.folder = "/work",
                                 .secret = "secret",
                                 .first = 2,
                                 .ranks = 3,
                                 .world = 8,
                                 .grace_ms = 700,
                                 .label = true,
                                 .gpus = "0,GPU-1",
                                 .argv = (const char **)program,
                                 .environment = (const char **)variables};
}

Test(frame, parses_what_was_written)
{
    unsigned char bytes[64];
    struct gy_frame frame;
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert(gy_frame_write(ends[1], GY_FRAME_OUTPUT, "some bytes", 10));
    size_t held = (size_t)read(ends[0], bytes, sizeof bytes);
    cr_assert_eq(held, GY_FRAME_HEAD + 10);
    for (size_t part = 0; part < held; part++)
        cr_assert_eq(gy_frame_parse(bytes, part, &frame), 0, "%zu of %zu bytes are a frame", part, held);
    cr_assert_eq(gy_frame_parse(bytes, held, &frame), (ssize_t)held);
    cr_assert(frame.kind == GY_FRAME_OUTPUT && frame.length == 10 && memcmp(frame.payload, "some bytes", 10) == 0);
}

Test(frame, refuses_lengths_beyond_the_limit)
{
    unsigned char bytes[GY_FRAME_HEAD];
    struct gy_frame frame;
    for (int kind = 0; kind < 256; kind++) {
        bool known = kind && strchr("JMFSHOEDP", kind);
        size_t most = kind == GY_FRAME_JOB ? GY_FRAME_JOB_MOST : GY_FRAME_PAYLOAD_MOST;
        gy_frame_head(bytes, (enum gy_frame_kind)kind, most);
        cr_assert_eq(gy_frame_parse(bytes, sizeof bytes, &frame), known ? 0 : -1, "kind %d", kind);
        gy_frame_head(bytes, (enum gy_frame_kind)kind, most + 1);
        cr_assert_eq(gy_frame_parse(bytes, sizeof bytes, &frame), -1, "kind %d", kind);
    }
    cr_assert_not(gy_frame_write(1, GY_FRAME_OUTPUT, NULL, GY_FRAME_PAYLOAD_MOST + 1));
}

Test(frame, read_takes_one_kind_and_whole_frames_only)
{
    size_t length;
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert(gy_frame_write(ends[1], GY_FRAME_MEET, "a\0001", 4));
    unsigned char *payload = gy_frame_read(ends[0], GY_FRAME_MEET, &length);
    cr_assert(payload && length == 4);
    free(payload);
    cr_assert(gy_frame_write(ends[1], GY_FRAME_MEET, "a", 1));
    cr_assert_null(gy_frame_read(ends[0], GY_FRAME_JOB, &length));
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], "M\004\0\0\0ab", 7), 7);
    close(ends[1]);
    cr_assert_null(gy_frame_read(ends[0], GY_FRAME_MEET, &length));
}

Test(frame, texts_end_inside_the_payload)
{
    unsigned char payload[] = "host\00029500";
    const char *texts[2];
    struct gy_frame frame = {GY_FRAME_MEET, sizeof payload, payload};
    cr_assert(gy_frame_texts(&frame, texts, 2));
    cr_assert_str_eq(texts[0], "host");
    cr_assert_str_eq(texts[1], "29500");
    cr_assert_not(gy_frame_texts(&frame, texts, 1));
    frame.length--; /* without the final 0 */
    cr_assert_not(gy_frame_texts(&frame, texts, 2));
    frame.length = 0;
    cr_assert_not(gy_frame_texts(&frame, texts, 1));
}

Test(part, decodes_what_was_encoded)
{
    struct gy_host_part part = sample(), found;
    size_t length;
    char *payload = (char *)gy_host_part_encode(&part, &length);
    cr_assert_not_null(payload);
    cr_assert_null(gy_host_part_decode(payload, length, &found));
    cr_assert_str_eq(found.folder, "/work");
    cr_assert_str_eq(found.secret, "secret");
    cr_assert(found.first == 2 && found.ranks == 3 && found.world == 8 && found.grace_ms == 700);
    cr_assert(found.label && !found.bind);
    cr_assert_str_eq(found.gpus, "0,GPU-1");
    for (int i = 0; i < 3; i++) {
        cr_assert_str_eq(found.argv[i], program[i]);
        cr_assert_str_eq(found.environment[i], variables[i]);
    }
    cr_assert(!found.argv[3] && !found.environment[3]);
    gy_host_part_free(&found);
    free(payload);
}

Test(part, refuses_what_is_cut_off_or_changed)
{
    struct gy_host_part part = sample(), found;
    size_t length;
    char *payload = (char *)gy_host_part_encode(&part, &length), copy[512];
    cr_assert(payload && length <= sizeof copy);
    for (size_t cut = 0; cut < length; cut++) {
        memcpy(copy, payload, cut);
        const char *wrong = gy_host_part_decode(copy, cut, &found);
        cr_assert(wrong || found.argv[0], "%zu of %zu bytes are a part without a program", cut, length);
        gy_host_part_free(&found);
    }
    for (size_t at = 0; at < length; at++) { /* nothing is read or written outside, which a sanitizer sees */
        for (int value = 0; value < 256; value++) {
            memcpy(copy, payload, length);
            copy[at] = (char)value;
            if (!gy_host_part_decode(copy, length, &found))
                cr_assert(found.ranks >= 1 && found.first + found.ranks <= found.world && found.argv[0]);
            gy_host_part_free(&found);
        }
    }
    free(payload);
}

Test(part, refuses_numbers_out_of_bounds)
{
    static const struct {
        char text[64];
        size_t length;
        bool good;
    } rows[] = {
#define ROW(text, good) {text, sizeof text, good}
        ROW("d/\0ss\0f0\0n1\0w1\0ax", true),
        ROW("d/\0ss\0f0\0n2\0w1\0ax", false),
        ROW("d/\0ss\0f1\0n1\0w1\0ax", false),
        ROW("d/\0ss\0f0\0n0\0w1\0ax", false),
        ROW("d/\0ss\0f-1\0n1\0w1\0ax", false),
        ROW("d/\0ss\0f0\0n1\0w65537\0ax", false),
        ROW("d/\0ss\0f0\0n1025\0w2000\0ax", false),
        ROW("d/\0ss\0f0\0n1\0w1", false),
        ROW("d/\0f0\0n1\0w1\0ax", false),
        ROW("ss\0f0\0n1\0w1\0ax", false),
        ROW("d/\0ss\0f0\0n1\0w1\0ax\0g60001", false),
        ROW("d/\0ss\0f0\0n1\0w1\0ax\0lx", false),
        ROW("d/\0ss\0f0\0n1\0w1\0ax\0e=1", false),
        ROW("d/\0ss\0f0\0n1\0w1\0ax\0eA", false),
        ROW("d/\0ss\0f0\0n1\0w1\0ax\0z", false),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gy_host_part found;
        char copy[64];
        memcpy(copy, rows[i].text, sizeof copy);
        cr_assert_eq(gy_host_part_decode(copy, rows[i].length, &found) == NULL, rows[i].good, "row %zu", i);
        gy_host_part_free(&found);
    }
}

Test(part, refuses_more_than_a_frame_holds)
{
    struct gy_host_part part = sample();
    size_t length;
    char *large = malloc(GY_FRAME_JOB_MOST + 1);
    memset(large, 'x', GY_FRAME_JOB_MOST);
    large[GY_FRAME_JOB_MOST] = '\0';
    const char *words[] = {large, NULL};
    part.argv = words;
    cr_assert_null(gy_host_part_encode(&part, &length));
    free(large);
}

Test(report, an_end_is_decoded_and_bounded)
{
    const struct gy_rank_end end = {.rank = 1000, .pid = 77777, .by_signal = true, .status = 9, .early = true};
    struct gy_rank_end found;
    struct gy_frame frame;
    unsigned char bytes[64];
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    gy_agent_report_end(ends[1], &end);
    size_t held = (size_t)read(ends[0], bytes, sizeof bytes);
    cr_assert_gt(gy_frame_parse(bytes, held, &frame), 0);
    cr_assert(gy_agent_report_read_end(&frame, &found));
    cr_assert(found.rank == 1000 && found.pid == 77777 && found.by_signal && found.status == 9 && found.early);
    frame.payload[3] = 0x80; /* a negative rank */
    cr_assert_not(gy_agent_report_read_end(&frame, &found));
    frame.payload[3] = 0;
    frame.payload[13] = 1; /* exit status 265 */
    cr_assert_not(gy_agent_report_read_end(&frame, &found));
    frame.payload[13] = 0;
    frame.length--;
    cr_assert_not(gy_agent_report_read_end(&frame, &found));
}

Test(report, a_problem_is_one_line)
{
    char text[16];
    struct gy_frame frame;
    unsigned char bytes[64], control[] = "\001a\033[2J\nb";
    int ends[2], status;
    cr_assert_eq(pipe(ends), 0);
    gy_agent_report_problem(ends[1], 127, "cannot start 'something'");
    size_t held = (size_t)read(ends[0], bytes, sizeof bytes);
    cr_assert_gt(gy_frame_parse(bytes, held, &frame), 0);
    cr_assert(gy_agent_report_read_problem(&frame, &status, text, sizeof text));
    cr_assert_eq(status, 127);
    cr_assert_str_eq(text, "cannot start 's");
    frame = (struct gy_frame){GY_FRAME_PROBLEM, sizeof control - 1, control};
    cr_assert(gy_agent_report_read_problem(&frame, &status, text, sizeof text));
    cr_assert_str_eq(text, "a [2J b");
    frame.length = 1;
    cr_assert_not(gy_agent_report_read_problem(&frame, &status, text, sizeof text));
}

Test(queue, passes_bytes_in_order)
{
    struct gy_byte_queue queue = {0};
    unsigned char got[10000];
    size_t held = 0;
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    for (unsigned i = 0; i < sizeof got; i += 4)
        cr_assert(gy_byte_queue_put(&queue, &(uint32_t){i}, 4));
    while (queue.held > 0) {
        cr_assert(gy_byte_queue_write(&queue, ends[1]));
        held += (size_t)read(ends[0], got + held, sizeof got - held);
    }
    cr_assert_eq(held, sizeof got);
    for (unsigned i = 0; i < sizeof got; i += 4)
        cr_assert_eq(memcmp(got + i, &i, 4), 0);
    gy_byte_queue_free(&queue);
}
