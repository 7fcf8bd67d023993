// Which version of torch this is compiled against: c10d::Backend and c10d::Work differ among them.
#pragma once

#include <torch/version.h>

#define GYRE_TORCH_AT_LEAST(major, minor) \
    (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))
