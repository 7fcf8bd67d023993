/* The decoder: what was written comes back; whatever is damaged is refused with an error message; a checkpoint that
 * does not fit changes nothing. */
#include "io/safetensors.h"
#include "run/run_state.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t build(const char *header, size_t data, uint8_t *out)
{
    uint64_t length = strlen(header);
    memcpy(out, &length, 8); /* little-endian, as this test's machines */
    memcpy(out + 8, header, length);
    memset(out + 8 + length, 0x3f, data);
    return 8 + length + data;
}

static gyre_status decode(const char *header, size_t data)
{
    uint8_t bytes[4096];
    struct gy_st_file file;
    size_t size = build(header, data, bytes);
    uint8_t *exact = malloc(size); /* of the exact size, so that a sanitizer sees any read beyond */
    memcpy(exact, bytes, size);
    gyre_status status = gy_st_decode(exact, size, "test", &file);
    if (status == GYRE_SUCCESS)
        gy_st_free(&file);
    free(exact);
    return status;
}

#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}"

Test(safetensors, good_files)
{
    cr_assert_eq(decode("{}", 0), GYRE_SUCCESS);
    cr_assert_eq(decode("{" A "}", 24), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert_eq(decode("{" A ",\"b\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[24,32]}}   ", 32),
                 GYRE_SUCCESS);
    cr_assert_eq(
        decode("{\"__metadata__\":{\"k\":\"v\"},\"e\":{\"dtype\":\"I32\",\"shape\":[0],\"data_offsets\":[0,0]}," A "}",
               24),
        GYRE_SUCCESS);
}

Test(safetensors, damaged_files_are_refused)
{
    static const struct {
        const char *header;
        size_t data;
    } bad[] = {
        {"", 0},
        {"[]", 0},
        {"{", 0},
        {"{" A "}", 23},
        {"{" A "}", 25},
        {"{" A "," A "}", 24},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[4,28]}}", 28},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24,0]}}", 24},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[-8,16]}}", 24},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[0,24]}}", 24},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2,-3],\"data_offsets\":[0,24]}}", 24},
        {"{\"a\":{\"dtype\":\"F31\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", 24},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}}", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],"
         "\"data_offsets\":[0,4]}}",
         4},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],"
         "\"data_offsets\":[8,12]}}",
         12},
        {"{\"a\":7}", 0},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":\"x\",\"data_offsets\":[0,0]}}", 0},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_assert_eq(decode(bad[i].header, bad[i].data), GYRE_INVALID_ARGUMENT, "case %zu: %s", i, bad[i].header);
        cr_assert(strstr(gyre_nn_last_error(), "test "), "%s", gyre_nn_last_error());
    }
}

Test(safetensors, every_prefix_of_a_file_is_refused)
{
    uint8_t bytes[512];
    size_t size = build("{" A "}", 24, bytes);
    for (size_t cut = 0; cut < size; cut++) {
        struct gy_st_file file;
        uint8_t *part = malloc(cut ? cut : 1);
        memcpy(part, bytes, cut);
        cr_assert_eq(gy_st_decode(part, cut, "test", &file), GYRE_INVALID_ARGUMENT, "%zu bytes", cut);
        free(part);
    }
}

struct run {
    gyre_nn_model *model;
    gyre_nn_optimizer *optimizer;
};

static struct run make(size_t hidden, gyre_nn_optimizer_kind kind, uint64_t seed)
{
    struct run run;
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(kind);
    cr_assert_eq(gyre_nn_mlp(3, &hidden, 1, GYRE_NN_RELU, 2, GYRE_FLOAT32, seed, &run.model), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_optimizer_create(run.model, &config, &run.optimizer), GYRE_SUCCESS);
    return run;
}

static void unmake(struct run run)
{
    gyre_nn_optimizer_free(run.optimizer);
    gyre_nn_free(run.model);
}

