// Messages with tags, and receives from any rank. gyre's messages between two ranks arrive in the order in which they
// were sent and have no tags: each message of torch is a header of fixed size, with tag and length, and the payload
// after it.
//
//   sender            header, payload                              both started at once
//   receiver, a peer  header -> the first receive that was posted for this tag -> payload into its tensor
//                            -> none: payload into memory of its own, until a receive asks for it
//
// A header is waited for only while a receive is posted which it may be for.
#pragma once

#include <cstdint>
#include <exception>
#include <list>
#include <vector>

#include <ATen/ATen.h>

#include <gyre/gyre.h>

namespace gyre_torch
{

class World;
class Work;

// All of it is under the world's lock.
class Messages
{
  public:
    static constexpr int any_source = -1;

    Messages(World &world, int size);

    // Starts a send, as a part of the work that is being started.
    void send(gyre_comm *comm, Work &work, const at::Tensor &tensor, int peer, int tag);

    // Posts a receive, as a part of the work that is being started.
    void receive(const c10::intrusive_ptr<Work> &work, const at::Tensor &tensor, int peer, int tag);

    // Moves what is under way.
    void advance(gyre_comm *comm);

    // True if a header is waited for, which may never be sent: a receive from any rank waits for one of each rank.
    bool waits() const { return headers_ > 0; }

    // Tells the ranks whose headers are waited for that this one will receive no more.
    void leave(gyre_comm *comm);

    // Ends all receives with an error, when the communicator has been destroyed.
    void close();

  private:
    struct Header {
        uint64_t bytes;
        int64_t tag;
    };
    struct Receive {
        c10::intrusive_ptr<Work> work;
        at::Tensor tensor;
        int peer, tag;
    };
    struct Payload {
        int source;
        Header header;
        at::Tensor memory;             // the receive's tensor, or memory of its own
        gyre_request *request;         // NULL: it is there
        c10::intrusive_ptr<Work> work; // null: no receive has asked for it
        at::Tensor copy_to;            // undefined: `memory` is the receive's
        bool unread;                   // no receive has been found for it yet
    };
    struct Peer {
        gyre_request *request = nullptr; // of the header
        Header header{};
    };

    bool expected(int peer) const;
    void advance_peer(gyre_comm *comm, int peer);
    void arrived(gyre_comm *comm, int peer);
    void receive_payload(gyre_comm *comm, Payload &payload);
    bool advance_payload(gyre_comm *comm, Payload &payload);
    void fail(int peer, const std::exception_ptr &error);
    static void end(Work &work, int source, const std::exception_ptr &error);

    World &world_;
    std::vector<Peer> peers_;
    std::list<Receive> posted_;   // in the order of their calls, without a message yet
    std::list<Payload> payloads_; // in the order of their arrival
    std::vector<gyre_request *> farewells_;
    int headers_ = 0; // requests of headers under way
};

} // namespace gyre_torch
