#include "train/classes.h"

#include <stdio.h>
#include <stdlib.h>

/* A mistyped label makes a model of more classes than the data have. */
void classes_warn(const gyre_nn_dataset *data)
{
    size_t present = 0;
    bool *seen = calloc(data->classes, sizeof(*seen));
    for (size_t i = 0; seen && i < data->samples * data->steps; i++) {
        present += !seen[data->labels[i]];
        seen[data->labels[i]] = true;
    }
    if (seen && data->classes >= 2 * present && data->classes > present + 2)
        fprintf(stderr,
                "gyre-train: warning: the labels have %zu values, and the largest is %zu: the model gets %zu classes\n",
                present, data->classes - 1, data->classes);
    free(seen);
}

void classes_print(const gyre_nn_dataset *data)
{
    for (size_t c = 0; data->names && data->names[c]; c++)
        printf("%s%zu = %s", c ? ", " : "classes: ", c, data->names[c]);
    if (data->names)
        printf("\n");
}
