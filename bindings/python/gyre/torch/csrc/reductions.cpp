// allreduce, reduce and reduce_scatter in their forms.
#include "backend.hpp"
#include "blocks.hpp"
#include "library.hpp"
#include "types.hpp"

namespace gyre_torch
{

// Copies a result that was computed in another type, or in another place.
static void copy_back(const at::Tensor &to, const at::Tensor &from)
{
    at::NoGradGuard guard;
    to.detach().copy_(from);
}

void Backend::all_reduce_into(gyre_comm *comm, const WorkPointer &work, const at::Tensor &tensor,
                              const c10d::ReduceOp &op)
{
    auto reduction = reduction_of(tensor, op, work->what());
    auto elements = elements_reduced(reduction.tensor);
    gyre_request *request = nullptr;
    world_->keep(*work, reduction.tensor);
    world_->add(*work,
                library.gyre_all_reduce_start(comm, elements.data, elements.data, elements.count, elements.dtype,
                                              reduction.op, &request),
                &request);
    if (reduction.copied)
        world_->after(*work, [tensor, result = reduction.tensor] { copy_back(tensor, result); });
}

BackendWork Backend::allreduce(Tensors &tensors, const c10d::AllreduceOptions &options)
{
    TORCH_CHECK_VALUE(tensors.size() == 1, "gyre: all_reduce: one tensor is wanted, not ", tensors.size());
    tensor_check(tensors[0], "all_reduce");
    auto work = make(OpType::ALLREDUCE, "all_reduce", options.timeout, tensors);
    world_->start(work, [&](gyre_comm *comm) { all_reduce_into(comm, work, tensors[0], options.reduceOp); });
    return started(work);
}

BackendWork Backend::allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &options)
{
    std::vector<Reduction> reductions;
    for (auto &tensor : tensors) {
        tensor_check(tensor, "all_reduce_coalesced");
        reductions.push_back(reduction_of(tensor, options.reduceOp, "all_reduce_coalesced"));
    }
    auto work = make(OpType::ALLREDUCE_COALESCED, "all_reduce_coalesced", options.timeout, tensors);
    world_->start(work, [&](gyre_comm *comm) {
        for (auto &reduction : reductions) {
            auto elements = elements_reduced(reduction.tensor);
            gyre_request *request = nullptr;
            world_->keep(*work, reduction.tensor);
            world_->add(*work,
                        library.gyre_all_reduce_start(comm, elements.data, elements.data, elements.count,
                                                      elements.dtype, reduction.op, &request),
                        &request);
        }
        world_->after(*work, [tensors, reductions] {
            for (size_t i = 0; i < tensors.size(); i++)
                if (reductions[i].copied)
                    copy_back(tensors[i], reductions[i].tensor);
        });
    });
    return started(work);
}

BackendWork Backend::allreduce_sparse(Tensors &, const c10d::AllreduceOptions &)
{
    TORCH_CHECK(false, "gyre: all_reduce: sparse tensors are not supported; to_dense() converts");
}

BackendWork Backend::reduce(Tensors &tensors, const c10d::ReduceOptions &options)
{
    TORCH_CHECK_VALUE(tensors.size() == 1, "gyre: reduce: one tensor is wanted, not ", tensors.size());
    tensor_check(tensors[0], "reduce");
    check_root("reduce", options.rootRank);
    auto tensor = tensors[0];
    auto work = make(OpType::REDUCE, "reduce", options.timeout, tensors);
    world_->start(work, [&](gyre_comm *comm) {
        auto reduction = reduction_of(tensor, options.reduceOp, "reduce");
        auto elements = elements_reduced(reduction.tensor);
        gyre_request *request = nullptr;
        world_->keep(*work, reduction.tensor);
        world_->add(*work,
                    library.gyre_reduce_start(comm, elements.data, elements.data, elements.count, elements.dtype,
                                              reduction.op, static_cast<int>(options.rootRank), &request),
                    &request);
        if (reduction.copied && options.rootRank == rank_)
            world_->after(*work, [tensor, result = reduction.tensor] { copy_back(tensor, result); });
    });
    return started(work);
}

