#include "coalesced.hpp"

#include <algorithm>

namespace gyre_torch
{

CoalescedWork::CoalescedWork(int rank, std::vector<c10::intrusive_ptr<gyre_torch::Work>> parts)
    : c10d::Work(rank, c10d::OpType::COALESCED), parts_(std::move(parts))
{
}

bool CoalescedWork::isCompleted()
{
    return std::all_of(parts_.begin(), parts_.end(), [](auto &part) { return part->isCompleted(); });
}

bool CoalescedWork::isSuccess() const
{
    return std::all_of(parts_.begin(), parts_.end(), [](auto &part) { return part->isSuccess(); });
}

std::exception_ptr CoalescedWork::exception() const
{
    for (auto &part : parts_)
        if (auto error = part->exception())
            return error;
    return nullptr;
}

std::vector<at::Tensor> CoalescedWork::result()
{
    std::vector<at::Tensor> all;
    for (auto &part : parts_)
        for (auto &tensor : part->result())
            all.push_back(tensor);
    return all;
}

void CoalescedWork::synchronize()
{
    wait();
}

bool CoalescedWork::wait(std::chrono::milliseconds timeout)
{
    for (auto &part : parts_)
        part->wait(timeout);
    return true;
}

void CoalescedWork::abort()
{
    if (!parts_.empty())
        parts_[0]->abort();
}

c10::intrusive_ptr<c10::ivalue::Future> CoalescedWork::getFuture()
{
    auto futures = c10::List<c10::intrusive_ptr<c10::ivalue::Future>>(
        c10::FutureType::create(c10::ListType::create(c10::TensorType::get())));
    for (auto &part : parts_)
        futures.push_back(part->getFuture());
    auto all = c10::collectAll(futures);
    auto outputs = result();
    return all->then(
        [outputs](c10::ivalue::Future &done) -> at::IValue {
            for (const at::IValue &future : done.value().toListRef())
                future.toFuture()->value(); // throws where one has failed
            return outputs;
        },
        c10::ListType::create(c10::TensorType::get()));
}

} // namespace gyre_torch
