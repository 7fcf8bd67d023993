#include "tensor.h"

#include <gyre/gyre.h>
#include <stdlib.h>
#include <string.h>

/* Asks for a capsule with a version, and, of a library that is older, for one without. */
static PyObject *ask(PyObject *source, PyObject *stream)
{
    PyObject *method = PyObject_GetAttrString(source, "__dlpack__");
    if (!method)
        return NULL;
    PyObject *nothing = PyTuple_New(0), *options = stream ? Py_BuildValue("{sO}", "stream", stream) : PyDict_New();
    PyObject *version = Py_BuildValue("(ii)", DLPACK_MAJOR, 1), *capsule = NULL;
    if (nothing && options && version && PyDict_SetItemString(options, "max_version", version) == 0) {
        capsule = PyObject_Call(method, nothing, options);
        if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            if (PyDict_DelItemString(options, "max_version") == 0)
                capsule = PyObject_Call(method, nothing, options);
        }
    }
    Py_XDECREF(version);
    Py_XDECREF(nothing);
    Py_XDECREF(options);
    Py_DECREF(method);
    return capsule;
}

/* Its arrays are immutable, and older capsules cannot say so. */
static bool is_of_jax(PyObject *source)
{
    PyObject *module = PyObject_GetAttrString((PyObject *)Py_TYPE(source), "__module__");
    bool found = module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "jax") >= 0 &&
                 PyUnicode_CompareWithASCIIString(module, "jay") < 0;
    PyErr_Clear();
    Py_XDECREF(module);
    return found;
}

/* The capsule is versioned, and consumed. What is written to a copy would be lost: it counts as read-only. */
static void take_versioned(struct gypy_tensor *tensor, PyObject *capsule)
{
    tensor->versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    PyCapsule_SetName(capsule, "used_dltensor_versioned");
    unsigned major = tensor->versioned->major;
    if (major == DLPACK_MAJOR) {
        tensor->tensor = &tensor->versioned->tensor;
        tensor->readonly = tensor->versioned->flags & (DLPACK_READ_ONLY | DLPACK_IS_COPIED);
        return;
    }
    gypy_tensor_release(tensor);
    PyErr_Format(PyExc_BufferError, "__dlpack__ gave version %u of DLPack, and gyre knows version %d", major,
                 DLPACK_MAJOR);
}

bool gypy_tensor_take(struct gypy_tensor *tensor, PyObject *source, PyObject *stream)
{
    memset(tensor, 0, sizeof(*tensor));
    PyObject *capsule = ask(source, stream);
    if (!capsule)
        return false;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        take_versioned(tensor, capsule);
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        tensor->managed = PyCapsule_GetPointer(capsule, "dltensor");
        tensor->tensor = &tensor->managed->tensor;
        PyCapsule_SetName(capsule, "used_dltensor");
    } else {
        PyErr_SetString(PyExc_BufferError, "__dlpack__ gave no tensor");
    }
    Py_DECREF(capsule);
    if (!tensor->tensor)
        return false;
    tensor->readonly = tensor->readonly || is_of_jax(source);
    return true;
}

void gypy_tensor_release(struct gypy_tensor *tensor)
{
    struct gypy_tensor held = *tensor;
    memset(tensor, 0, sizeof(*tensor));
    if (held.managed && held.managed->release)
        held.managed->release(held.managed);
    if (held.versioned && held.versioned->release)
        held.versioned->release(held.versioned);
}

bool gypy_tensor_is_contiguous(const struct gypy_tensor *tensor)
{
    const struct dlpack_tensor *it = tensor->tensor;
    if (!it->strides)
        return true;
    int64_t expected = 1;
    bool fits = true;
    for (int32_t i = it->dimensions - 1; i >= 0; i--) {
        if (it->shape[i] == 0)
            return true;
        if (it->shape[i] != 1 && it->strides[i] != expected)
            fits = false;
        expected *= it->shape[i];
    }
    return fits;
}

