// The c10d::Work of an operation: the requests of gyre that it consists of, the tensors that it keeps alive, and what
// is left to do at its end.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <gyre/gyre.h>

#include "torch_version.hpp"

namespace gyre_torch
{

class World;

class Work : public c10d::Work
{
  public:
    // `what` is static; `timeout` is how long wait() without one of its own waits.
    Work(std::shared_ptr<World> world, int rank, c10d::OpType type, const char *what, uint64_t sequence,
         std::chrono::milliseconds timeout, std::vector<at::Tensor> outputs);

    bool isCompleted() override;
    bool isSuccess() const override;
    std::exception_ptr exception() const override;
    int sourceRank() const override;
    std::vector<at::Tensor> result() override;
    void synchronize() override;
    bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
    void abort() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    uint64_t getSequencenumber() const override;
#if GYRE_TORCH_AT_LEAST(2, 15)
    uint64_t getCompletionKey() const override;
    std::chrono::milliseconds getTimeout() const override;
#endif

    const char *what() const
    {
        return what_;
    }

  private:
    friend class World;
    friend class Messages;

    // Tests the requests. True: the operation has ended, and this call has found it. Under the world's lock.
    bool advance(const gyre_comm *comm);

    // Completes the future; called once, without the lock, after advance() was true.
    void conclude();

    void end_in_callback();
    void complete(c10::ivalue::Future &future);
    [[noreturn]] void throw_timeout(std::chrono::milliseconds timeout) const;

    const std::shared_ptr<World> world_;
    const char *const what_;
    const uint64_t sequence_;
    const std::chrono::milliseconds timeout_;
    const uint64_t key_; // of no other work
    const std::vector<at::Tensor> outputs_;

    // What follows is under the world's lock.
    std::vector<gyre_request *> requests_;
    std::vector<at::Tensor> kept_; // inputs and copies, which gyre reads and writes until the end
    std::vector<std::shared_ptr<void>> headers_;
    std::function<void()> after_; // copies results to where they belong; empty: nothing to copy
    int receives_ = 0;            // of `Messages`, under way
    int source_ = -1;
    bool ended_ = false, concluded_ = false;
    std::exception_ptr error_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
};

} // namespace gyre_torch
