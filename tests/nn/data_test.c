/* NumPy arrays hold the samples that the same numbers hold as csv, in every type; text is cut as described; csv with
 * and without a header holds the same samples; damaged files are refused with their names and the place. */
#include "base/input.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <gyre/nn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS 20
#define COLUMNS 4 /* three features and the label */

static char path[64];

static void place(const char *kind)
{
    snprintf(path, sizeof(path), "/tmp/gyre_nn_data_%d.%s", (int)getpid(), kind);
}

static int value_of(size_t row, size_t column)
{
    return column == COLUMNS - 1 ? (int)(row % 2) : (int)((row * 7 + column * 13) % 50);
}

static FILE *create(const char *kind)
{
    place(kind);
    FILE *file = fopen(path, "we");
    cr_assert_not_null(file);
    return file;
}

static void write_csv(void)
{
    FILE *file = create("csv");
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < COLUMNS; c++)
            fprintf(file, "%d%s", value_of(r, c), c + 1 < COLUMNS ? "," : "\n");
    fclose(file);
}

static void write_element(FILE *file, const char *type, int value)
{
    float f = (float)value;
    double d = value;
    uint8_t u = (uint8_t)value;
    int32_t i = value;
    int64_t l = value;
    const void *at = strcmp(type, "<f4") == 0   ? (void *)&f
                     : strcmp(type, "<f8") == 0 ? (void *)&d
                     : strcmp(type, "|u1") == 0 ? (void *)&u
                     : strcmp(type, "<i4") == 0 ? (void *)&i
                                                : (void *)&l;
    fwrite(at, (size_t)(type[2] - '0'), 1, file);
}

static void write_npy(const char *type, const char *order, const char *shape, size_t rows)
{
    FILE *file = create("npy");
    char text[118];
    memset(text, ' ', sizeof(text));
    int used = snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", type, order, shape);
    text[used] = ' ';
    text[sizeof(text) - 1] = '\n';
    fwrite("\x93NUMPY\1\0\x76\0", 1, 10, file);
    fwrite(text, 1, sizeof(text), file);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < COLUMNS; c++)
            write_element(file, type, value_of(r, c));
    fclose(file);
}

static gyre_status open_file(const char *kind, gyre_nn_dataset **data_p)
{
    char name[96];
    place(kind);
    snprintf(name, sizeof(name), "%s:%s", kind, path);
    gyre_status status = gyre_nn_dataset_open(name, data_p);
    remove(path);
    return status;
}

