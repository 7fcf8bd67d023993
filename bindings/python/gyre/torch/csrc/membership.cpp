// Groups made of others: split, shrink, merge, and reconfigure, which gives a group other members.
#include <algorithm>
#include <random>
#include <set>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "backend.hpp"
#include "meeting.hpp"

namespace gyre_torch
{

#if GYRE_TORCH_AT_LEAST(2, 15)
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

c10::intrusive_ptr<c10d::Backend> Backend::merge(const c10::intrusive_ptr<c10d::Store> &store,
                                                 const c10::intrusive_ptr<c10d::Backend::Options> &options,
                                                 const int &rank, const int &size)
{
    return c10::make_intrusive<Backend>(store->clone(), rank, size, options_from(options, *options_));
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

c10d::ReconfigureHandle Backend::get_reconfigure_handle() const
{
    static std::mutex lock;
    std::lock_guard<std::mutex> held(lock);
    if (handle_.empty())
        handle_ = "gyre-" + std::to_string(std::random_device()()) + "-" + std::to_string(std::random_device()());
    return handle_;
}

// The handles in the order of the ranks: as given, or sorted.
static std::vector<std::string> handles_of(const c10d::ReconfigureOptions &options)
{
    if (auto list = std::get_if<std::vector<std::string>>(&options.handles))
        return *list;
    auto &set = std::get<std::unordered_set<std::string>>(options.handles);
    std::vector<std::string> handles(set.begin(), set.end());
    std::sort(handles.begin(), handles.end());
    return handles;
}

BackendWork Backend::reconfigure(const c10d::ReconfigureOptions &options)
{
    auto handles = handles_of(options);
    auto mine = std::find(handles.begin(), handles.end(), get_reconfigure_handle());
    TORCH_CHECK_VALUE(mine != handles.end(), "gyre: reconfigure: this rank's handle is not among the ", handles.size(),
                      " handles");
    auto timeout = options.timeout.value_or(options_->timeout);
    auto store = c10::make_intrusive<c10d::PrefixStore>("gyre/members/" + std::to_string(options.uuid), store_);
    world_->abort(); // of the old members some may be gone
    shutdown();
    rank_ = static_cast<int>(mine - handles.begin());
    size_ = static_cast<int>(handles.size());
    sequence_ = 0;
    enter(meet(store, rank_, size_, timeout));
    auto work = make(OpType::UNKNOWN, "reconfigure", timeout, {});
    world_->start(work, [](gyre_comm *) {});
    return work;
}
#endif

} // namespace gyre_torch
