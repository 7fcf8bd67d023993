#include "train/output_paths.h"

#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/options.h"

/* written: line by line, into the existing file. whole: a new file replaces the old one, and a device is written to.
 * replaced: a new file replaces the old one, and a device is refused. */
enum use { READ, WRITTEN, WHOLE, REPLACED };

struct file {
    const char *option, *path;
    enum use use;
};

#define FILES 8

/* Of csv:FILE, npy:FILE and text:FILE; NULL: there is none. */
static const char *data_file(const char *data)
{
    const char *colon = strchr(data, ':');
    bool is_file = strncmp(data, "csv:", 4) == 0 || strncmp(data, "npy:", 4) == 0 || strncmp(data, "text:", 5) == 0;
    return is_file ? colon + 1 : NULL;
}

static void list(const struct arguments *a, struct file files_p[FILES])
{
    const struct file files[FILES] = {{"--data", data_file(a->data), READ},
                                      {"--resume", a->train.resume, READ},
                                      {"--replay-membership", a->replay_membership, READ},
                                      {"--metrics", a->metrics, WRITTEN},
                                      {"--predict", a->predict, WHOLE},
                                      {"--trace", a->trace, WHOLE},
                                      {"--membership", a->membership, WHOLE},
                                      {"--checkpoint", a->train.checkpoint, REPLACED}};
    memcpy(files_p, files, sizeof(files));
}

/* Compares by name where the file does not exist yet. Devices and pipes may be given twice. */
static bool is_same(const char *a, const char *b)
{
    struct stat x, y;
    bool has_x = stat(a, &x) == 0, has_y = stat(b, &y) == 0;
    if (!has_x || !has_y)
        return !has_x && !has_y && strcmp(a, b) == 0;
    return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void files_refuse_shared(const struct arguments *arguments)
{
    struct file files[FILES];
    list(arguments, files);
    for (size_t i = 0; i < FILES; i++)
        for (size_t j = i + 1; j < FILES; j++) {
            const struct file *a = &files[i], *b = &files[j];
            bool goes_on = a->path == arguments->train.resume && b->use == REPLACED;
            if (a->path && b->path && b->use != READ && !goes_on && is_same(a->path, b->path))
                gy_options_refuse("%s and %s are one file, %s: give each its own", a->option, b->option, b->path);
        }
}

/* Checks without writing; NULL: no obstacle is known. */
static const char *obstacle(const struct file *file)
{
    char folder[4096];
    struct stat there;
    bool exists = stat(file->path, &there) == 0;
    if (exists && S_ISDIR(there.st_mode))
        return strerror(EISDIR);
    if (exists && (file->use == WRITTEN || (file->use == WHOLE && !S_ISREG(there.st_mode))))
        return access(file->path, W_OK) == 0 ? NULL : strerror(errno);
    if (exists && !S_ISREG(there.st_mode))
        return "it is a device or a pipe, and a new file would take its place";
    snprintf(folder, sizeof(folder), "%s", file->path);
    return access(dirname(folder), W_OK | X_OK) == 0 ? NULL : strerror(errno);
}

bool files_can_be_written(const struct arguments *arguments, char text_p[FILES_TEXT])
{
    struct file files[FILES];
    list(arguments, files);
    for (size_t i = 0; i < FILES; i++) {
        const char *why = files[i].path && files[i].use != READ ? obstacle(&files[i]) : NULL;
        if (!why)
            continue;
        snprintf(text_p, FILES_TEXT, "cannot write %s%.400s: %s", files[i].use == REPLACED ? "the checkpoint " : "",
                 files[i].path, why);
        return false;
    }
    return true;
}
