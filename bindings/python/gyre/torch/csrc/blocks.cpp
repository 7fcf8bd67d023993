#include "blocks.hpp"

#include <algorithm>
#include <cstring>

#include "types.hpp"

namespace gyre_torch
{

static bool adjacent(const std::vector<at::Tensor> &tensors)
{
    for (size_t i = 1; i < tensors.size(); i++)
        if (tensors[i].data_ptr() != static_cast<char *>(tensors[i - 1].data_ptr()) + tensors[i - 1].nbytes())
            return false;
    return true;
}

Blocks::Blocks(const std::vector<at::Tensor> &tensors, const char *what) : tensors_(tensors)
{
    TORCH_CHECK(!tensors.empty(), "gyre: ", what, ": a list of tensors is empty");
    int64_t bytes = 0;
    for (auto &tensor : tensors) {
        tensor_check(tensor, what);
        TORCH_CHECK(tensor.scalar_type() == tensors[0].scalar_type(), "gyre: ", what,
                    ": tensors of one list have types ", tensors[0].scalar_type(), " and ", tensor.scalar_type());
        auto elements = elements_moved(tensor);
        dtype_ = elements.dtype;
        counts_.push_back(elements.count);
        bytes += static_cast<int64_t>(tensor.nbytes());
    }
    if (!adjacent(tensors))
        copy_ = at::empty({bytes}, at::kByte);
    data_ = copy_.defined() ? copy_.data_ptr() : tensors[0].data_ptr();
}

bool Blocks::equal() const
{
    return std::all_of(counts_.begin(), counts_.end(), [&](size_t count) { return count == counts_[0]; });
}

void Blocks::pack()
{
    auto place = static_cast<char *>(data_);
    for (auto &tensor : tensors_) {
        if (copy_.defined() && tensor.nbytes() > 0)
            std::memcpy(place, tensor.data_ptr(), tensor.nbytes());
        place += tensor.nbytes();
    }
}

void Blocks::unpack() const
{
    auto place = static_cast<const char *>(data_);
    for (auto &tensor : tensors_) {
        if (copy_.defined() && tensor.nbytes() > 0)
            std::memcpy(tensor.data_ptr(), place, tensor.nbytes());
        place += tensor.nbytes();
    }
}

} // namespace gyre_torch
