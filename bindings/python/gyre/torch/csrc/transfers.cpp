// send, recv and barrier.
#include "backend.hpp"
#include "library.hpp"
#include "types.hpp"

namespace gyre_torch
{

BackendWork Backend::send(Tensors &tensors, int peer, int tag)
{
    TORCH_CHECK_VALUE(tensors.size() == 1, "gyre: send: one tensor is wanted, not ", tensors.size());
    tensor_check(tensors[0], "send");
    check_root("send", peer);
    auto work = make(OpType::SEND, "send", c10d::kUnsetTimeout, {});
    world_->start(work, [&](gyre_comm *comm) { world_->messages().send(comm, *work, tensors[0], peer, tag); });
    return started(work);
}

BackendWork Backend::receive(Tensors &tensors, int peer, int tag, OpType type)
{
    TORCH_CHECK_VALUE(tensors.size() == 1, "gyre: recv: one tensor is wanted, not ", tensors.size());
    tensor_check(tensors[0], "recv");
    auto work = make(type, "recv", c10d::kUnsetTimeout, tensors);
    world_->start(work, [&](gyre_comm *) { world_->messages().receive(work, tensors[0], peer, tag); });
    return started(work);
}

BackendWork Backend::recv(Tensors &tensors, int peer, int tag)
{
    check_root("recv", peer);
    return receive(tensors, peer, tag, OpType::RECV);
}

BackendWork Backend::recvAnysource(Tensors &tensors, int tag)
{
    return receive(tensors, Messages::any_source, tag, OpType::RECVANYSOURCE);
}

BackendWork Backend::barrier(const c10d::BarrierOptions &options)
{
    auto work = make(OpType::BARRIER, "barrier", options.timeout, {});
    world_->start(work, [&](gyre_comm *comm) {
        gyre_request *request = nullptr;
        world_->add(*work, library.gyre_barrier_start(comm, &request), &request);
    });
    return started(work);
}

// A rank that is late is named by gyre, whose own limit is that of the barrier meanwhile; the group has failed then.
void Backend::monitoredBarrier(const c10d::BarrierOptions &options, bool)
{
    auto timeout = options.timeout == c10d::kUnsetTimeout ? options_->timeout : options.timeout;
    world_->set_timeout(timeout);
    auto longer = options;
    longer.timeout = timeout + std::chrono::seconds(5);
    barrier(longer)->wait();
    world_->set_timeout(options_->timeout);
}

} // namespace gyre_torch
