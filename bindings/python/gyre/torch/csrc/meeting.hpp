// The meeting of a group's ranks through torch's Store.
#pragma once

#include <chrono>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <gyre/gyre.h>

namespace gyre_torch
{

// Makes the world of `size` ranks, of which this one is `rank`. Collective over them; throws when not all have come
// before the timeout.
gyre_comm *meet(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, std::chrono::milliseconds timeout);

} // namespace gyre_torch
