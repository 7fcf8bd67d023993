// broadcast, all_gather, gather, scatter and all_to_all in their forms.
#include <numeric>

#include "backend.hpp"
#include "blocks.hpp"
#include "library.hpp"
#include "types.hpp"

namespace gyre_torch
{

BackendWork Backend::broadcast(Tensors &tensors, const c10d::BroadcastOptions &options)
{
    TORCH_CHECK_VALUE(tensors.size() == 1, "gyre: broadcast: one tensor is wanted, not ", tensors.size());
    tensor_check(tensors[0], "broadcast");
    check_root("broadcast", options.rootRank);
    auto work = make(OpType::BROADCAST, "broadcast", options.timeout, tensors);
    world_->start(work, [&](gyre_comm *comm) {
        auto elements = elements_moved(tensors[0]);
        gyre_request *request = nullptr;
        world_->add(*work,
                    library.gyre_broadcast_start(comm, elements.data, elements.data, elements.count, elements.dtype,
                                                 static_cast<int>(options.rootRank), &request),
                    &request);
    });
    return started(work);
}

static void check_type(const at::Tensor &input, const at::Tensor &output, const char *what)
{
    TORCH_CHECK_TYPE(input.scalar_type() == output.scalar_type(), "gyre: ", what, ": input and output have types ",
                     input.scalar_type(), " and ", output.scalar_type());
}

void Backend::all_gather_into(gyre_comm *comm, const WorkPointer &work, const at::Tensor &output,
                              const at::Tensor &input)
{
    auto elements = elements_moved(input);
    gyre_request *request = nullptr;
    world_->keep(*work, input);
    world_->add(
        *work,
        library.gyre_all_gather_start(comm, elements.data, output.data_ptr(), elements.count, elements.dtype, &request),
        &request);
}

BackendWork Backend::_allgather_base(at::Tensor &output, at::Tensor &input, const c10d::AllgatherOptions &options)
{
    Tensors outputs{output}, inputs{input};
    return allgather_into_tensor_coalesced(outputs, inputs, options);
}

BackendWork Backend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                     const c10d::AllgatherOptions &options)
{
    const char *what = "all_gather_into_tensor";
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "gyre: ", what, ": ", outputs.size(), " outputs, ",
                      inputs.size(), " inputs");
    for (size_t i = 0; i < outputs.size(); i++) {
        tensor_check(inputs[i], what);
        tensor_check(outputs[i], what);
        check_type(inputs[i], outputs[i], what);
        TORCH_CHECK_VALUE(outputs[i].numel() == inputs[i].numel() * size_, "gyre: ", what, ": ", outputs[i].numel(),
                          " elements are not ", size_, " times ", inputs[i].numel());
    }
    auto work = make(OpType::_ALLGATHER_BASE, what, options.timeout, outputs);
    world_->start(work, [&](gyre_comm *comm) {
        for (size_t i = 0; i < outputs.size(); i++)
            all_gather_into(comm, work, outputs[i], inputs[i]);
    });
    return started(work);
}

// A list of outputs for one input.
struct Gathered {
    Blocks blocks;
    at::Tensor input;
};

static Gathered gathered_of(const Tensors &outputs, const at::Tensor &input, int rank, int size, const char *what)
{
    tensor_check(input, what);
    TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(size), "gyre: ", what, ": ", outputs.size(),
                      " outputs for ", size, " ranks");
    Blocks blocks(outputs, what);
    auto &mine = outputs[static_cast<size_t>(rank)];
    check_type(input, mine, what);
    TORCH_CHECK_VALUE(mine.numel() == input.numel(), "gyre: ", what, ": output ", rank, " has ", mine.numel(),
                      " elements, the input ", input.numel());
    return {std::move(blocks), input};
}

