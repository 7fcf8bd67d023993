#include "error.hpp"

#include <c10/util/Exception.h>

#include "library.hpp"

namespace gyre_torch
{

std::exception_ptr error_with(const std::string &sentence)
{
    try {
        C10_THROW_ERROR(DistBackendError, sentence);
    } catch (...) {
        return std::current_exception();
    }
}

std::exception_ptr error_of(const gyre_comm *comm, gyre_status status, const std::string &what)
{
    std::string sentence = library.gyre_last_error(comm);
    if (sentence.empty())
        sentence = library.gyre_status_text(status);
    return error_with("gyre: " + what + ": " + sentence);
}

void error_check(const gyre_comm *comm, gyre_status status, const std::string &what)
{
    if (status != GYRE_SUCCESS)
        std::rethrow_exception(error_of(comm, status, what));
}

} // namespace gyre_torch
