#include "work.hpp"

#include <atomic>
#include <optional>
#include <sstream>

#include <torch/csrc/utils/pybind.h>

#include "error.hpp"
#include "library.hpp"
#include "pause.hpp"
#include "world.hpp"

namespace gyre_torch
{

static std::atomic<uint64_t> keys;

Work::Work(std::shared_ptr<World> world, int rank, c10d::OpType type, const char *what, uint64_t sequence,
           std::chrono::milliseconds timeout, std::vector<at::Tensor> outputs)
    : c10d::Work(rank, type), world_(std::move(world)), what_(what), sequence_(sequence), timeout_(timeout),
      key_(++keys), outputs_(std::move(outputs))
{
}

bool Work::advance(const gyre_comm *comm)
{
    if (ended_)
        return false;
    bool running = receives_ > 0;
    for (auto &request : requests_) {
        if (!request)
            continue;
        gyre_status status = library.gyre_test(&request);
        if (status == GYRE_IN_PROGRESS)
            running = true;
        else if (status != GYRE_SUCCESS && !error_)
            error_ = error_of(comm, status, what_);
    }
    if (running)
        return false;
    if (after_ && !error_)
        after_();
    after_ = nullptr;
    kept_.clear();
    return ended_ = true;
}

// How many conclude() of this thread are under way: greater than 0 in callbacks of futures.
static thread_local int concluding;

void Work::complete(c10::ivalue::Future &future)
{
    if (error_)
        future.setError(error_);
    else
        future.markCompleted(at::IValue(outputs_));
}

void Work::conclude()
{
    finish(error_);
    if (error_)
        world_->hooks().failed();
    else
        world_->hooks().completed(key_);
    c10::intrusive_ptr<c10::ivalue::Future> future;
    {
        auto lock = world_->lock();
        concluded_ = true;
        future = future_;
    }
    if (!future)
        return;
    struct Count {
        Count() { concluding++; }
        ~Count() { concluding--; }
    } count;
    complete(*future);
}

// A callback that waits for the future of an operation that it has started holds up the thread which would complete it.
void Work::end_in_callback()
{
    if (concluding == 0)
        return;
    std::optional<pybind11::gil_scoped_release> unlocked;
    if (Py_IsInitialized() && PyGILState_Check())
        unlocked.emplace();
    world_->wait(this, timeout_);
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture()
{
    bool complete_now = false;
    end_in_callback();
    {
        auto lock = world_->lock();
        if (!future_) {
            future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
            complete_now = concluded_;
            if (!ended_)
                world_->future_expected();
        }
    }
    if (complete_now)
        complete(*future_);
    return future_;
}

bool Work::isCompleted()
{
    return world_->turn(this);
}

bool Work::isSuccess() const
{
    auto lock = world_->lock();
    return ended_ && !error_;
}

std::exception_ptr Work::exception() const
{
    auto lock = world_->lock();
    return ended_ ? error_ : nullptr;
}

int Work::sourceRank() const
{
    auto lock = world_->lock();
    return source_;
}

std::vector<at::Tensor> Work::result()
{
    return outputs_;
}

void Work::synchronize()
{
    wait();
}

void Work::abort()
{
    world_->abort();
}

uint64_t Work::getSequencenumber() const
{
    return sequence_;
}

#if GYRE_TORCH_AT_LEAST(2, 15)
uint64_t Work::getCompletionKey() const
{
    return key_;
}

std::chrono::milliseconds Work::getTimeout() const
{
    return timeout_;
}
#endif

void Work::throw_timeout(std::chrono::milliseconds timeout) const
{
    std::ostringstream text;
    text << "gyre: " << what_ << " #" << sequence_ << " of rank " << rank_ << " did not end within "
         << timeout.count() / 1000.0 << " s; it is still under way";
    std::rethrow_exception(error_with(text.str()));
}

bool Work::wait(std::chrono::milliseconds timeout)
{
    auto limit = timeout > kNoTimeout ? timeout : timeout_;
    if (!world_->wait(this, limit))
        throw_timeout(limit);
    if (error_)
        std::rethrow_exception(error_);
    return true;
}

} // namespace gyre_torch
