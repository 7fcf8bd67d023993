#include "buffer.h"

#include <string.h>

int PyObject_GetBuffer(PyObject *object, gypy_view *view, int flags);
void PyBuffer_Release(gypy_view *view);

static size_t size_of(int dtype)
{
    static const unsigned char sizes[] = {
#define SIZE(code, name, text, bytes) [code] = bytes,
        GYRE_DTYPE_MAP(SIZE)
#undef SIZE
    };
    return sizes[dtype];
}

/* An integer type by its signedness and size, or −1. */
static int integer(bool is_signed, Py_ssize_t bytes)
{
    switch (bytes) {
    case 1: return is_signed ? GYRE_INT8 : GYRE_UINT8;
    case 4: return is_signed ? GYRE_INT32 : GYRE_UINT32;
    case 8: return is_signed ? GYRE_INT64 : GYRE_UINT64;
    default: return -1;
    }
}

/* The type that a format of the struct module stands for, or −1. *bits_p: its elements may be raw bits of any type. */
static int natural(const char *format, Py_ssize_t bytes, bool *bits_p, bool *complex_p)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    bool native = *format == '@' || *format == '=' || *format == '<';
#else
    bool native = *format == '@' || *format == '=' || *format == '>';
#endif
    if (native)
        format++;
    *complex_p = *format == 'Z';
    if (*complex_p)
        format++;
    *bits_p = false;
    if (!*format || format[1])
        return -1;
    switch (*format) {
    case 'f': return GYRE_FLOAT32;
    case 'd': return GYRE_FLOAT64;
    case 'e': return *complex_p ? -1 : GYRE_FLOAT16;
    case '?': return *complex_p ? -1 : GYRE_BOOL;
    case 'b':
    case 'i':
    case 'l':
    case 'q': return *complex_p ? -1 : integer(true, bytes);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q': *bits_p = true; return *complex_p ? -1 : integer(false, bytes);
    default: return -1;
    }
}

/* True if elements of `has` bytes each may be named `wanted`. */
static bool may_be_named(int wanted, int dtype, bool bits, Py_ssize_t has, Py_ssize_t whole)
{
    Py_ssize_t size = (Py_ssize_t)size_of(wanted);
    return dtype == wanted || (bits && (has == size || has == 1) && whole % size == 0);
}

static bool take_view(struct gypy_buffer *buffer, PyObject *source, int wanted)
{
    gypy_view *view = &buffer->view;
    if (PyObject_GetBuffer(source, view, GYPY_VIEW_ND | GYPY_VIEW_FORMAT) != 0) {
        PyErr_Clear();
        view->obj = NULL;
        return false;
    }
    bool bits, complex;
    int dtype = natural(view->format ? view->format : "B", view->itemsize, &bits, &complex);
    if (wanted >= 0 && !complex && may_be_named(wanted, dtype, bits, view->itemsize, view->len))
        dtype = wanted;
    else if (wanted >= 0)
        dtype = -1;
    if (dtype < 0) {
        gypy_buffer_release(buffer);
        return false;
    }
    buffer->address = view->buf;
    buffer->bytes = (size_t)view->len;
    buffer->count = buffer->bytes / size_of(dtype);
    buffer->dtype = (gyre_dtype)dtype;
    buffer->complex = complex;
    buffer->readonly = view->readonly;
    return true;
}

static bool take_tensor(struct gypy_buffer *buffer, PyObject *source, int wanted)
{
    struct gypy_tensor *tensor = &buffer->tensor;
    if (!gypy_tensor_take(tensor, source, NULL)) {
        PyErr_Clear();
        return false;
    }
    size_t parts;
    int dtype = gypy_tensor_dtype(tensor, &parts);
    if (dtype < 0 || (wanted >= 0 && wanted != dtype) || !gypy_tensor_is_on_host(tensor) ||
        !gypy_tensor_is_contiguous(tensor)) {
        gypy_buffer_release(buffer);
        return false;
    }
    buffer->address = (char *)tensor->tensor->data + tensor->tensor->offset;
    buffer->count = gypy_tensor_elements(tensor) * parts;
    buffer->bytes = buffer->count * size_of(dtype);
    buffer->dtype = (gyre_dtype)dtype;
    buffer->complex = parts == 2;
    buffer->readonly = tensor->readonly;
    return true;
}

/* Memory of a GPU is left to the package, which asks for its tensor behind a stream. */
static bool exports_tensors(PyObject *source)
{
    PyObject *type = (PyObject *)Py_TYPE(source);
    bool exports = PyObject_HasAttrString(type, "__dlpack__");
    if (!exports || !PyObject_HasAttrString(source, "__dlpack_device__"))
        return false;
    PyObject *device = PyObject_CallMethod(source, "__dlpack_device__", NULL);
    int kind = 0, number = 0;
    bool host = device && PyTuple_Check(device) && PyArg_ParseTuple(device, "ii", &kind, &number) &&
                (kind == DLPACK_CPU || kind == DLPACK_CUDA_HOST || kind == DLPACK_ROCM_HOST);
    PyErr_Clear();
    Py_XDECREF(device);
    return host;
}

bool gypy_buffer_take(struct gypy_buffer *buffer, PyObject *source, int dtype)
{
    memset(buffer, 0, sizeof(*buffer));
    if (source == Py_None)
        return false;
    return take_view(buffer, source, dtype) || (exports_tensors(source) && take_tensor(buffer, source, dtype));
}

void gypy_buffer_release(struct gypy_buffer *buffer)
{
    if (buffer->view.obj)
        PyBuffer_Release(&buffer->view);
    buffer->view.obj = NULL;
    if (buffer->tensor.tensor)
        gypy_tensor_release(&buffer->tensor);
}
