// Gloo over TCP, the only transport that Debian's package and one host have in common. What a call needs is made
// when its size first comes and kept, which is the best that a user of Gloo can do.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>

#include "driver.h"

namespace
{

std::shared_ptr<gloo::rendezvous::Context> context;

// Runs `body`; an exception is the end of this rank.
template <typename Body> void must(Body body)
{
    try {
        body();
    } catch (const std::exception &error) {
        gy_die("%s", error.what());
    }
}

// The options of the last call, remade when the call differs.
template <typename Options> struct Kept {
    std::unique_ptr<Options> options;
    gy_call call = {};

    template <typename Make> Options &of(const gy_call *it, Make make)
    {
        if (!options || std::memcmp(&call, it, sizeof call) != 0) {
            options.reset(new Options(context));
            make(*options);
            call = *it;
        }
        return *options;
    }
};

gy_world join(gy_world world)
{
    must([&] {
        gloo::transport::tcp::attr attributes;
        attributes.iface = "lo";
        auto device = gloo::transport::tcp::CreateDevice(attributes);
        gloo::rendezvous::FileStore store(gy_store());
        context = std::make_shared<gloo::rendezvous::Context>(world.rank, world.size);
        context->connectFullMesh(store, device);
    });
    return {context->rank, context->size};
}

const char *version()
{
    return "Gloo 0.0~git20220518";
}

gloo::AllreduceOptions::Algorithm algorithm()
{
    const char *variant = std::getenv("COMPARE_VARIANT");
    return variant && std::strcmp(variant, "bcube") == 0 ? gloo::AllreduceOptions::Algorithm::BCUBE
                                                         : gloo::AllreduceOptions::Algorithm::RING;
}

void all_reduce(const gy_call *it)
{
    static Kept<gloo::AllreduceOptions> kept;
    must([&] {
        gloo::allreduce(kept.of(it, [&](gloo::AllreduceOptions &options) {
            options.setAlgorithm(algorithm());
            options.setInput(const_cast<float *>(it->input), it->count);
            options.setOutput(it->output, it->count);
            options.setReduceFunction(
                static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
        }));
    });
}

void all_gather(const gy_call *it)
{
    static Kept<gloo::AllgatherOptions> kept;
    must([&] {
        gloo::allgather(kept.of(it, [&](gloo::AllgatherOptions &options) {
            options.setInput(const_cast<float *>(it->input), it->count);
            options.setOutput(it->output, it->count * static_cast<size_t>(context->size));
        }));
    });
}

void broadcast(const gy_call *it)
{
    static Kept<gloo::BroadcastOptions> kept;
    must([&] {
        gloo::broadcast(kept.of(it, [&](gloo::BroadcastOptions &options) {
            options.setOutput(it->output, it->count);
            options.setRoot(0);
        }));
    });
}

void reduce(const gy_call *it)
{
    static Kept<gloo::ReduceOptions> kept;
    must([&] {
        gloo::reduce(kept.of(it, [&](gloo::ReduceOptions &options) {
            options.setInput(const_cast<float *>(it->input), it->count);
            options.setOutput(it->output, it->count);
            options.setRoot(0);
            options.setReduceFunction(
                static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
        }));
    });
}

void all_to_all(const gy_call *it)
{
    static Kept<gloo::AlltoallOptions> kept;
    must([&] {
        gloo::alltoall(kept.of(it, [&](gloo::AlltoallOptions &options) {
            size_t all = it->count * static_cast<size_t>(context->size);
            options.setInput(const_cast<float *>(it->input), all);
            options.setOutput(it->output, all);
        }));
    });
}

void barrier(const gy_call *)
{
    static gloo::BarrierOptions options(context);
    must([&] { gloo::barrier(options); });
}

void leave()
{
    // Its destructors wait for peers that may be gone: the process's end is enough.
}

} // namespace

// Gloo's reduce_scatter works in place on a copy and is left out. In the order of enum gy_kind.
const struct gy_driver gy_driver = {
    "gloo",  "RANK", join, version, {all_reduce, nullptr, all_gather, broadcast, reduce, all_to_all, barrier},
    nullptr, leave,
};
