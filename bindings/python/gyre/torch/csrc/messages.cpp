#include "messages.hpp"

#include <algorithm>
#include <cstring>

#include <c10/util/Exception.h>

#include "error.hpp"
#include "library.hpp"
#include "work.hpp"
#include "world.hpp"

namespace gyre_torch
{

Messages::Messages(World &world, int size) : world_(world), peers_(static_cast<size_t>(size)) {}

void Messages::send(gyre_comm *comm, Work &work, const at::Tensor &tensor, int peer, int tag)
{
    auto header = std::make_shared<Header>(Header{tensor.nbytes(), tag});
    gyre_request *request = nullptr;
    gyre_status status = library.gyre_send_start(comm, header.get(), sizeof(Header), GYRE_UINT8, peer, &request);
    world_.add(work, status, &request);
    work.headers_.push_back(header);
    if (header->bytes == 0)
        return;
    status = library.gyre_send_start(comm, tensor.data_ptr(), header->bytes, GYRE_UINT8, peer, &request);
    world_.add(work, status, &request);
    world_.keep(work, tensor);
}

static constexpr int64_t farewell_tag = INT64_MIN; // of no message of torch

void Messages::leave(gyre_comm *comm)
{
    static const Header farewell{0, farewell_tag};
    for (size_t peer = 0; peer < peers_.size(); peer++) {
        gyre_request *request = nullptr;
        if (!peers_[peer].request)
            continue;
        auto status = library.gyre_send_start(comm, &farewell, sizeof(farewell), GYRE_UINT8, static_cast<int>(peer),
                                              &request);
        if (status == GYRE_SUCCESS)
            farewells_.push_back(request);
    }
}

void Messages::end(Work &work, int source, const std::exception_ptr &error)
{
    work.receives_--;
    work.source_ = source;
    if (error && !work.error_)
        work.error_ = error;
}

static std::exception_ptr check_length(const at::Tensor &tensor, int source, uint64_t bytes, int64_t tag)
{
    if (tensor.nbytes() == bytes)
        return nullptr;
    return error_with("gyre: recv: rank " + std::to_string(source) + " sent " + std::to_string(bytes) +
                      " bytes with tag " + std::to_string(tag) + ", the tensor has " + std::to_string(tensor.nbytes()));
}

void Messages::receive(const c10::intrusive_ptr<Work> &work, const at::Tensor &tensor, int peer, int tag)
{
    work->receives_++;
    auto there = std::find_if(payloads_.begin(), payloads_.end(), [&](const Payload &one) {
        return one.unread && one.header.tag == tag && (peer == any_source || one.source == peer);
    });
    if (there == payloads_.end()) {
        posted_.push_back({work, tensor, peer, tag});
        return;
    }
    there->unread = false;
    auto error = check_length(tensor, there->source, there->header.bytes, tag);
    if (there->request && !error) {
        there->work = work;
        there->copy_to = tensor;
        return;
    }
    if (!error && there->header.bytes > 0)
        std::memcpy(tensor.data_ptr(), there->memory.data_ptr(), there->header.bytes);
    end(*work, there->source, error);
    if (!there->request)
        payloads_.erase(there);
}

bool Messages::expected(int peer) const
{
    return std::any_of(posted_.begin(), posted_.end(),
                       [&](const Receive &one) { return one.peer == any_source || one.peer == peer; });
}

void Messages::fail(int peer, const std::exception_ptr &error)
{
    for (auto one = posted_.begin(); one != posted_.end();) {
        if (one->peer != any_source && one->peer != peer) {
            ++one;
            continue;
        }
        end(*one->work, peer, error);
        one = posted_.erase(one);
    }
}

// A header is there: the payload goes to the receive that it is for.
void Messages::arrived(gyre_comm *comm, int peer)
{
    Header header = peers_[static_cast<size_t>(peer)].header;
    if (header.tag == farewell_tag)
        return;
    Payload payload{peer, header, {}, nullptr, nullptr, {}, true};
    auto wanted = std::find_if(posted_.begin(), posted_.end(), [&](const Receive &one) {
        return one.tag == header.tag && (one.peer == any_source || one.peer == peer);
    });
    if (wanted != posted_.end()) {
        payload.unread = false;
        auto error = check_length(wanted->tensor, peer, header.bytes, header.tag);
        if (error || header.bytes == 0)
            end(*wanted->work, peer, error);
        else {
            payload.work = wanted->work;
            payload.memory = wanted->tensor;
        }
        posted_.erase(wanted);
    }
    if (header.bytes > 0)
        receive_payload(comm, payload);
    if (payload.unread || payload.request)
        payloads_.push_back(std::move(payload));
}

void Messages::receive_payload(gyre_comm *comm, Payload &payload)
{
    if (!payload.memory.defined())
        payload.memory = at::empty({static_cast<int64_t>(payload.header.bytes)}, at::kByte);
    gyre_status status = library.gyre_recv_start(comm, payload.memory.data_ptr(), payload.header.bytes, GYRE_UINT8,
                                                 payload.source, &payload.request);
    if (status == GYRE_SUCCESS)
        return;
    payload.request = nullptr;
    payload.unread = false;
    if (payload.work)
        end(*payload.work, payload.source, error_of(comm, status, "recv"));
}

void Messages::advance_peer(gyre_comm *comm, int peer)
{
    Peer &from = peers_[static_cast<size_t>(peer)];
    for (;;) {
        if (!from.request) {
            if (!expected(peer))
                return;
            gyre_status status = library.gyre_recv_start(comm, &from.header, sizeof(Header), GYRE_UINT8, peer,
                                                         &from.request);
            if (status != GYRE_SUCCESS) {
                fail(peer, error_of(comm, status, "recv"));
                return;
            }
            headers_++;
        }
        gyre_status status = library.gyre_test(&from.request);
        if (status == GYRE_IN_PROGRESS)
            return;
        headers_--;
        if (status == GYRE_SUCCESS)
            arrived(comm, peer);
        else
            fail(peer, error_of(comm, status, "recv"));
    }
}

// True: the payload has been handed over, or has failed.
bool Messages::advance_payload(gyre_comm *comm, Payload &payload)
{
    if (!payload.request)
        return false;
    gyre_status status = library.gyre_test(&payload.request);
    if (status == GYRE_IN_PROGRESS)
        return false;
    if (!payload.work)
        return !payload.unread || status != GYRE_SUCCESS;
    if (status == GYRE_SUCCESS && payload.copy_to.defined())
        std::memcpy(payload.copy_to.data_ptr(), payload.memory.data_ptr(), payload.header.bytes);
    end(*payload.work, payload.source, status == GYRE_SUCCESS ? nullptr : error_of(comm, status, "recv"));
    return true;
}

void Messages::advance(gyre_comm *comm)
{
    if (posted_.empty() && payloads_.empty() && headers_ == 0)
        return;
    for (size_t peer = 0; peer < peers_.size(); peer++)
        if (static_cast<int>(peer) != world_.rank())
            advance_peer(comm, static_cast<int>(peer));
    for (auto &request : farewells_)
        if (request)
            library.gyre_test(&request);
    payloads_.remove_if([&](Payload &payload) { return advance_payload(comm, payload); });
}

void Messages::close()
{
    auto error = error_with("gyre: recv: the group was shut down");
    for (auto &one : posted_)
        end(*one.work, -1, error);
    for (auto &one : payloads_)
        if (one.work)
            end(*one.work, -1, error);
    for (auto &one : payloads_)
        if (one.request)
            library.gyre_test(&one.request); // aborted: it is freed
    for (auto &peer : peers_)
        if (peer.request)
            library.gyre_test(&peer.request);
    for (auto &request : farewells_)
        if (request)
            library.gyre_test(&request);
    farewells_.clear();
    posted_.clear();
    payloads_.clear();
    headers_ = 0;
}

} // namespace gyre_torch
