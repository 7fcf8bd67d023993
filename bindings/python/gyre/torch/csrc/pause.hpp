// How a thread waits that tests again and again: it spins for a while where each rank of the host has a core of its
// own, then yields, then sleeps.
#pragma once

#include <chrono>

namespace gyre_torch
{

class Pause
{
  public:
    explicit Pause(bool spins) : spins_(spins), began_(Clock::now()) {}

    // Called after each test that found nothing.
    void next();

  private:
    using Clock = std::chrono::steady_clock;
    bool spins_;
    unsigned turns_ = 0;
    Clock::time_point began_;
};

} // namespace gyre_torch
