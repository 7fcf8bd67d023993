#include "library.hpp"

#include <dlfcn.h>

#include <c10/util/Exception.h>

namespace gyre_torch
{

Library library;

void library_open(const std::string &path)
{
    void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    TORCH_CHECK(handle, "gyre.torch: ", dlerror());
#define GYRE_TORCH_LOAD(name)                                                 \
    library.name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name)); \
    TORCH_CHECK(library.name, "gyre.torch: ", path, " lacks " #name);
    GYRE_TORCH_FUNCTIONS(GYRE_TORCH_LOAD)
#undef GYRE_TORCH_LOAD
}

} // namespace gyre_torch
