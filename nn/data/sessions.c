/* Sessions with a planted structure, drawn from a seed, for models that recommend.
 *
 * Items fall into CATEGORIES categories, item i into i mod CATEGORIES; so do features. A user has a favourite
 * category, which the features tell: most features of that category are set, and few of the others. A session is
 * items at random, exactly one of which is of the favourite category, at a random place. The next item is the
 * successor of that item in its category; in one of NOISE sessions it is any item. So neither the session nor the
 * features alone tell the answer, and an answer should rest on that one item. sessions_cause finds it again. */
#include "base/error.h"
#include "base/random.h"
#include "base/require.h"
#include "data/dataset.h"

#include <stdlib.h>

#define CATEGORIES ((size_t)4)
#define NOISE ((uint64_t)50)

struct gyre_nn_sessions gyre_nn_sessions_defaults(void)
{
    return (struct gyre_nn_sessions){.samples = 4000, .steps = 10, .items = 32, .features = 32, .seed = 1};
}

static size_t item_of(uint64_t *state, size_t items, size_t category)
{
    return category + CATEGORIES * (size_t)gy_nn_random_below(state, items / CATEGORIES);
}

static void draw(uint64_t *state, const struct gyre_nn_sessions *how, float *x, int32_t *label)
{
    size_t favourite = (size_t)gy_nn_random_below(state, CATEGORIES);
    size_t place = (size_t)gy_nn_random_below(state, how->steps), cause = 0;
    for (size_t t = 0; t < how->steps; t++) {
        size_t other = (favourite + 1 + (size_t)gy_nn_random_below(state, CATEGORIES - 1)) % CATEGORIES;
        size_t item = item_of(state, how->items, t == place ? favourite : other);
        x[t] = (float)item;
        cause = t == place ? item : cause;
    }
    for (size_t f = 0; f < how->features; f++)
        x[how->steps + f] = gy_nn_random_below(state, 16) < (f % CATEGORIES == favourite ? 12 : 1);
    *label = (int32_t)((cause + CATEGORIES) % how->items);
    if (gy_nn_random_below(state, NOISE) == 0)
        *label = (int32_t)gy_nn_random_below(state, how->items);
}

gyre_status gyre_nn_sessions_open(const struct gyre_nn_sessions *how, gyre_nn_dataset **data_p)
{
    GY_NN_REQUIRE(how, data_p);
    gyre_nn_dataset *data;
    if (how->samples < 2 || how->steps == 0 || how->steps > 4096 || how->items < CATEGORIES ||
        how->items % CATEGORIES != 0 || how->items > GY_NN_LARGEST_CLASS || how->features == 0 ||
        how->features > GY_NN_LARGEST_CLASS)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "sessions need samples, steps, features, and a multiple of %zu items",
                          CATEGORIES);
    gyre_status status = gy_nn_dataset_alloc(how->samples, how->steps + how->features, 1, &data);
    if (status != GYRE_SUCCESS)
        return status;
    uint64_t state = how->seed;
    for (size_t i = 0; i < how->samples; i++)
        draw(&state, how, data->x + i * data->features, data->labels + i);
    status = gy_nn_dataset_split_at(data, how->samples - how->samples / 5);
    data->classes = how->items; /* whether or not each has occurred */
    *data_p = data;
    return status;
}

size_t gyre_nn_sessions_cause(const struct gyre_nn_sessions *how, const float *x)
{
    GY_NN_REQUIRE_OR(0, how, x);
    size_t set[CATEGORIES] = {0}, favourite = 0, t = 0;
    for (size_t f = 0; f < how->features; f++)
        set[f % CATEGORIES] += x[how->steps + f] > 0;
    for (size_t c = 1; c < CATEGORIES; c++)
        favourite = set[c] > set[favourite] ? c : favourite;
    while (t < how->steps && (size_t)x[t] % CATEGORIES != favourite)
        t++;
    return t;
}