Test(checkpoint, comes_back_bit_for_bit_and_leaves_nothing_beside)
{
    char folder[] = "/tmp/gyre_nn_XXXXXX", path[64];
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/c.safetensors", folder);
    struct run a = make(5, GYRE_NN_ADAM, 1), b = make(5, GYRE_NN_ADAM, 2);
    size_t bytes = gyre_nn_param_count(a.model) * 4;
    for (size_t i = 0; i < bytes / 4; i++) {
        ((float *)gyre_nn_optimizer_state(a.optimizer, 0))[i] = (float)i;
        ((float *)gyre_nn_optimizer_state(a.optimizer, 1))[i] = -(float)i;
    }
    gyre_nn_optimizer_set_steps(a.optimizer, 12);
    struct gyre_nn_position in = {.seed = UINT64_MAX, .epoch = 3, .sample = 77, .step = 123456789012}, out = {0};
    cr_assert_eq(gyre_nn_checkpoint_write(path, a.model, a.optimizer, &in), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert_eq(gyre_nn_checkpoint_read(path, b.model, b.optimizer, &out), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert_eq(memcmp(&in, &out, sizeof(in)), 0);
    cr_assert_eq(memcmp(gyre_nn_params(a.model), gyre_nn_params(b.model), bytes), 0);
    for (int slot = 0; slot < 2; slot++)
        cr_assert_eq(
            memcmp(gyre_nn_optimizer_state(a.optimizer, slot), gyre_nn_optimizer_state(b.optimizer, slot), bytes), 0);
    cr_assert_eq(gyre_nn_optimizer_steps(b.optimizer), 12);

    struct run other = make(6, GYRE_NN_ADAM, 4), kind = make(5, GYRE_NN_SGD, 4);
    uint64_t before = gyre_nn_params_hash(other.model);
    cr_assert_eq(gyre_nn_checkpoint_read(path, other.model, other.optimizer, &out), GYRE_INVALID_ARGUMENT);
    cr_assert(strstr(gyre_nn_last_error(), "0.weight has another type or shape"), "%s", gyre_nn_last_error());
    cr_assert_eq(gyre_nn_params_hash(other.model), before);
    cr_assert_eq(gyre_nn_checkpoint_read(path, kind.model, kind.optimizer, &out), GYRE_INVALID_ARGUMENT);
    cr_assert(strstr(gyre_nn_last_error(), "optimiser adam"), "%s", gyre_nn_last_error());
    cr_assert_eq(gyre_nn_checkpoint_write("/nowhere/x", a.model, a.optimizer, &in), GYRE_SYSTEM);

    remove(path); /* a file may be replaced; a pipe, a device may not, by whomever */
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(gyre_nn_checkpoint_write(path, a.model, a.optimizer, &in), GYRE_INVALID_ARGUMENT);
    cr_assert(strstr(gyre_nn_last_error(), "it is a device or a pipe"), "%s", gyre_nn_last_error());

    remove(path);
    cr_assert_eq(rmdir(folder), 0, "something was left in the folder");
    unmake(a);
    unmake(b);
    unmake(other);
    unmake(kind);
}

Test(checkpoint, of_a_copy_is_of_the_same_text)
{
    char path[] = "/tmp/gyre_nn_XXXXXX", bytes[] = "ab", others[] = "ac";
    close(mkstemp(path));
    gyre_nn_dataset text = {.alphabet = bytes, .classes = 2}, other = {.alphabet = others, .classes = 2};
    struct run a = make(5, GYRE_NN_SGD, 1), b = make(5, GYRE_NN_SGD, 2);
    struct gyre_nn_position position = {0};
    gyre_nn_model *copy = NULL;
    gy_nn_note_alphabet(a.model, &text);
    gy_nn_note_alphabet(b.model, &other);
    cr_assert_eq(gyre_nn_clone(a.model, &copy), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_checkpoint_write(path, copy, NULL, &position), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert_eq(gyre_nn_checkpoint_read(path, a.model, NULL, &position), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert_eq(gyre_nn_checkpoint_read(path, b.model, NULL, &position), GYRE_INVALID_ARGUMENT);
    cr_assert(strstr(gyre_nn_last_error(), "other bytes"), "%s", gyre_nn_last_error());
    remove(path);
    gyre_nn_free(copy);
    unmake(a);
    unmake(b);
}

Test(checkpoint, read_into_a_model_without_text_makes_it_of_that_text)
{
    char path[] = "/tmp/gyre_nn_XXXXXX", bytes[] = "ab", others[] = "ac";
    close(mkstemp(path));
    gyre_nn_dataset text = {.alphabet = bytes, .classes = 2}, other = {.alphabet = others, .classes = 2};
    struct run a = make(5, GYRE_NN_SGD, 1), reader = make(5, GYRE_NN_SGD, 2), b = make(5, GYRE_NN_SGD, 3);
    struct gyre_nn_position position = {0};
    gy_nn_note_alphabet(a.model, &text);
    gy_nn_note_alphabet(b.model, &other);
    cr_assert_eq(gyre_nn_checkpoint_write(path, a.model, NULL, &position), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_checkpoint_read(path, reader.model, NULL, &position), GYRE_SUCCESS);
    remove(path);
    cr_assert_eq(gyre_nn_checkpoint_write(path, reader.model, NULL, &position), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_checkpoint_read(path, b.model, NULL, &position), GYRE_INVALID_ARGUMENT);
    cr_assert(strstr(gyre_nn_last_error(), "other bytes"), "%s", gyre_nn_last_error());
    cr_assert_eq(gyre_nn_checkpoint_read(path, a.model, NULL, &position), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    remove(path);
    unmake(a);
    unmake(reader);
    unmake(b);
}
