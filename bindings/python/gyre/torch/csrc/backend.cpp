#include "backend.hpp"

#include <algorithm>
#include <set>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

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
    : c10d::Backend(rank, size), store_(store), options_(std::move(options)),
      world_(std::make_shared<World>(meet(store, rank, size, options_->timeout), rank, size))
{
    world_->set_timeout(options_->timeout);
    init();
    std::lock_guard<std::mutex> held(worlds_lock);
    worlds.insert(world_.get());
}

Backend::~Backend()
{
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

static c10::intrusive_ptr<Backend::Options> options_from(const c10::intrusive_ptr<c10d::Backend::Options> &given,
                                                         const Backend::Options &mine)
{
    auto options = c10::make_intrusive<Backend::Options>(mine);
    if (given) {
        options->timeout = given->timeout;
        options->group_name = given->group_name;
        options->group_desc = given->group_desc;
        options->global_ranks_in_group = given->global_ranks_in_group;
    }
    return options;
}

c10::intrusive_ptr<c10d::Backend> Backend::split(const c10::intrusive_ptr<c10d::Store> &store,
                                                 const std::vector<int> &ranks,
                                                 const c10::intrusive_ptr<c10d::Backend::Options> &options)
{
    auto mine = std::find(ranks.begin(), ranks.end(), rank_);
    if (mine == ranks.end())
        return nullptr;
    return c10::make_intrusive<Backend>(store->clone(), static_cast<int>(mine - ranks.begin()),
                                        static_cast<int>(ranks.size()), options_from(options, *options_));
}

c10::intrusive_ptr<c10d::Backend> Backend::shrink(const std::vector<int64_t> &excluded, int flags,
                                                  const c10::intrusive_ptr<c10d::Backend::Options> &options)
{
    std::set<int64_t> out(excluded.begin(), excluded.end());
    TORCH_CHECK_VALUE(!out.count(rank_), "gyre: shrink: rank ", rank_, " is excluded and calls");
    if (flags != 0)
        world_->abort();
    std::string name = "gyre/shrink/" + std::to_string(shrinks_++);
    int rank = 0, size = 0;
    for (int other = 0; other < size_; other++) {
        if (out.count(other)) {
            name += "/" + std::to_string(other);
            continue;
        }
        rank += other < rank_;
        size++;
    }
    auto store = c10::make_intrusive<c10d::PrefixStore>(name, store_);
    return c10::make_intrusive<Backend>(store, rank, size, options_from(options, *options_));
}
#endif

} // namespace gyre_torch