BackendWork Backend::allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
                                         const c10d::AllgatherOptions &options)
{
    const char *what = "all_gather";
    TORCH_CHECK_VALUE(!inputs.empty(), "gyre: ", what, ": a list of tensors is empty");
    std::vector<Gathered> all;
    Tensors results;
    for (size_t i = 0; i < inputs.size(); i++) {
        // As Gloo has it, the lists of the coalesced form are by rank, those of all_gather by input; with one input
        // they are the same.
        Tensors list = outputs.size() == inputs.size() ? outputs[i] : Tensors();
        all.push_back(gathered_of(list, inputs[i], rank_, size_, what));
        results.insert(results.end(), list.begin(), list.end());
    }
    auto work = make(OpType::ALLGATHER, what, options.timeout, results);
    world_->start(work, [&](gyre_comm *comm) {
        for (auto &one : all) {
            auto from = elements_moved(one.input);
            auto &blocks = one.blocks;
            gyre_request *request = nullptr;
            world_->keep(*work, one.input);
            gyre_status status = blocks.equal() ? library.gyre_all_gather_start(comm, from.data, blocks.data(),
                                                                                from.count, from.dtype, &request)
                                                : library.gyre_all_gatherv_start(comm, from.data, blocks.data(),
                                                                                 blocks.counts().data(), nullptr,
                                                                                 from.dtype, &request);
            world_->add(*work, status, &request);
        }
        world_->after(*work, [all] {
            for (auto &one : all)
                one.blocks.unpack();
        });
    });
    return started(work);
}

BackendWork Backend::allgather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &options)
{
    TORCH_CHECK_VALUE(inputs.size() == 1 && outputs.size() == 1,
                      "gyre: all_gather: one input and one list of outputs are wanted");
    return allgather_coalesced(outputs, inputs, options);
}

static void check_equal(const Blocks &blocks, size_t count, const char *what)
{
    TORCH_CHECK_VALUE(blocks.equal() && blocks.counts()[0] == count, "gyre: ", what,
                      ": tensors of all ranks have to be of one size");
}

BackendWork Backend::gather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::GatherOptions &options)
{
    const char *what = "gather";
    check_root(what, options.rootRank);
    TORCH_CHECK_VALUE(inputs.size() == 1, "gyre: ", what, ": one input is wanted, not ", inputs.size());
    tensor_check(inputs[0], what);
    auto from = elements_moved(inputs[0]);
    std::optional<Blocks> blocks;
    if (options.rootRank == rank_) {
        TORCH_CHECK_VALUE(outputs.size() == 1, "gyre: ", what, ": one list of outputs is wanted");
        blocks = gathered_of(outputs[0], inputs[0], rank_, size_, what).blocks;
        check_equal(*blocks, from.count, what);
    }
    auto work = make(OpType::GATHER, what, options.timeout, outputs.empty() ? Tensors() : outputs[0]);
    world_->start(work, [&](gyre_comm *comm) {
        gyre_request *request = nullptr;
        world_->keep(*work, inputs[0]);
        world_->add(*work,
                    library.gyre_gather_start(comm, from.data, blocks ? blocks->data() : nullptr, from.count,
                                              from.dtype, static_cast<int>(options.rootRank), &request),
                    &request);
        if (blocks)
            world_->after(*work, [blocks = *blocks] { blocks.unpack(); });
    });
    return started(work);
}

#if GYRE_TORCH_AT_LEAST(2, 15)
BackendWork Backend::gather_into_tensor(at::Tensor &output, at::Tensor &input, const c10d::GatherOptions &options)
{
    const char *what = "gather_single";
    std::vector<Tensors> outputs;
    Tensors inputs{input};
    if (options.rootRank == rank_) {
        tensor_check(output, what);
        TORCH_CHECK_VALUE(output.numel() == input.numel() * size_, "gyre: ", what, ": ", output.numel(),
                          " elements are not ", size_, " times ", input.numel());
        outputs.push_back(output.flatten().tensor_split(size_));
    }
    return gather(outputs, inputs, options);
}
#endif

