// The c10d::Work of the operations between startCoalescing and endCoalescing.
#pragma once

#include <vector>

#include "work.hpp"

namespace gyre_torch
{

class CoalescedWork : public c10d::Work
{
  public:
    CoalescedWork(int rank, std::vector<c10::intrusive_ptr<gyre_torch::Work>> parts);

    bool isCompleted() override;
    bool isSuccess() const override;
    std::exception_ptr exception() const override;
    std::vector<at::Tensor> result() override;
    void synchronize() override;
    bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
    void abort() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

  private:
    const std::vector<c10::intrusive_ptr<gyre_torch::Work>> parts_;
};

} // namespace gyre_torch