size_t gypy_tensor_elements(const struct gypy_tensor *tensor)
{
    size_t elements = 1;
    for (int32_t i = 0; i < tensor->tensor->dimensions; i++)
        elements *= (size_t)tensor->tensor->shape[i];
    return elements;
}

int gypy_tensor_dtype(const struct gypy_tensor *tensor, size_t *parts_p)
{
    static const struct {
        uint8_t code, bits, parts;
        int8_t dtype;
    } types[] = {
        {DLPACK_FLOAT, 32, 1, GYRE_FLOAT32},
        {DLPACK_BFLOAT, 16, 1, GYRE_BFLOAT16},
        {DLPACK_FLOAT, 16, 1, GYRE_FLOAT16},
        {DLPACK_FLOAT, 64, 1, GYRE_FLOAT64},
        {DLPACK_INT, 8, 1, GYRE_INT8},
        {DLPACK_UINT, 8, 1, GYRE_UINT8},
        {DLPACK_INT, 32, 1, GYRE_INT32},
        {DLPACK_UINT, 32, 1, GYRE_UINT32},
        {DLPACK_INT, 64, 1, GYRE_INT64},
        {DLPACK_UINT, 64, 1, GYRE_UINT64},
        {DLPACK_BOOL, 8, 1, GYRE_BOOL},
        {DLPACK_COMPLEX, 64, 2, GYRE_FLOAT32},
        {DLPACK_COMPLEX, 128, 2, GYRE_FLOAT64},
        {DLPACK_FLOAT8_E4M3FN, 8, 1, GYRE_FLOAT8_E4M3},
        {DLPACK_FLOAT8_E5M2, 8, 1, GYRE_FLOAT8_E5M2},
    };
    *parts_p = 1;
    const struct dlpack_tensor *it = tensor->tensor;
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        if (it->lanes != 1 || types[i].code != it->code || types[i].bits != it->bits)
            continue;
        *parts_p = types[i].parts;
        return types[i].dtype;
    }
    return -1;
}

bool gypy_tensor_is_on_host(const struct gypy_tensor *tensor)
{
    int32_t device = tensor->tensor->device;
    return device == DLPACK_CPU || device == DLPACK_CUDA_HOST || device == DLPACK_ROCM_HOST;
}

#define HELD "gyre.tensor"

static void forget(PyObject *capsule)
{
    struct gypy_tensor *tensor = PyCapsule_GetPointer(capsule, HELD);
    gypy_tensor_release(tensor);
    free(tensor);
}

/* What the package wants to know of the tensor that the capsule holds; takes the capsule. */
static PyObject *describe(const struct gypy_tensor *tensor, PyObject *capsule)
{
    size_t parts = 1;
    int dtype = gypy_tensor_dtype(tensor, &parts);
    const struct dlpack_tensor *it = tensor->tensor;
    unsigned long long address = (unsigned long long)(uintptr_t)it->data + it->offset;
    return Py_BuildValue("(NKniiiiiiii)", capsule, address, (Py_ssize_t)gypy_tensor_elements(tensor), dtype, (int)parts,
                         it->bits, it->code, tensor->readonly, gypy_tensor_is_contiguous(tensor), (int)it->device,
                         (int)it->device_number);
}

PyObject *gypy_tensor_describe(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *source, *stream = Py_None;
    if (!PyArg_ParseTuple(arguments, "O|O", &source, &stream))
        return NULL;
    struct gypy_tensor *tensor = calloc(1, sizeof(*tensor));
    if (!tensor)
        return PyErr_NoMemory();
    bool taken = gypy_tensor_take(tensor, source, stream == Py_None ? NULL : stream);
    PyObject *capsule = taken ? PyCapsule_New(tensor, HELD, forget) : NULL;
    if (capsule)
        return describe(tensor, capsule);
    if (tensor->tensor)
        gypy_tensor_release(tensor);
    free(tensor);
    return NULL;
}