// Starts one and returns where the result will be, which is the output unless it is computed in another type.
at::Tensor Backend::reduce_scatter_into(gyre_comm *comm, const WorkPointer &work, const at::Tensor &output,
                                        const at::Tensor &input, const std::vector<size_t> *counts,
                                        const c10d::ReduceOp &op)
{
    auto reduction = reduction_of(input, op, work->what());
    auto result = output;
    if (reduction.tensor.scalar_type() != output.scalar_type())
        result = at::empty(output.sizes(), output.options().dtype(reduction.tensor.scalar_type()));
    auto from = elements_reduced(reduction.tensor), to = elements_reduced(result);
    gyre_request *request = nullptr;
    world_->keep(*work, reduction.tensor);
    world_->keep(*work, result);
    gyre_status status = counts ? library.gyre_reduce_scatterv_start(comm, from.data, to.data, counts->data(),
                                                                     from.dtype, reduction.op, &request)
                                : library.gyre_reduce_scatter_start(comm, from.data, to.data, to.count, from.dtype,
                                                                    reduction.op, &request);
    world_->add(*work, status, &request);
    return result;
}

static void check_blocks(const at::Tensor &whole, const at::Tensor &block, int size, const char *what)
{
    tensor_check(whole, what);
    tensor_check(block, what);
    TORCH_CHECK_TYPE(whole.scalar_type() == block.scalar_type(), "gyre: ", what, ": input and output have types ",
                     whole.scalar_type(), " and ", block.scalar_type());
    TORCH_CHECK_VALUE(whole.numel() == block.numel() * size, "gyre: ", what, ": ", whole.numel(), " elements are not ",
                      size, " times ", block.numel());
}

BackendWork Backend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                          const c10d::ReduceScatterOptions &options)
{
    Tensors outputs{output}, inputs{input};
    return reduce_scatter_tensor_coalesced(outputs, inputs, options);
}

BackendWork Backend::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                     const c10d::ReduceScatterOptions &options)
{
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "gyre: reduce_scatter_tensor: ", outputs.size(), " outputs, ",
                      inputs.size(), " inputs");
    for (size_t i = 0; i < outputs.size(); i++)
        check_blocks(inputs[i], outputs[i], size_, "reduce_scatter_tensor");
    auto work = make(OpType::_REDUCE_SCATTER_BASE, "reduce_scatter_tensor", options.timeout, outputs);
    Tensors results;
    world_->start(work, [&](gyre_comm *comm) {
        for (size_t i = 0; i < outputs.size(); i++)
            results.push_back(reduce_scatter_into(comm, work, outputs[i], inputs[i], nullptr, options.reduceOp));
        world_->after(*work, [outputs, results] {
            for (size_t i = 0; i < outputs.size(); i++)
                if (!results[i].is_same(outputs[i]))
                    copy_back(outputs[i], results[i]);
        });
    });
    return started(work);
}

BackendWork Backend::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                                    const c10d::ReduceScatterOptions &options)
{
    const char *what = "reduce_scatter";
    TORCH_CHECK_VALUE(outputs.size() == 1 && inputs.size() == 1 && inputs[0].size() == static_cast<size_t>(size_),
                      "gyre: ", what, ": one output and a list of ", size_, " inputs are wanted");
    auto output = outputs[0];
    tensor_check(output, what);
    std::vector<size_t> counts;
    Tensors flat;
    for (auto &input : inputs[0]) {
        tensor_check(input, what);
        counts.push_back(static_cast<size_t>(input.numel()) * (input.is_complex() ? 2 : 1));
        flat.push_back(input.flatten());
    }
    TORCH_CHECK_VALUE(inputs[0][static_cast<size_t>(rank_)].numel() == output.numel(), "gyre: ", what, ": input ",
                      rank_, " has ", inputs[0][static_cast<size_t>(rank_)].numel(), " elements, the output ",
                      output.numel());
    auto input = at::cat(flat);
    auto work = make(OpType::REDUCE_SCATTER, what, options.timeout, outputs);
    world_->start(work, [&](gyre_comm *comm) {
        auto result = reduce_scatter_into(comm, work, output, input, &counts, options.reduceOp);
        if (!result.is_same(output))
            world_->after(*work, [output, result] { copy_back(output, result); });
    });
    return started(work);
}

} // namespace gyre_torch