Test(data, npy_is_csv_in_another_form)
{
    static const char *const types[] = {"<f4", "<f8", "|u1", "<i4", "<i8"};
    gyre_nn_dataset *csv = NULL;
    write_csv();
    cr_assert_eq(open_file("csv", &csv), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    for (size_t t = 0; t < 5; t++) {
        gyre_nn_dataset *npy = NULL;
        write_npy(types[t], "False", "(20, 4)", ROWS);
        cr_assert_eq(open_file("npy", &npy), GYRE_SUCCESS, "%s: %s", types[t], gyre_nn_last_error());
        cr_assert(npy->samples == ROWS && npy->features == 3 && npy->classes == 2 && npy->steps == 1);
        cr_assert_arr_eq(npy->x, csv->x, ROWS * 3 * sizeof(float));
        cr_assert_arr_eq(npy->labels, csv->labels, ROWS * sizeof(int32_t));
        cr_assert(npy->ntrain == csv->ntrain && npy->ntest == csv->ntest && npy->ntest == 4);
        cr_assert_arr_eq(npy->test, csv->test, npy->ntest * sizeof(uint32_t));
        gyre_nn_dataset_free(npy);
    }
    gyre_nn_dataset_free(csv);
}

static void told(gyre_status status, const char *why)
{
    cr_assert_neq(status, GYRE_SUCCESS, "no error: %s", why);
    cr_assert(strstr(gyre_nn_last_error(), path), "%s", gyre_nn_last_error());
    cr_assert(strstr(gyre_nn_last_error(), why), "'%s' instead of '%s'", gyre_nn_last_error(), why);
}

static void refused(const char *type, const char *order, const char *shape, size_t rows, const char *why)
{
    gyre_nn_dataset *data = NULL;
    write_npy(type, order, shape, rows);
    told(open_file("npy", &data), why);
    cr_assert_null(data);
}

Test(data, npy_of_another_shape_or_length_is_refused)
{
    refused("<f4", "True", "(20, 4)", ROWS, "Fortran order: save numpy.ascontiguousarray");
    refused("<f4", "False", "(80,)", ROWS, "no array of two dimensions");
    refused("<f4", "False", "(20, 2, 2)", ROWS, "no array of two dimensions");
    refused("<f4", "False", "(21, 4)", ROWS, "cut short: 21 times 4 elements of 4 bytes, and 320 bytes are there");
    refused("<f4", "False", "(20, 4)", ROWS - 1, "cut short");
    refused("<f4", "False", "(0, 4)", 0, "no array of two dimensions");
    refused("<f4", "False", "(999999999999, 999999999999)", ROWS, "cut short");
    refused("<c8", "False", "(20, 4)", ROWS, "none of float32");
    refused("<f16", "False", "(20, 4)", ROWS, "none of float32");
    refused(">f4", "False", "(20, 4)", ROWS, "none of float32");
}

/* What is in `text` as a file of this kind. */
static gyre_status open_text(const char *kind, const char *text, gyre_nn_dataset **data_p)
{
    FILE *file = create(kind);
    fputs(text, file);
    fclose(file);
    return open_file(kind, data_p);
}

#define SAMPLES "1,2,0\n2,3,1\n3,4,0\n4,5,1\n5,6,0\n6,7,1\n"

/* A header is a line without a number; a byte order mark, blanks and CRLF change nothing; no sample is lost on the
 * way. */
Test(data, csv_with_header_mark_and_blanks)
{
    static const char *const texts[] = {
        SAMPLES,
        "a,b,label\n" SAMPLES,
        ",,\n" SAMPLES,
        "\"nan\",inf,nan\n" SAMPLES,
        "\xEF\xBB\xBF" SAMPLES,
        "\xEF\xBB\xBF"
        "a,b,label\r\n" SAMPLES,
        " 1 ,\t2, 0 \r\n2,3,1\r\n\r\n3,4,0\n4,5,1\n5,6,0\n6,7,1",
        "1,2e0,0\n0x2,3,1\n3,4,0\n4,5,1\n5,6,0\n6,7,1.0\n",
        "1;2;0\n2;3;1\n3;4;0\n4;5;1\n5;6;0\n6;7;1\n",
        "a\tb\tlabel\n1\t2\t0\n2\t3\t1\n3\t4\t0\n4\t5\t1\n5\t6\t0\n6\t7\t1",
        "# a; comment; of; more\n\n1,2,0\n#\n \t\n2,3,1\n3,4,0\n4,5,1\n5,6,0\n6,7,1\n# end",
        "\"a, \"\"first\"\"\n# of two\",\"b;;;;\",label\n\"1\",\"2\",\"0\"\r\n2,3,1\n3,4,0\n4,5,1\n5,6,0\n6,7,1\n"};
    gyre_nn_dataset *first = NULL, *data = NULL;
    cr_assert_eq(open_text("csv", SAMPLES, &first), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        cr_assert_eq(open_text("csv", texts[i], &data), GYRE_SUCCESS, "%zu: %s", i, gyre_nn_last_error());
        cr_assert(data->samples == 6 && data->features == 2 && data->classes == 2, "%zu: %zu samples", i,
                  data->samples);
        cr_assert_arr_eq(data->x, first->x, 12 * sizeof(float));
        cr_assert_arr_eq(data->labels, first->labels, 6 * sizeof(int32_t));
        gyre_nn_dataset_free(data);
    }
    gyre_nn_dataset_free(first);
}

Test(data, what_cannot_be_read_is_refused_in_time)
{
    gyre_nn_dataset *data = NULL;
    place("fifo");
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    errno = 0;
    cr_assert(gy_input_open(path, 1) == -1 && errno == ETIMEDOUT, "%s", strerror(errno));
    int writer = open(path, O_RDWR);
    cr_assert(writer >= 0 && write(writer, SAMPLES, strlen(SAMPLES)) > 0);
    int reader = gy_input_open(path, 1);
    cr_assert(reader >= 0 && !(fcntl(reader, F_GETFL) & O_NONBLOCK));
    close(reader);
    close(writer);
    unlink(path);
    cr_assert_eq(gyre_nn_dataset_open("csv:/dev/zero", &data), GYRE_INVALID_ARGUMENT);
    cr_assert_neq(gyre_nn_dataset_open("csv:/", &data), GYRE_SUCCESS);
    cr_assert(strstr(gyre_nn_last_error(), "Is a directory"), "%s", gyre_nn_last_error());
}

Test(data, csv_with_names_of_classes)
{
    gyre_nn_dataset *data = NULL;
    const char *text = "1,2,pear\n2,3,\"apple, \"\"red\"\"\"\n3,4,pear\n4,5,\"apple, \"\"red\"\"\"\n5,6,pear\n6,7,10\n";
    cr_assert_eq(open_text("csv", text, &data), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert_arr_eq(data->labels, ((int32_t[]){2, 1, 2, 1, 2, 0}), 6 * sizeof(int32_t));
    cr_assert(data->classes == 3 && data->names && !data->names[3]);
    cr_assert_str_eq(data->names[0], "10");
    cr_assert_str_eq(data->names[1], "apple, \"red\"");
    cr_assert_str_eq(data->names[2], "pear");
    gyre_nn_dataset_free(data);
    cr_assert_eq(open_text("csv", SAMPLES, &data), GYRE_SUCCESS);
    cr_assert_null(data->names);
    gyre_nn_dataset_free(data);
}

Test(data, csv_with_a_mistake_names_its_place)
{
    gyre_nn_dataset *data = NULL;
    told(open_text("csv", ",2,0\n" SAMPLES, &data), "line 1, column 1: no finite number");
    told(open_text("csv", "x,2,0\n" SAMPLES, &data), "line 1, column 1: no finite number");
    told(open_text("csv", "a,b,c\n" SAMPLES "7,,1\n", &data), "line 8, column 2: no finite number");
    told(open_text("csv", SAMPLES "7,8\n", &data), "line 7: 2 columns; 3 expected, as in the first line");
    told(open_text("csv", SAMPLES "7,8,1,\n", &data), "line 7: 4 columns; 3 expected");
    told(open_text("csv", SAMPLES "7,8,\n9,9,1\n", &data), "line 7, column 3: the label is no finite number");
    told(open_text("csv", SAMPLES "7,8,one\n", &data), "line 7, column 3: the label is no finite number");
    told(open_text("csv", SAMPLES "7,\"8\n9,9,1\n", &data), "line 7: a quote inside");
    told(open_text("csv", SAMPLES "# 7\n7,8\"9,1\n", &data), "line 8: a quote inside");
    told(open_text("csv", "1,2,a\n2,3,b\n3,4,\n", &data), "line 3: the label is empty");
    told(open_text("csv", "1,5;2,5;0\n", &data), "column 2: no finite number");
    told(open_text("csv", SAMPLES "1e39,8,1\n", &data), "line 7, column 1: no finite number");
    told(open_text("csv", SAMPLES "7,nan,1\n", &data), "line 7, column 2: no finite number");
    told(open_text("csv", SAMPLES "7,8,1.5\n", &data), "line 7: the label 1.5 is not an integer");
    told(open_text("csv", SAMPLES "7,8,-1\n", &data), "line 7: the label -1 is not an integer");
    told(open_text("csv", "1 2 0\n2 3 1\n", &data), "holds no samples: numbers separated by commas");
    told(open_text("csv", "", &data), "holds no samples");
    told(open_text("csv", "a,b,label\n", &data), "holds no samples");
    told(open_text("csv", "1,0\n2,1\n3,0\n4,1\n", &data), "too small to split: 4 samples in 2 classes");
    told(open_text("npy", "PK\3\4 and an archive", &data), "save one array with numpy.save");
    told(open_text("npy", SAMPLES, &data), "is no NumPy array");
    told(open_text("text", "", &data), "has 0 bytes, too few for two samples of 64");
    cr_assert_null(data);
    place("folder");
    char name[96];
    snprintf(name, sizeof(name), "idx:%s", path);
    told(gyre_nn_dataset_open(name, &data), "holds neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz");
}

static void put_idx(const char *folder, const char *name, const uint8_t *sizes, size_t dimensions, size_t bytes)
{
    char file_name[160];
    snprintf(file_name, sizeof(file_name), "%s/%s", folder, name);
    FILE *file = fopen(file_name, "w");
    cr_assert_not_null(file);
    fprintf(file, "%c%c\10%c", 0, 0, (int)dimensions);
    for (size_t d = 0; d < dimensions; d++)
        fprintf(file, "%c%c%c%c", 0, 0, 0, sizes[d]);
    fprintf(file, "%*s", (int)bytes, "");
    fclose(file);
}

/* Two files without a part for testing are divided class by class, and the images keep their shape. */
Test(data, idx_files_that_are_not_divided)
{
    gyre_nn_dataset *data = NULL;
    char folder[] = "/tmp/gyre-idx-XXXXXX", name[96];
    cr_assert(mkdtemp(folder));
    put_idx(folder, "images-idx3-ubyte", (const uint8_t[]){10, 2, 3}, 3, 60);
    put_idx(folder, "labels-idx1-ubyte", (const uint8_t[]){10}, 1, 10);
    snprintf(name, sizeof(name), "idx:%s", folder);
    cr_assert_eq(gyre_nn_dataset_open(name, &data), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert(data->samples == 10 && data->features == 6 && data->ntrain == 8 && data->ntest == 2);
    cr_assert(data->image.height == 2 && data->image.width == 3 && data->image.channels == 1);
    gyre_nn_dataset_free(data);
    put_idx(folder, "labels-idx1-ubyte", (const uint8_t[]){9}, 1, 9);
    told(gyre_nn_dataset_open(name, &data), "10 images with 9 labels");
    snprintf(name, sizeof(name), "rm -r %s", folder);
    cr_assert_eq(system(name), 0);
    cr_assert_eq(gyre_nn_dataset_open("digits", &data), GYRE_SUCCESS);
    cr_assert(data->image.height == 8 && data->image.width == 8 && data->image.channels == 1);
    gyre_nn_dataset_free(data);
}

Test(data, idx_files_that_do_not_fit_tell_their_sizes)
{
    gyre_nn_dataset *data = NULL;
    char folder[] = "/tmp/gyre-idx-XXXXXX", name[96];
    cr_assert_not_null(mkdtemp(folder));
    put_idx(folder, "train-images-idx3-ubyte", (const uint8_t[]){3, 2, 2}, 3, 12);
    put_idx(folder, "train-labels-idx1-ubyte", (const uint8_t[]){3}, 1, 3);
    put_idx(folder, "t10k-images-idx3-ubyte", (const uint8_t[]){2, 3, 3}, 3, 18);
    put_idx(folder, "t10k-labels-idx1-ubyte", (const uint8_t[]){2}, 1, 2);
    snprintf(name, sizeof(name), "idx:%s", folder);
    told(gyre_nn_dataset_open(name, &data),
         "do not fit: 3 images of 4 pixels with 3 labels for training, 2 of 9 with 2 for testing");
    snprintf(name, sizeof(name), "rm -r %s", folder);
    cr_assert_eq(system(name), 0);
}

Test(data, text_is_cut_into_steps)
{
    gyre_nn_dataset *data = NULL;
    const char *text = "hello world, hello";
    FILE *file = create("text");
    fputs(text, file);
    fclose(file);
    cr_assert_eq(gyre_nn_text_open(path, 4, &data), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert(data->samples == 4 && data->features == 4 && data->steps == 4 && data->classes == 9);
    cr_assert(data->ntrain == 3 && data->ntest == 1 && data->test[0] == 3);
    cr_assert_arr_eq(data->alphabet, " ,dehlorw", 9);
    for (size_t i = 0; i < 16; i++) {
        cr_assert_eq(data->alphabet[(size_t)data->x[i]], text[i]);
        cr_assert_eq(data->alphabet[data->labels[i]], text[i + 1]);
    }
    double x[8];
    int32_t labels[8];
    gyre_nn_dataset_gather(data, (const uint32_t[]){2, 0}, 2, GYRE_FLOAT64, x, labels);
    cr_assert_eq(data->alphabet[(size_t)x[0]], 'r');
    cr_assert_eq(data->alphabet[labels[7]], 'o');
    gyre_nn_dataset_free(data);
    cr_assert_eq(gyre_nn_text_open(path, 9, &data), GYRE_INVALID_ARGUMENT);
    cr_assert_eq(gyre_nn_text_open(path, 0, &data), GYRE_INVALID_ARGUMENT);
    remove(path);
}
