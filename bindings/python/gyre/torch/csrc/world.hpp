// A communicator of gyre with the operations that are under way on it. gyre lets one thread at a time into a
// communicator, torch any number into a group: all calls of gyre are made under the world's lock, which no thread holds
// while it waits.
//
// Operations are moved by the threads that call: each start and each test moves all of them. A future has to complete
// also if no thread calls. So the first future that is asked for before its operation has ended starts a thread. It
// tests while operations with futures are under way and no other thread waits.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <gyre/gyre.h>

#include "hooks.hpp"
#include "messages.hpp"
#include "work.hpp"

namespace gyre_torch
{

using WorkPointer = c10::intrusive_ptr<Work>;

class World : public std::enable_shared_from_this<World>
{
  public:
    World(gyre_comm *comm, int rank, int size, std::shared_ptr<Hooks> hooks);
    ~World();
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    std::unique_lock<std::mutex> lock();

    // Starts an operation: `begin(comm)` starts requests and appends them to the work's. Throws where one cannot be
    // started.
    template <class Begin> void start(const WorkPointer &work, Begin &&begin)
    {
        std::unique_lock<std::mutex> held = lock();
        check_open(work->what());
        try {
            begin(comm_);
        } catch (...) {
            if (!work->requests_.empty()) // those that were started before go on
                under_way_.push_back(work);
            throw;
        }
        under_way_.push_back(work);
    }

    // Adds *request, which the call of this status has started, to a work that is being started.
    void add(Work &work, gyre_status status, gyre_request **request);
    void keep(Work &work, const at::Tensor &tensor) { work.kept_.push_back(tensor); }
    void after(Work &work, std::function<void()> func) { work.after_ = std::move(func); }

    // Moves operations; true when `work` has ended. Without a work all of them are tested.
    bool turn(Work *work);

    // Waits for the end of `work`; false where it has not ended within the limit.
    bool wait(Work *work, std::chrono::milliseconds limit);

    // Says that the end of an operation completes a future. Under the lock.
    void future_expected();

    // Lets gyre find out how ranks of one host exchange quickest, which it learns from blocking calls only. Collective.
    void try_ways();

    // For how long a rank may be late in the calls to come.
    void set_timeout(std::chrono::milliseconds timeout);

    // Ends all operations with an error, here and on the other ranks. Does not wait.
    void abort();

    // Ends the world: leaves it in order, and joins the thread. What is under way ends with an error.
    void close();

    Messages &messages() { return messages_; }
    Hooks &hooks() { return *hooks_; }
    int size() const { return size_; }
    int rank() const { return rank_; }

  private:
    void check_open(const char *what) const;
    void collect(Work &work, std::vector<WorkPointer> &ended);
    void collect_all(std::vector<WorkPointer> &ended);
    void drive();
    void leave_messages();

    std::mutex mutex_;
    std::atomic<int> wanted_{0};  // threads that wait for the lock
    std::atomic<int> waiting_{0}; // threads inside wait()

    // Under the lock.
    gyre_comm *comm_;
    std::vector<WorkPointer> under_way_;
    int futures_ = 0; // of operations under way
    bool stopped_ = false;
    std::thread driver_;
    std::condition_variable driver_wanted_;

    const int rank_, size_;
    bool spins_ = false, spare_cores_ = false;
    Messages messages_;
    const std::shared_ptr<Hooks> hooks_;
};

} // namespace gyre_torch