BackendWork Backend::scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ScatterOptions &options)
{
    const char *what = "scatter";
    check_root(what, options.rootRank);
    TORCH_CHECK_VALUE(outputs.size() == 1, "gyre: ", what, ": one output is wanted, not ", outputs.size());
    tensor_check(outputs[0], what);
    auto to = elements_moved(outputs[0]);
    std::optional<Blocks> blocks;
    if (options.rootRank == rank_) {
        TORCH_CHECK_VALUE(inputs.size() == 1, "gyre: ", what, ": one list of inputs is wanted");
        blocks = gathered_of(inputs[0], outputs[0], rank_, size_, what).blocks;
        check_equal(*blocks, to.count, what);
        blocks->pack();
    }
    auto work = make(OpType::SCATTER, what, options.timeout, outputs);
    world_->start(work, [&](gyre_comm *comm) {
        gyre_request *request = nullptr;
        if (blocks)
            for (auto &input : inputs[0])
                world_->keep(*work, input);
        world_->add(*work,
                    library.gyre_scatter_start(comm, blocks ? blocks->data() : nullptr, to.data, to.count, to.dtype,
                                               static_cast<int>(options.rootRank), &request),
                    &request);
        if (blocks && blocks->copied())
            world_->keep(*work, blocks->copy());
    });
    return started(work);
}

BackendWork Backend::alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &options)
{
    const char *what = "all_to_all";
    TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(size_) && inputs.size() == static_cast<size_t>(size_),
                      "gyre: ", what, ": lists of ", size_, " tensors are wanted");
    Blocks from(inputs, what), to(outputs, what);
    check_type(inputs[0], outputs[0], what);
    from.pack();
    auto work = make(OpType::ALLTOALL, what, options.timeout, outputs);
    world_->start(work, [&](gyre_comm *comm) {
        gyre_request *request = nullptr;
        for (auto &input : inputs)
            world_->keep(*work, input);
        if (from.copied())
            world_->keep(*work, from.copy());
        world_->add(*work,
                    library.gyre_all_to_allv_start(comm, from.data(), from.counts().data(), nullptr, to.data(),
                                                   to.counts().data(), nullptr, from.dtype(), &request),
                    &request);
        world_->after(*work, [to] { to.unpack(); });
    });
    return started(work);
}

// The elements of each block, from the rows of each block; without a list the rows are divided equally.
static std::vector<size_t> counts_of(const at::Tensor &tensor, const std::vector<int64_t> &splits, int size)
{
    const char *what = "all_to_all_single";
    auto rows = tensor.dim() > 0 ? tensor.size(0) : 1;
    if (splits.empty()) {
        TORCH_CHECK_VALUE(rows % size == 0, "gyre: ", what, ": ", rows, " rows cannot be divided among ", size,
                          " ranks");
        return std::vector<size_t>(static_cast<size_t>(size), elements_moved(tensor).count / static_cast<size_t>(size));
    }
    TORCH_CHECK_VALUE(splits.size() == static_cast<size_t>(size) &&
                          std::accumulate(splits.begin(), splits.end(), int64_t{0}) == rows,
                      "gyre: ", what, ": the split sizes have to be ", size, " numbers whose sum is ", rows);
    auto row = rows > 0 ? elements_moved(tensor).count / static_cast<size_t>(rows) : 0;
    std::vector<size_t> counts;
    for (int64_t split : splits)
        counts.push_back(static_cast<size_t>(split) * row);
    return counts;
}

BackendWork Backend::alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &output_splits,
                                   std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &options)
{
    const char *what = "all_to_all_single";
    tensor_check(input, what);
    tensor_check(output, what);
    check_type(input, output, what);
    auto in = counts_of(input, input_splits, size_), out = counts_of(output, output_splits, size_);
    bool equal = input_splits.empty() && output_splits.empty();
    TORCH_CHECK_VALUE(!equal || in[0] == out[0], "gyre: ", what,
                      ": input and output differ in size, and there are no split sizes");
    auto work = make(OpType::ALLTOALL_BASE, what, options.timeout, {output});
    world_->start(work, [&](gyre_comm *comm) {
        auto elements = elements_moved(input);
        gyre_request *request = nullptr;
        world_->keep(*work, input);
        gyre_status status = equal ? library.gyre_all_to_all_start(comm, elements.data, output.data_ptr(), in[0],
                                                                   elements.dtype, &request)
                                   : library.gyre_all_to_allv_start(comm, elements.data, in.data(), nullptr,
                                                                    output.data_ptr(), out.data(), nullptr,
                                                                    elements.dtype, &request);
        world_->add(*work, status, &request);
    });
    return started(work);
}

} // namespace gyre_torch
