/* The reductions of KIND as C++. A build with a sanitizer has some types only (pairs.h). */
#include "plugin_code.h"

#include "cuda/kernels/one_shot.cuh"
#include "cuda/kernels/table.h"
#include "pairs.h"

#define PASTE(a, b) a##b
#define PASTED(a, b) PASTE(a, b)

namespace
{
template <typename work, void (*run)(const PASTED(gy_, KIND) &)> void body(const void *arguments)
{
    run(*(const PASTED(gy_, KIND) *)arguments);
}

template <int type, int op, bool tree> constexpr auto body_of() -> void (*)(const void *)
{
    using work = gy_work<type, op, tree>;
    if constexpr (is_compiled(type))
        return body < work, PASTED(PASTED(gy_, KIND), _run) < work >> ;
    else
        return nullptr;
}

#define CODE(name, kind, type, op, tree) {#name, sizeof(gy_##kind), body_of<type, op, tree>()},
const gy_gpu_code code[] = {GY_KERNELS_OF(CODE, KIND)};
} // namespace

const code_table PASTED(code_of_, KIND) = {code, sizeof(code) / sizeof(code[0])};
