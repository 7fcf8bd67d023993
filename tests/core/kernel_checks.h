/* What must hold of the reduction kernels of every instruction set that this CPU has. Each check returns NULL, or what
 * is wrong. They are run by reduce_test.c, and by kernels_main.c where there is no Criterion (under an emulator). */
#ifndef GY_TESTS_KERNEL_CHECKS_H
#define GY_TESTS_KERNEL_CHECKS_H

#define GY_KERNEL_CHECKS(X)              \
    X(a_kernel_for_every_valid_pair)     \
    X(every_pair_of_special_values)      \
    X(every_pair_of_8_bit_values)        \
    X(every_16_bit_value)                \
    X(every_narrow_value_widens_exactly) \
    X(narrowing_rounds_to_nearest_even)  \
    X(any_count_and_alignment)           \
    X(many_sources)                      \
    X(into_any_source)                   \
    X(past_the_caches)                   \
    X(division)                          \
    X(multiplication_by_a_scalar)        \
    X(one_source_is_a_copy)              \
    X(order_is_left_to_right)            \
    X(narrow_sums_round_once_a_pass)     \
    X(stated_values)                     \
    X(error_stays_within_its_bound)      \
    X(the_caller_s_mode_changes_nothing)

#define GY_KERNEL_CHECK_DECLARE(name) const char *gy_check_##name(void);
GY_KERNEL_CHECKS(GY_KERNEL_CHECK_DECLARE)
#undef GY_KERNEL_CHECK_DECLARE

#endif
