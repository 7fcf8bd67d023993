#include "backend.hpp"

#include <set>

#include <torch/csrc/utils/pybind.h>

#include "coalesced.hpp"
#include "meeting.hpp"

namespace gyre_torch
{

using namespace std::chrono_literals;

// gyre's own limit for a rank that is late names that rank; wait() gives it time to.
static constexpr auto margin = 5s;

static std::mutex worlds_lock;
static std::set<World *> worlds; // that are open, under the lock

Backend::Backend(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, c10::intrusive_ptr<Options> options)
    : c10d::Backend(rank, size), store_(store), options_(std::move(options)), hooks_(std::make_shared<Hooks>())
{
    enter(meet(store, rank, size, options_->timeout));
    init();
}

void Backend::enter(gyre_comm *comm)
{
    world_ = std::make_shared<World>(comm, rank_, size_, hooks_);
    world_->set_timeout(options_->timeout);
    world_->try_ways();
    std::lock_guard<std::mutex> held(worlds_lock);
    worlds.insert(world_.get());
}

// The driver thread may need the interpreter's lock to end, for the callbacks of futures; so a thread that joins it
// gives the lock up.
Backend::~Backend()
{
    std::optional<pybind11::gil_scoped_release> unlocked;
    if (Py_IsInitialized() && PyGILState_Check())
        unlocked.emplace();
    shutdown();
}

void Backend::shutdown()
{
    {
        std::lock_guard<std::mutex> held(worlds_lock);
        worlds.erase(world_.get());
    }
    world_->close();
}

void Backend::close_all()
{
    std::set<World *> open;
    {
        std::lock_guard<std::mutex> held(worlds_lock);
        open.swap(worlds);
    }
    for (World *world : open)
        world->close();
}

void Backend::abort()
{
    hooks_->failed();
    world_->abort();
}

WorkPointer Backend::make(OpType type, const char *what, std::chrono::milliseconds timeout, Tensors outputs)
{
    auto limit = timeout == c10d::kUnsetTimeout || timeout == kNoTimeout ? options_->timeout + margin : timeout;
    return c10::make_intrusive<Work>(world_, rank_, type, what, ++sequence_, limit, std::move(outputs));
}

BackendWork Backend::started(const WorkPointer &work)
{
    if (coalescing_)
        coalesced_.push_back(work);
    return work;
}

void Backend::startCoalescing()
{
    coalescing_ = true;
    coalesced_.clear();
}

BackendWork Backend::endCoalescing()
{
    coalescing_ = false;
    return c10::make_intrusive<CoalescedWork>(rank_, std::move(coalesced_));
}

void Backend::check_root(const char *what, int64_t root) const
{
    TORCH_CHECK_VALUE(root >= 0 && root < size_, "gyre: ", what, ": there is no rank ", root, " in a group of ", size_);
}

#if GYRE_TORCH_AT_LEAST(2, 15)
void Backend::setTimeout(std::chrono::milliseconds timeout)
{
    options_->timeout = timeout;
    world_->set_timeout(timeout);
}

void Backend::registerAbortHook(int64_t id, c10d::AbortHook hook)
{
    hooks_->add(id, std::move(hook));
}

void Backend::unregisterAbortHook(int64_t id)
{
    hooks_->remove_abort(id);
}

void Backend::registerCompletionHook(int64_t id, c10d::CompletionHook hook)
{
    hooks_->add(id, [hook = std::move(hook)](uint64_t key) { hook({key, std::nullopt}); });
}

void Backend::unregisterCompletionHook(int64_t id)
{
    hooks_->remove_completion(id);
}
#endif

} // namespace gyre_torch
