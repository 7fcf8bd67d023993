#include "pause.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace gyre_torch
{

using namespace std::chrono_literals;

static constexpr auto spin = 2ms; // longer than an all_reduce of some MiB takes
static constexpr auto yield =
    200ms; // a transfer that is still under way is moved by the tests; a rank that computes longer is waited for asleep

void Pause::next()
{
    if (turns_++ % 16 != 0 && spins_)
        return;
    auto waited = Clock::now() - began_;
    if (spins_ && waited < spin)
        return;
    if (waited < yield) {
        sched_yield();
        return;
    }
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(waited / 1000, 1ms));
}

} // namespace gyre_torch
