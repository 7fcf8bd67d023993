/* Jobs as text. */
#ifndef GYRE_TOOLS_TOP_SHOW_H
#define GYRE_TOOLS_TOP_SHOW_H

#include "top/diagnose.h"

void top_show(const struct top_job *job);

#endif
