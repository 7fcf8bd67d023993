#include "arguments.h"

#include "package.h"

enum parameter { NONE, INPUT, OUTPUT, OP, ROOT, PEER, DTYPE, STREAM, PARAMETERS };

static const char *const texts[PARAMETERS] = {
    [INPUT] = "input", [OUTPUT] = "output", [OP] = "op",         [ROOT] = "root",
    [PEER] = "peer",   [DTYPE] = "dtype",   [STREAM] = "stream",
};

/* In their order; after them DTYPE and STREAM, by their names alone. */
enum { MOST = 4 };
static const unsigned char orders[GYPY_KINDS][MOST] = {
    [GYPY_ALL_REDUCE] = {INPUT, OUTPUT, OP},
    [GYPY_REDUCE] = {INPUT, OUTPUT, OP, ROOT},
    [GYPY_REDUCE_SCATTER] = {INPUT, OUTPUT, OP},
    [GYPY_BROADCAST] = {INPUT, OUTPUT, ROOT},
    [GYPY_ALL_GATHER] = {INPUT, OUTPUT},
    [GYPY_GATHER] = {INPUT, OUTPUT, ROOT},
    [GYPY_SCATTER] = {INPUT, OUTPUT, ROOT},
    [GYPY_ALL_TO_ALL] = {INPUT, OUTPUT},
    [GYPY_BARRIER] = {NONE},
    [GYPY_SEND] = {INPUT, PEER},
    [GYPY_RECV] = {OUTPUT, PEER},
};

/* A number from 0 to `most`, by its name in a dict or as it is; −1 for anything else. */
static int number_of(PyObject *value, PyObject *names, int most)
{
    PyObject *found = value;
    if (names && PyUnicode_Check(value))
        found = PyDict_GetItemWithError(names, value);
    if (!found || !PyLong_Check(found) || PyBool_Check(found)) {
        PyErr_Clear();
        return -1;
    }
    long number = PyLong_AsLong(found);
    PyErr_Clear();
    return number < 0 || number > most ? -1 : (int)number;
}

static bool take(struct gypy_arguments *arguments, enum parameter parameter, PyObject *value)
{
    switch (parameter) {
    case INPUT: arguments->input = value == Py_None ? NULL : value; return true;
    case OUTPUT: arguments->output = value == Py_None ? NULL : value; return true;
    case OP: arguments->op = number_of(value, gypy_package.op_names, GYRE_PREMUL_SUM); return arguments->op >= 0;
    case ROOT:
    case PEER: arguments->rank = number_of(value, NULL, INT32_MAX); return arguments->rank >= 0;
    case DTYPE:
        if (value == Py_None)
            return true;
        arguments->dtype = number_of(value, gypy_package.dtype_names, GYRE_BOOL);
        return arguments->dtype >= 0;
    case STREAM: return value == Py_None; /* what a stream orders is the package's */
    default: return false;
    }
}

/* The parameter of this name, if the call has it. */
static enum parameter named(enum gypy_kind kind, PyObject *name)
{
    for (int i = 0; i < MOST; i++) {
        enum parameter parameter = orders[kind][i];
        if (parameter != NONE && PyUnicode_CompareWithASCIIString(name, texts[parameter]) == 0)
            return parameter;
    }
    if (PyUnicode_CompareWithASCIIString(name, texts[STREAM]) == 0)
        return STREAM;
    bool typed = kind != GYPY_BARRIER && PyUnicode_CompareWithASCIIString(name, texts[DTYPE]) == 0;
    return typed ? DTYPE : NONE;
}

bool gypy_arguments_read(struct gypy_arguments *arguments, enum gypy_kind kind, PyObject *const *given,
                         Py_ssize_t count, PyObject *names)
{
    *arguments = (struct gypy_arguments){.op = GYRE_SUM, .rank = 0, .dtype = -1};
    unsigned seen = 0;
    if (count > MOST)
        return false;
    for (Py_ssize_t i = 0; i < count; i++) {
        enum parameter parameter = orders[kind][i];
        if (parameter == NONE || !take(arguments, parameter, given[i]))
            return false;
        seen |= 1u << parameter;
    }
    Py_ssize_t more = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < more; i++) {
        enum parameter parameter = named(kind, PyTuple_GetItem(names, i));
        if (parameter == NONE || (seen & 1u << parameter) || !take(arguments, parameter, given[count + i]))
            return false;
        seen |= 1u << parameter;
    }
    bool peer = kind == GYPY_SEND || kind == GYPY_RECV;
    bool whole = kind != GYPY_ALL_GATHER || ((seen & 1u << INPUT) && (seen & 1u << OUTPUT));
    return whole && (!peer || (seen & 1u << PEER));
}
