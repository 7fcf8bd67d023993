// What gyre's element types and operations are for those of torch.
#pragma once

#include <optional>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <gyre/gyre.h>

namespace gyre_torch
{

// The elements of a tensor as gyre counts them.
struct Elements {
    void *data;
    size_t count;
    gyre_dtype dtype;
};

// The elements of a tensor that is only moved: in its own type, or, where gyre has none, as bytes.
Elements elements_moved(const at::Tensor &tensor);

// Throws unless the tensor is dense, contiguous and in the memory of the host.
void tensor_check(const at::Tensor &tensor, const char *what);

// A reduction as gyre computes it. `tensor` is the tensor itself, or where the types or the operation ask for it a copy
// in another type, whose result is to be copied back.
struct Reduction {
    at::Tensor tensor;
    gyre_op op;
    bool copied;
};

// Throws where torch's operation has no meaning for the type.
Reduction reduction_of(const at::Tensor &tensor, const c10d::ReduceOp &op, const char *what);

// The elements of a tensor that reduction_of has given.
Elements elements_reduced(const at::Tensor &tensor);

// The type in which reduction_of computes tensors of this one.
at::ScalarType reduced_type(at::ScalarType type);

} // namespace gyre_torch
