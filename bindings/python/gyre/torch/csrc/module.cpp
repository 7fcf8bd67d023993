// The Python module: the class of the backend and its options.
#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>

#include "backend.hpp"
#include "library.hpp"

namespace gyre_torch
{

namespace py = pybind11;

static c10::intrusive_ptr<c10d::Backend> create(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                                                std::chrono::milliseconds timeout)
{
    return c10::make_intrusive<Backend>(store, rank, size, c10::make_intrusive<Backend::Options>(timeout));
}

} // namespace gyre_torch

PYBIND11_MODULE(_backend, module)
{
    namespace py = pybind11;
    module.def("load", &gyre_torch::library_open, py::arg("path"));
    module.def("create", &gyre_torch::create, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
               py::call_guard<py::gil_scoped_release>());
    module.def("close_all", &gyre_torch::Backend::close_all, py::call_guard<py::gil_scoped_release>());
}
