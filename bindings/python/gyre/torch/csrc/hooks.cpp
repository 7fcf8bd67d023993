#include "hooks.hpp"

namespace gyre_torch
{

void Hooks::add(int64_t id, Abort hook)
{
    std::lock_guard<std::mutex> held(mutex_);
    aborts_[id] = std::move(hook);
}

void Hooks::add(int64_t id, Completion hook)
{
    std::lock_guard<std::mutex> held(mutex_);
    completions_[id] = std::move(hook);
}

void Hooks::remove_abort(int64_t id)
{
    std::lock_guard<std::mutex> held(mutex_);
    aborts_.erase(id);
}

void Hooks::remove_completion(int64_t id)
{
    std::lock_guard<std::mutex> held(mutex_);
    completions_.erase(id);
}

void Hooks::failed()
{
    static thread_local bool inside;
    std::map<int64_t, Abort> hooks;
    {
        std::lock_guard<std::mutex> held(mutex_);
        hooks = aborts_;
    }
    if (inside)
        return;
    inside = true;
    for (auto &[id, hook] : hooks)
        hook();
    inside = false;
}

void Hooks::completed(uint64_t key)
{
    std::map<int64_t, Completion> hooks;
    {
        std::lock_guard<std::mutex> held(mutex_);
        if (completions_.empty())
            return;
        hooks = completions_;
    }
    for (auto &[id, hook] : hooks)
        hook(key);
}

} // namespace gyre_torch
