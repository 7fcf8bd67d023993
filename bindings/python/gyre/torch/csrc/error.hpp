// Errors of gyre as torch.distributed.DistBackendError, with gyre's error message.
#pragma once

#include <exception>
#include <string>

#include <gyre/gyre.h>

namespace gyre_torch
{

// The exception for a status of a call on `comm`, which may be NULL. `what` is the call, such as "all_reduce".
std::exception_ptr error_of(const gyre_comm *comm, gyre_status status, const std::string &what);

// The exception with this error message.
std::exception_ptr error_with(const std::string &sentence);

// Throws error_of unless the status is GYRE_SUCCESS.
void error_check(const gyre_comm *comm, gyre_status status, const std::string &what);

} // namespace gyre_torch
