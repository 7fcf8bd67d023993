#include "types.hpp"

namespace gyre_torch
{

static std::optional<gyre_dtype> dtype_of(at::ScalarType type)
{
    switch (type) {
    case at::kChar: return GYRE_INT8;
    case at::kByte: return GYRE_UINT8;
    case at::kInt: return GYRE_INT32;
    case at::kUInt32: return GYRE_UINT32;
    case at::kLong: return GYRE_INT64;
    case at::kUInt64: return GYRE_UINT64;
    case at::kHalf: return GYRE_FLOAT16;
    case at::kBFloat16: return GYRE_BFLOAT16;
    case at::kFloat: return GYRE_FLOAT32;
    case at::kDouble: return GYRE_FLOAT64;
    case at::kFloat8_e4m3fn: return GYRE_FLOAT8_E4M3;
    case at::kFloat8_e5m2: return GYRE_FLOAT8_E5M2;
    case at::kBool: return GYRE_BOOL;
    default: return std::nullopt;
    }
}

void tensor_check(const at::Tensor &tensor, const char *what)
{
    TORCH_CHECK(tensor.defined(), "gyre: ", what, ": a tensor is undefined");
    TORCH_CHECK(!tensor.is_sparse() && !tensor.is_sparse_csr(), "gyre: ", what,
                ": sparse tensors are not supported; to_dense() converts");
    TORCH_CHECK(tensor.device().is_cpu(), "gyre: ", what, ": the tensor is on ", tensor.device(),
                "; this version of gyre reaches memory of the host only");
    TORCH_CHECK(tensor.is_contiguous(tensor.suggest_memory_format()), "gyre: ", what,
                ": the tensor is not contiguous; contiguous() makes a copy that is");
    TORCH_CHECK(!tensor.is_conj() && !tensor.is_neg(), "gyre: ", what,
                ": the tensor is a lazy conjugate or negation; resolve_conj() computes it");
}

Elements elements_moved(const at::Tensor &tensor)
{
    if (auto dtype = dtype_of(tensor.scalar_type()))
        return {tensor.data_ptr(), static_cast<size_t>(tensor.numel()), *dtype};
    return {tensor.data_ptr(), tensor.nbytes(), GYRE_UINT8};
}

at::ScalarType reduced_type(at::ScalarType type)
{
    return type == at::kShort || type == at::kUInt16 ? at::kInt : type; // sums modulo 2^32 are right modulo 2^16
}

Elements elements_reduced(const at::Tensor &tensor)
{
    if (tensor.is_complex()) {
        auto parts = at::view_as_real(tensor);
        return {parts.data_ptr(), static_cast<size_t>(parts.numel()), *dtype_of(parts.scalar_type())};
    }
    return {tensor.data_ptr(), static_cast<size_t>(tensor.numel()), *dtype_of(tensor.scalar_type())};
}

static gyre_op op_of(c10d::ReduceOp::RedOpType op, const char *what)
{
    switch (op) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::PREMUL_SUM: return GYRE_SUM;
    case c10d::ReduceOp::AVG: return GYRE_AVERAGE;
    case c10d::ReduceOp::PRODUCT: return GYRE_PRODUCT;
    case c10d::ReduceOp::MIN: return GYRE_MIN;
    case c10d::ReduceOp::MAX: return GYRE_MAX;
    case c10d::ReduceOp::BAND: return GYRE_BIT_AND;
    case c10d::ReduceOp::BOR: return GYRE_BIT_OR;
    case c10d::ReduceOp::BXOR: return GYRE_BIT_XOR;
    default: TORCH_CHECK(false, "gyre: ", what, ": unknown operation ", static_cast<int>(op));
    }
}

static at::Tensor multiplied(const at::Tensor &tensor, const c10d::ReduceOp &op)
{
    auto factor = static_cast<const c10d::NCCLPreMulSumSupplement *>(op.supplement_.get());
    return factor->tensor_factor.defined() ? tensor.mul(factor->tensor_factor.to(tensor.scalar_type()).reshape({}))
                                           : tensor.mul(factor->double_factor);
}

Reduction reduction_of(const at::Tensor &tensor, const c10d::ReduceOp &op, const char *what)
{
    auto kind = static_cast<c10d::ReduceOp::RedOpType>(op);
    gyre_op chosen = op_of(kind, what);
    auto type = tensor.scalar_type();
    bool bits = kind == c10d::ReduceOp::BAND || kind == c10d::ReduceOp::BOR || kind == c10d::ReduceOp::BXOR;
    TORCH_CHECK(!bits || at::isIntegralType(type, true), "gyre: ", what,
                ": bit operations are for integers and booleans, not for ", type);
    TORCH_CHECK(!tensor.is_complex() || chosen == GYRE_SUM || chosen == GYRE_AVERAGE, "gyre: ", what,
                ": complex numbers have sums and averages only");
    TORCH_CHECK(type != at::kBool || chosen != GYRE_AVERAGE, "gyre: ", what, ": booleans have no average");
    auto computed = reduced_type(type);
    TORCH_CHECK(tensor.is_complex() || dtype_of(computed), "gyre: ", what, ": no reduction of ", type);
    if (kind == c10d::ReduceOp::PREMUL_SUM)
        return {multiplied(tensor, op).to(computed).contiguous(tensor.suggest_memory_format()), chosen, true};
    if (computed != type)
        return {tensor.to(computed), chosen, true};
    return {tensor, chosen, false};
}

} // namespace gyre_torch
