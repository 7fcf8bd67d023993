// Rank 0 draws the job's secret and puts it into the store, so that a process may join if it can reach the store.
// gyre's exchanges of bytes are keys of the store: one for each exchange and rank. A store may serve several worlds of
// the same name, one after the other, as when a program calls init_process_group again; a counter tells them apart.
#include "meeting.hpp"

#include <sys/random.h>

#include <cstring>
#include <string>

#include <c10/util/Exception.h>

#include "error.hpp"
#include "library.hpp"

namespace gyre_torch
{

namespace
{

struct Meeting {
    c10d::Store *store;
    int rank, size;
    std::chrono::milliseconds timeout;
    std::string prefix;
    int exchanges = 0;
    std::string failure;
};

std::string missing_ranks(Meeting &meeting, const std::string &name)
{
    std::string found;
    for (int rank = 0; rank < meeting.size; rank++)
        if (!meeting.store->check({name + std::to_string(rank)}))
            found += (found.empty() ? "" : ", ") + std::to_string(rank);
    return found;
}

void exchange_all(Meeting &meeting, const void *mine, void *all, size_t bytes)
{
    std::string name = meeting.prefix + std::to_string(meeting.exchanges++) + "/";
    auto first = static_cast<const uint8_t *>(mine);
    meeting.store->set(name + std::to_string(meeting.rank), std::vector<uint8_t>(first, first + bytes));
    std::vector<std::string> keys;
    for (int rank = 0; rank < meeting.size; rank++)
        keys.push_back(name + std::to_string(rank));
    try {
        meeting.store->wait(keys, meeting.timeout);
    } catch (const std::exception &error) {
        TORCH_CHECK(false, "rank ", missing_ranks(meeting, name), " did not come within ",
                    meeting.timeout.count() / 1000.0, " s (", error.what(), ")");
    }
    for (int rank = 0; rank < meeting.size; rank++) {
        auto theirs = meeting.store->get(keys[rank]);
        TORCH_CHECK(theirs.size() == bytes, "rank ", rank, " sent ", theirs.size(), " bytes instead of ", bytes);
        std::memcpy(static_cast<uint8_t *>(all) + rank * bytes, theirs.data(), bytes);
    }
}

int exchange(void *user, const void *mine, void *all, size_t bytes)
{
    auto &meeting = *static_cast<Meeting *>(user);
    try {
        exchange_all(meeting, mine, all, bytes);
        return 0;
    } catch (const c10::Error &error) {
        meeting.failure = error.what_without_backtrace();
    } catch (const std::exception &error) {
        meeting.failure = error.what();
    }
    return 1;
}

std::string secret_of(Meeting &meeting)
{
    std::string key = meeting.prefix + "secret";
    if (meeting.rank == 0) {
        unsigned char bytes[32];
        TORCH_CHECK(getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes), "gyre: no random numbers of the system");
        std::string text;
        for (unsigned char byte : bytes) {
            text += "0123456789abcdef"[byte >> 4];
            text += "0123456789abcdef"[byte & 15];
        }
        meeting.store->set(key, text);
        return text;
    }
    meeting.store->wait({key}, meeting.timeout);
    return meeting.store->get_to_str(key);
}

} // namespace

gyre_comm *meet(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, std::chrono::milliseconds timeout)
{
    int64_t entered = store->add("gyre/entered", 1);
    Meeting meeting{store.get(), rank, size, timeout, "gyre/" + std::to_string((entered - 1) / size) + "/", 0, ""};
    std::string secret = secret_of(meeting);
    gyre_config config{};
    config.size = sizeof(config);
    config.rank = rank;
    config.world_size = size;
    config.secret = secret.c_str();
    config.exchange = exchange;
    config.exchange_user = &meeting;
    gyre_comm *comm = nullptr;
    gyre_status status = library.gyre_comm_create(&config, &comm);
    if (status != GYRE_SUCCESS && !meeting.failure.empty())
        std::rethrow_exception(error_with("gyre: init_process_group: " + meeting.failure));
    error_check(nullptr, status, "init_process_group");
    return comm;
}

} // namespace gyre_torch
