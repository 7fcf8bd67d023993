// The functions of libgyre. The extension is not linked with libgyre: the Python package has loaded it already, and its
// path is not known when the extension is compiled.
#pragma once

#include <string>

#include <gyre/gyre.h>

namespace gyre_torch
{

#define GYRE_TORCH_FUNCTIONS(X)   \
    X(gyre_all_gather_start)      \
    X(gyre_all_gatherv_start)     \
    X(gyre_all_reduce)            \
    X(gyre_all_reduce_start)      \
    X(gyre_all_to_all_start)      \
    X(gyre_all_to_allv_start)     \
    X(gyre_barrier_start)         \
    X(gyre_broadcast_start)       \
    X(gyre_comm_abort)            \
    X(gyre_comm_create)           \
    X(gyre_comm_destroy)          \
    X(gyre_comm_set)              \
    X(gyre_comm_topology)         \
    X(gyre_gather_start)          \
    X(gyre_last_error)            \
    X(gyre_progress)              \
    X(gyre_recv_start)            \
    X(gyre_reduce_scatter_start)  \
    X(gyre_reduce_scatterv_start) \
    X(gyre_reduce_start)          \
    X(gyre_scatter_start)         \
    X(gyre_send_start)            \
    X(gyre_status_text)           \
    X(gyre_test)                  \
    X(gyre_version)

struct Library {
#define GYRE_TORCH_FIELD(name) decltype(&::name) name;
    GYRE_TORCH_FUNCTIONS(GYRE_TORCH_FIELD)
#undef GYRE_TORCH_FIELD
};

extern Library library;

// Fills `library` from the file; throws where a function is missing.
void library_open(const std::string &path);

} // namespace gyre_torch
