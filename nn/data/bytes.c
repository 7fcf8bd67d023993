/* Reads whole files into memory. zlib reads plain files as they are, so .gz needs no second path. The size is
 * bounded while reading, by GY_NN_LARGEST_FILE and by half of the machine's memory: a packed file may unpack to any
 * size, and a pipe may never end. A device is refused. */
#include "base/error.h"
#include "base/input.h"
#include "data/dataset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static size_t largest(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t half = pages > 0 && page > 0 ? (size_t)pages / 2 * (size_t)page : GY_NN_LARGEST_FILE;
    return half < GY_NN_LARGEST_FILE ? half : GY_NN_LARGEST_FILE;
}

static gyre_status grow(struct gy_nn_bytes *bytes, size_t *room, const char *name)
{
    if (*room >= largest()) {
        gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s is larger than %zu MiB, the most that is read into this machine's memory",
                   name, largest() >> 20);
        return GYRE_INVALID_ARGUMENT;
    }
    size_t more = *room ? *room * 2 : 1 << 16;
    uint8_t *data = realloc(bytes->data, more + 1); /* the closing 0 has room of its own */
    if (!data) {
        gy_nn_fail(GYRE_NO_MEMORY, "no memory for the %zu bytes of %s", more, name);
        return GYRE_NO_MEMORY;
    }
    bytes->data = data;
    *room = more;
    return GYRE_SUCCESS;
}

/* What zlib says of bytes that it does not unpack. */
static gyre_status flaw(int code, const char *name, const char *text)
{
    if (code == Z_MEM_ERROR)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory to unpack %s", name);
    return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s is damaged: %s", name, text);
}

static gyre_status open_file(const char *path, gzFile *file_p, bool *missing_p)
{
    int fd = gy_input_open(path, 0);
    if (missing_p)
        *missing_p = fd < 0 && errno == ENOENT;
    if (fd < 0 && errno == ENODEV)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s is a device; a file or a pipe is expected", path);
    if (fd < 0 && errno == ETIMEDOUT)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s is a pipe into which nothing has been written for %d s", path,
                          GY_INPUT_SECONDS);
    if (fd < 0)
        return gy_nn_fail_system(errno, errno == EISDIR ? "cannot read %s" : "cannot open %s", path);
    *file_p = gzdopen(fd, "rb");
    if (*file_p)
        return GYRE_SUCCESS;
    close(fd);
    return gy_nn_fail(GYRE_NO_MEMORY, "no memory to read %s", path);
}

gyre_status gy_nn_bytes_read(const char *path, struct gy_nn_bytes *bytes_p, bool *missing_p)
{
    struct gy_nn_bytes bytes = {0};
    size_t room = 0;
    gyre_status status = GYRE_SUCCESS;
    gzFile file = NULL;
    status = open_file(path, &file, missing_p);
    if (status != GYRE_SUCCESS || !file)
        return status;
    for (;;) {
        if (bytes.size == room && (status = grow(&bytes, &room, path)) != GYRE_SUCCESS)
            break;
        size_t left = room - bytes.size;
        int got = gzread(file, bytes.data + bytes.size, (unsigned)(left < (1u << 30) ? left : 1u << 30));
        if (got < 0) {
            int code;
            const char *text = gzerror(file, &code);
            status = code == Z_ERRNO ? gy_nn_fail_system(errno, "cannot read %s", path) : flaw(code, path, text);
            break;
        }
        if (got == 0)
            break;
        bytes.size += (size_t)got;
    }
    if (gzclose(file) == Z_BUF_ERROR && status == GYRE_SUCCESS)
        status = gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s ends too early", path);
    if (status != GYRE_SUCCESS) {
        free(bytes.data);
        return status;
    }
    bytes.data[bytes.size] = 0;
    *bytes_p = bytes;
    return GYRE_SUCCESS;
}

gyre_status gy_nn_bytes_unpack(const void *packed, size_t size, const char *name, struct gy_nn_bytes *bytes_p)
{
    struct gy_nn_bytes bytes = {0};
    size_t room = 0;
    gyre_status status = GYRE_SUCCESS;
    z_stream stream = {.next_in = (z_const Bytef *)packed, .avail_in = (uInt)size};
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory to unpack %s", name);
    for (int code = Z_OK; code != Z_STREAM_END;) {
        if (bytes.size == room && (status = grow(&bytes, &room, name)) != GYRE_SUCCESS)
            break;
        stream.next_out = bytes.data + bytes.size;
        stream.avail_out = (uInt)(room - bytes.size);
        code = inflate(&stream, Z_NO_FLUSH);
        bytes.size = room - stream.avail_out;
        if (code != Z_OK && code != Z_STREAM_END) {
            status = flaw(code, name, stream.msg ? stream.msg : "it ends too early");
            break;
        }
    }
    inflateEnd(&stream);
    if (status != GYRE_SUCCESS) {
        free(bytes.data);
        return status;
    }
    bytes.data[bytes.size] = 0;
    *bytes_p = bytes;
    return GYRE_SUCCESS;
}
