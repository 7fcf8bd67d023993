/* The strategies of this library, and the text that sets what can be set of one: "every=8,beta=0.5". */
#include "strategies/strategies.h"

#include "base/error.h"
#include "base/plain.h"
#include "base/require.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const gyre_nn_strategy *const table[] = {
    &gy_nn_sync,     &gy_nn_average, &gy_nn_bmuf,          &gy_nn_easgd, &gy_nn_admm,
    &gy_nn_slowmo,   &gy_nn_diloco,  &gy_nn_deterministic, &gy_nn_zero,  &gy_nn_compressed,
    &gy_nn_pipeline, &gy_nn_stale,   &gy_nn_async,
};

const gyre_nn_strategy *gyre_nn_strategy_at(size_t index)
{
    return index < sizeof(table) / sizeof(table[0]) ? table[index] : NULL;
}

const gyre_nn_strategy *gyre_nn_strategy_find(const char *name)
{
    GY_NN_REQUIRE_OR(NULL, name);
    const gyre_nn_strategy *strategy;
    for (size_t i = 0; (strategy = gyre_nn_strategy_at(i)); i++)
        if (strcmp(strategy->name, name) == 0)
            return strategy;
    return NULL;
}

static gyre_status refuse(const gyre_nn_strategy *strategy, const char *word, size_t length, const char *why)
{
    return gy_nn_fail(GYRE_INVALID_ARGUMENT, "strategy %s: \"%.*s\" %s", strategy->name,
                      (int)(length < 64 ? length : 64), word, why);
}

#define LIST 256

static void append(char text[LIST], const char *word)
{
    size_t used = strlen(text);
    snprintf(text + used, LIST - used, "%s%s", used ? ", " : "", word);
}

static gyre_status refuse_name(const gyre_nn_strategy *strategy, const char *word, size_t length)
{
    char list[LIST] = "", why[LIST + 64];
    for (const struct gyre_nn_setting *s = strategy->settings; s && s->name; s++)
        append(list, s->name);
    snprintf(why, sizeof(why),
             *list ? "is none of its settings, which are %s" : "is none of its settings: it has none%s", list);
    return refuse(strategy, word, length, why);
}

static gyre_status refuse_value(const gyre_nn_strategy *strategy, const struct gyre_nn_setting *setting,
                                const char *word, size_t length)
{
    char list[LIST] = "", why[LIST + 64];
    for (int i = 0; setting->choices && setting->choices[i]; i++)
        append(list, setting->choices[i]);
    if (*list)
        snprintf(why, sizeof(why), "is out of bounds: one of %s", list);
    else
        snprintf(why, sizeof(why), "is out of bounds: a %snumber from %g to %g", setting->choices ? "whole " : "",
                 setting->least, setting->most);
    return refuse(strategy, word, length, why);
}

static bool equals(const char *name, const char *word, size_t length)
{
    return strlen(name) == length && memcmp(name, word, length) == 0;
}

/* Reads the value of `setting` from word[0 … length−1]: one of its choices, or a number in its bounds. It is a whole
 * number where choices has no names. */
static bool read_value(const struct gyre_nn_setting *setting, const char *word, size_t length, double *value_p)
{
    for (int i = 0; setting->choices && setting->choices[i]; i++)
        if (equals(setting->choices[i], word, length)) {
            *value_p = i;
            return true;
        }
    char *stop = NULL;
    bool named = setting->choices && setting->choices[0];
    double value = named ? NAN : gy_plain_number(word, &stop);
    if (length == 0 || stop != word + length || !(value >= setting->least && value <= setting->most) ||
        (setting->choices && value != rint(value)))
        return false;
    *value_p = value;
    return true;
}

gyre_status gyre_nn_strategy_parse(const gyre_nn_strategy *strategy, const char *text,
                                   double values[GYRE_NN_MOST_SETTINGS])
{
    GY_NN_REQUIRE(strategy, values);
    const struct gyre_nn_setting *settings = strategy->settings;
    double out[GYRE_NN_MOST_SETTINGS] = {0};
    size_t n = 0;
    for (; settings && settings[n].name && n < GYRE_NN_MOST_SETTINGS; n++)
        out[n] = settings[n].value;
    while (text && *text) {
        size_t length = strcspn(text, ","), name = strcspn(text, "=,"), i = 0;
        if (text[name] != '=')
            return refuse(strategy, text, length, "is no name=value; several are divided by commas");
        while (i < n && !equals(settings[i].name, text, name))
            i++;
        if (i == n)
            return refuse_name(strategy, text, name);
        if (!read_value(&settings[i], text + name + 1, length - name - 1, &out[i]))
            return refuse_value(strategy, &settings[i], text, length);
        text += length + (text[length] == ',');
    }
    memcpy(values, out, sizeof(out));
    return GYRE_SUCCESS;
}
