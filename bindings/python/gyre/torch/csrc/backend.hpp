// The backend "gyre" of torch.distributed. Each group is a world of its own, whose ranks meet through torch's Store.
//
//   backend.cpp      life: meeting, options, timeouts, hooks, abort, shutdown
//   membership.cpp   split, shrink, merge, reconfigure
//   reductions.cpp   allreduce, reduce, reduce_scatter in their forms
//   copies.cpp       broadcast, all_gather, gather, scatter, all_to_all in their forms
//   transfers.cpp    send, recv, barrier
//
// Operations of a group are started in the order of the calls. A call returns when its operation is started; the Work
// ends it.
#pragma once

#include <memory>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "world.hpp"

namespace gyre_torch
{

using c10d::OpType;
using Tensors = std::vector<at::Tensor>;
using BackendWork = c10::intrusive_ptr<c10d::Work>;

class Backend : public c10d::Backend
{
  public:
    struct Options : c10d::Backend::Options {
        explicit Options(std::chrono::milliseconds timeout = kBackendDefaultTimeout)
            : c10d::Backend::Options("gyre", timeout)
        {
        }
#if GYRE_TORCH_AT_LEAST(2, 15)
        c10::intrusive_ptr<c10d::Backend::Options> clone() const override
        {
            return c10::make_intrusive<Options>(*this);
        }
#endif
    };

    Backend(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, c10::intrusive_ptr<Options> options);
    ~Backend() override;

    // Ends every group of this process, at its exit.
    static void close_all();

    const std::string getBackendName() const override
    {
        return "gyre";
    }
    uint64_t getSequenceNumberForGroup() override
    {
        return sequence_;
    }
    void setSequenceNumberForGroup() override {}
    void startCoalescing() override;
    BackendWork endCoalescing() override;
    // torch 2.6 has these three for some backends only, and they are not virtual there.
    bool supportsCoalescing() const
    {
        return true;
    }
    void abort();
    void shutdown();
#if GYRE_TORCH_AT_LEAST(2, 15)
    bool supportsSplitting() const override
    {
        return true;
    }
    bool supportsShrinking() const override
    {
        return true;
    }
    c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override
    {
        return options_;
    }
    void setTimeout(std::chrono::milliseconds timeout) override;
    bool supportsAbortHooks() const override
    {
        return true;
    }
    void registerAbortHook(int64_t id, c10d::AbortHook hook) override;
    void unregisterAbortHook(int64_t id) override;
    bool supportsCompletionHooks() const override
    {
        return true;
    }
    void registerCompletionHook(int64_t id, c10d::CompletionHook hook) override;
    void unregisterCompletionHook(int64_t id) override;
    bool supportsReconfigure() const override
    {
        return true;
    }
    c10d::ReconfigureHandle get_reconfigure_handle() const override;
    BackendWork reconfigure(const c10d::ReconfigureOptions &options) override;
    c10::intrusive_ptr<c10d::Backend> merge(const c10::intrusive_ptr<c10d::Store> &store,
                                            const c10::intrusive_ptr<c10d::Backend::Options> &options, const int &rank,
                                            const int &size) override;
    BackendWork gather_into_tensor(at::Tensor &output, at::Tensor &input, const c10d::GatherOptions &options) override;
    c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store> &store, const std::vector<int> &ranks,
                                            const c10::intrusive_ptr<c10d::Backend::Options> &options) override;
    c10::intrusive_ptr<c10d::Backend> shrink(const std::vector<int64_t> &excluded, int flags,
                                             const c10::intrusive_ptr<c10d::Backend::Options> &options) override;
#endif

    BackendWork allreduce(Tensors &tensors, const c10d::AllreduceOptions &options) override;
    BackendWork allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &options) override;
    BackendWork allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &options) override;
    BackendWork reduce(Tensors &tensors, const c10d::ReduceOptions &options) override;
    BackendWork reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                               const c10d::ReduceScatterOptions &options) override;
    BackendWork _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                     const c10d::ReduceScatterOptions &options) override;
    BackendWork reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                const c10d::ReduceScatterOptions &options) override;

    BackendWork broadcast(Tensors &tensors, const c10d::BroadcastOptions &options) override;
    BackendWork allgather(std::vector<Tensors> &outputs, Tensors &inputs,
                          const c10d::AllgatherOptions &options) override;
    BackendWork _allgather_base(at::Tensor &output, at::Tensor &input, const c10d::AllgatherOptions &options) override;
    BackendWork allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
                                    const c10d::AllgatherOptions &options) override;
    BackendWork allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                const c10d::AllgatherOptions &options) override;
    BackendWork gather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::GatherOptions &options) override;
    BackendWork scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ScatterOptions &options) override;
    BackendWork alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &options) override;
    BackendWork alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &output_splits,
                              std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &options) override;

    BackendWork send(Tensors &tensors, int peer, int tag) override;
    BackendWork recv(Tensors &tensors, int peer, int tag) override;
    BackendWork recvAnysource(Tensors &tensors, int tag) override;
    BackendWork barrier(const c10d::BarrierOptions &options) override;
    void monitoredBarrier(const c10d::BarrierOptions &options, bool wait_all_ranks) override;

  private:
    void enter(gyre_comm *comm);
    WorkPointer make(OpType type, const char *what, std::chrono::milliseconds timeout, Tensors outputs);
    BackendWork started(const WorkPointer &work);
    void all_reduce_into(gyre_comm *comm, const WorkPointer &work, const at::Tensor &tensor, const c10d::ReduceOp &op);
    at::Tensor reduce_scatter_into(gyre_comm *comm, const WorkPointer &work, const at::Tensor &output,
                                   const at::Tensor &input, const std::vector<size_t> *counts,
                                   const c10d::ReduceOp &op);
    void all_gather_into(gyre_comm *comm, const WorkPointer &work, const at::Tensor &output, const at::Tensor &input);
    void all_gather_list(gyre_comm *comm, const WorkPointer &work, const Tensors &outputs, const at::Tensor &input);
    BackendWork receive(Tensors &tensors, int peer, int tag, OpType type);
    void check_root(const char *what, int64_t root) const;

    const c10::intrusive_ptr<c10d::Store> store_;
    const c10::intrusive_ptr<Options> options_;
    const std::shared_ptr<Hooks> hooks_;
    std::shared_ptr<World> world_;
    mutable std::string handle_;
    uint64_t sequence_ = 0;
    int shrinks_ = 0;
    bool coalescing_ = false;
    std::vector<WorkPointer> coalesced_;
};

} // namespace gyre_torch
