// What a program has asked to be told: of failures, before the group is aborted, and of operations that have succeeded.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace gyre_torch
{

class Hooks
{
  public:
    using Abort = std::function<void()>;
    using Completion = std::function<void(uint64_t key)>;

    void add(int64_t id, Abort hook);
    void add(int64_t id, Completion hook);
    void remove_abort(int64_t id);
    void remove_completion(int64_t id);

    // An operation has failed, or this rank aborts. Calls the hooks; not from inside one of them.
    void failed();

    // An operation with this key has succeeded.
    void completed(uint64_t key);

  private:
    std::mutex mutex_;
    std::map<int64_t, Abort> aborts_;
    std::map<int64_t, Completion> completions_;
};

} // namespace gyre_torch
