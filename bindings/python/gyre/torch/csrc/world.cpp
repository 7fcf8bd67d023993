#include "world.hpp"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>

#include <c10/util/Exception.h>

#include "error.hpp"
#include "library.hpp"
#include "pause.hpp"

namespace gyre_torch
{

using namespace std::chrono_literals;

static constexpr auto driver_slice = 100us; // for how long the thread tests
static constexpr auto leave_limit = 5s;
static constexpr auto driver_pause = 20us; // and pauses, where the cores are needed for what the ranks compute

World::World(gyre_comm *comm, int rank, int size, std::shared_ptr<Hooks> hooks)
    : comm_(comm), rank_(rank), size_(size), messages_(*this, size), hooks_(std::move(hooks))
{
    gyre_rank_place place{};
    place.size = sizeof(place);
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
        library.gyre_comm_topology(comm, rank, &place) != GYRE_SUCCESS)
        return;
    // A rank that is pinned to cores of its own has those; one that is not shares all of them with the ranks of its
    // host.
    int here = CPU_COUNT(&allowed), all = static_cast<int>(std::thread::hardware_concurrency());
    int mine = here < all ? here : std::max(all / place.locals, all >= place.locals ? 1 : 0);
    spins_ = mine >= 1;
    spare_cores_ = mine >= 2;
}

World::~World()
{
    close();
}

std::unique_lock<std::mutex> World::lock()
{
    std::unique_lock<std::mutex> held(mutex_, std::try_to_lock);
    if (!held) {
        wanted_++;
        held.lock();
        wanted_--;
    }
    return held;
}

void World::check_open(const char *what) const
{
    TORCH_CHECK_WITH(DistBackendError, comm_, "gyre: ", what, ": the group was shut down");
}

void World::add(Work &work, gyre_status status, gyre_request **request)
{
    error_check(comm_, status, work.what());
    work.requests_.push_back(*request);
}

void World::collect(Work &work, std::vector<WorkPointer> &ended)
{
    if (!work.advance(comm_))
        return;
    if (work.future_)
        futures_--;
    auto place = std::find_if(under_way_.begin(), under_way_.end(),
                              [&](const WorkPointer &other) { return other.get() == &work; });
    if (place == under_way_.end())
        return;
    ended.push_back(std::move(*place));
    under_way_.erase(place);
}

void World::collect_all(std::vector<WorkPointer> &ended)
{
    std::vector<WorkPointer> now = under_way_;
    for (auto &work : now)
        collect(*work, ended);
}

bool World::turn(Work *work)
{
    std::vector<WorkPointer> ended;
    bool through;
    {
        std::unique_lock<std::mutex> held = lock();
        if (comm_)
            messages_.advance(comm_);
        if (work && futures_ == 0)
            collect(*work, ended);
        else
            collect_all(ended);
        through = work && work->ended_;
    }
    for (auto &one : ended)
        one->conclude();
    return through;
}

bool World::wait(Work *work, std::chrono::milliseconds limit)
{
    struct Count {
        std::atomic<int> &number;
        explicit Count(std::atomic<int> &n) : number(n) { number++; }
        ~Count() { number--; }
    } count(waiting_);
    auto began = std::chrono::steady_clock::now();
    Pause pause(spins_);
    for (unsigned turns = 1;; turns++) {
        if (turn(work))
            return true;
        if (turns % 64 == 0 && std::chrono::steady_clock::now() - began > limit)
            return turn(work);
        if (wanted_ > 0)
            sched_yield();
        pause.next();
    }
}

void World::future_expected()
{
    if (futures_++ == 0)
        driver_wanted_.notify_one();
    if (!driver_.joinable() && !stopped_)
        driver_ = std::thread([self = shared_from_this()] { self->drive(); }); // until close()
}

void World::drive()
{
    prctl(PR_SET_NAME, "gyre-torch");
    prctl(PR_SET_TIMERSLACK, 1UL);
    for (;;) {
        {
            std::unique_lock<std::mutex> held(mutex_);
            driver_wanted_.wait(held, [this] { return stopped_ || futures_ > 0; });
            if (stopped_)
                return;
        }
        auto until = std::chrono::steady_clock::now() + driver_slice;
        while (waiting_ == 0 && wanted_ == 0 && std::chrono::steady_clock::now() < until)
            turn(nullptr);
        if (spare_cores_ && waiting_ == 0)
            sched_yield();
        else
            std::this_thread::sleep_for(driver_pause);
    }
}

// As many calls as gyre's trials of all ways take: see docs/design.md, "the clock decides".
void World::try_ways()
{
    static constexpr struct {
        int64_t bytes;
        int calls;
    } trials[] = {{64 << 10, 48}, {256 << 10, 48}, {1 << 20, 18}};
    std::unique_lock<std::mutex> held = lock();
    gyre_rank_place place{};
    place.size = sizeof(place);
    error_check(comm_, library.gyre_comm_topology(comm_, rank_, &place), "init_process_group");
    if (place.locals != size_ || size_ == 1) // the same on every rank
        return;
    auto memory = at::zeros({trials[2].bytes / 4});
    for (auto &trial : trials)
        for (int call = 0; call < trial.calls; call++)
            error_check(comm_,
                        library.gyre_all_reduce(comm_, memory.data_ptr(), memory.data_ptr(),
                                                static_cast<size_t>(trial.bytes / 4), GYRE_FLOAT32, GYRE_SUM),
                        "init_process_group");
}

void World::set_timeout(std::chrono::milliseconds timeout)
{
    std::unique_lock<std::mutex> held = lock();
    check_open("set_timeout");
    auto seconds = std::to_string(std::max(static_cast<double>(timeout.count()) / 1000.0, 0.001));
    error_check(comm_, library.gyre_comm_set(comm_, "timeout", seconds.c_str()), "set_timeout");
}

void World::abort()
{
    std::unique_lock<std::mutex> held = lock();
    if (comm_)
        library.gyre_comm_abort(comm_);
}

// A receive from any rank leaves headers that are waited for. gyre can end such a request only by ending the world, and
// with it what other ranks have not received yet. So this rank waits until those ranks leave, too, or say that they
// want to.
void World::leave_messages()
{
    {
        std::unique_lock<std::mutex> held = lock();
        if (!comm_ || !messages_.waits())
            return;
        messages_.leave(comm_);
    }
    auto until = std::chrono::steady_clock::now() + leave_limit;
    Pause pause(false);
    for (bool waits = true; waits && std::chrono::steady_clock::now() < until; pause.next()) {
        turn(nullptr);
        std::unique_lock<std::mutex> held = lock();
        waits = comm_ && messages_.waits();
    }
}

void World::close()
{
    leave_messages();
    std::vector<WorkPointer> ended;
    {
        std::unique_lock<std::mutex> held = lock();
        stopped_ = true;
        driver_wanted_.notify_one();
        if (comm_) {
            library.gyre_comm_destroy(comm_);
            comm_ = nullptr;
            messages_.close();
            collect_all(ended);
        }
    }
    if (driver_.joinable()) {
        if (driver_.get_id() == std::this_thread::get_id())
            driver_.detach(); // a callback of a future closes the group
        else
            driver_.join();
    }
    for (auto &one : ended)
        one->conclude();
}

} // namespace gyre_torch
