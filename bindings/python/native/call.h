/* A call: from Python's arguments to those of libgyre. Only what is common is taken: buffers that gypy_buffer_take
 * knows, whose counts and types fit, operations of gyre's own. Everything else, and every mistake, goes to the method
 * of the same name of the package, which has the error messages. So both ways accept the same calls and do the same
 * with them. */
#ifndef GYRE_PYTHON_CALL_H
#define GYRE_PYTHON_CALL_H

#include "buffer.h"
#include "core.h"

/* Kind, name, parameters, documentation. */
#define GYPY_CALL_MAP(X)                                                                                              \
    X(ALL_REDUCE, all_reduce, "input, output=None, op='sum', *, dtype=None, stream=None",                             \
      "Reduces `input` over all ranks into `output` on every rank; without `output`, in place. Gives the result.")    \
    X(REDUCE, reduce, "input, output=None, op='sum', root=0, *, dtype=None, stream=None",                             \
      "Reduces `input` over all ranks into `output` on `root`; without `output`, in place there. Elsewhere `output` " \
      "is not needed, and `input` stays as it is. Gives the result on root, None elsewhere.")                         \
    X(REDUCE_SCATTER, reduce_scatter, "input, output=None, op='sum', *, dtype=None, stream=None",                     \
      "Reduces `input` over all ranks, of which rank r gets block r (of as many blocks as ranks) in `output`; "       \
      "without `output`, in place: in that block of `input`.")                                                        \
    X(BROADCAST, broadcast, "input, output=None, root=0, *, dtype=None, stream=None",                                 \
      "Copies `input` of `root` to `output` on every rank; without `output`, `input` is the buffer on every rank: "   \
      "what is sent on root, what is received elsewhere. Gives the result.")                                          \
    X(ALL_GATHER, all_gather, "input, output, *, dtype=None, stream=None",                                            \
      "Collects `input` of every rank in `output` of every rank, in rank order. `input` None: in place, it is "       \
      "already there as block `rank` of `output`. Gives `output`.")                                                   \
    X(GATHER, gather, "input, output=None, root=0, *, dtype=None, stream=None",                                       \
      "Collects `input` of every rank in `output` on `root`, in rank order. `input` None on root: in place. "         \
      "Elsewhere `output` is not needed. Gives `output` on root, None elsewhere.")                                    \
    X(SCATTER, scatter, "input, output=None, root=0, *, dtype=None, stream=None",                                     \
      "Gives block r of `input` on `root` to rank r, in `output`. `output` None on root: in place, its own block "    \
      "stays where it is. Elsewhere `input` is not needed. Gives `output`.")                                          \
    X(ALL_TO_ALL, all_to_all, "input, output=None, *, dtype=None, stream=None",                                       \
      "Sends block r of `input` to rank r; block r of `output` comes from rank r. Without `output`, in place. Gives " \
      "the result.")                                                                                                  \
    X(BARRIER, barrier, "*, stream=None", "Returns, or completes, when every rank has called it.")                    \
    X(SEND, send, "input, peer, *, dtype=None, stream=None",                                                          \
      "Sends `input` to rank `peer`. May wait for its receive, unless inside a group.")                               \
    X(RECV, recv, "output, peer, *, dtype=None, stream=None",                                                         \
      "Receives from rank `peer` as many elements as `output` has. Gives `output`.")

enum gypy_kind {
#define GYPY_CALL_KIND(kind, name, signature, text) GYPY_##kind,
    GYPY_CALL_MAP(GYPY_CALL_KIND)
#undef GYPY_CALL_KIND
        GYPY_KINDS
};

struct gypy_call {
    enum gypy_kind kind;
    struct gypy_buffer in, out; /* what is held; the addresses below may lie in either */
    void *input, *output;
    size_t count, bytes; /* bytes: of the longest vector of the call */
    gyre_dtype dtype;
    gyre_op op;
    int rank;         /* root or peer */
    PyObject *result; /* borrowed; NULL: none */
};

/* Fills the call. False, with nothing held and no exception, where it is not common. */
bool gypy_call_prepare(struct gypy_call *call, enum gypy_kind kind, struct gypy_core *core, PyObject *const *arguments,
                       Py_ssize_t count, PyObject *names);

void gypy_call_release(struct gypy_call *call);

/* Starts it. */
gyre_status gypy_call_start(struct gypy_call *call, gyre_comm *comm, gyre_request **request_p);

/* The methods: each call, blocking and as a request. */
#define GYPY_CALL_METHODS(kind, name, signature, text)                                                    \
    PyObject *gypy_##name(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names); \
    PyObject *gypy_##name##_start(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names);
GYPY_CALL_MAP(GYPY_CALL_METHODS)
#undef GYPY_CALL_METHODS

#endif
