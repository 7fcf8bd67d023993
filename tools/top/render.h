/* Jobs as text. */
#ifndef GYRE_TOOLS_TOP_SHOW_H
#define GYRE_TOOLS_TOP_SHOW_H

#include "top/diagnose.h"

void top_show(const struct top_job *job);
/* "moving", "waiting", ... */
const char *top_word(enum top_is is);

#endif
