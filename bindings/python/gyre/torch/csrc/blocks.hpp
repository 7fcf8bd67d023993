// A list of tensors as the blocks of one buffer, in the order of the list. Tensors that lie one after the other in
// memory are the buffer; others have a copy.
#pragma once

#include <vector>

#include <ATen/ATen.h>

#include <gyre/gyre.h>

namespace gyre_torch
{

class Blocks
{
  public:
    // Checks the tensors; throws where they are not of one type.
    Blocks(const std::vector<at::Tensor> &tensors, const char *what);

    void *data() const { return data_; }
    gyre_dtype dtype() const { return dtype_; }
    const std::vector<size_t> &counts() const { return counts_; } // elements of `dtype` of each block
    bool equal() const;                                           // all blocks are of one size
    bool copied() const { return copy_.defined(); }
    const at::Tensor &copy() const { return copy_; } // bytes; undefined: the tensors are the buffer

    void pack();         // from the tensors to the copy
    void unpack() const; // from the copy to the tensors

  private:
    std::vector<at::Tensor> tensors_;
    std::vector<size_t> counts_;
    gyre_dtype dtype_ = GYRE_UINT8;
    void *data_ = nullptr;
    at::Tensor copy_;
};

} // namespace gyre_torch
