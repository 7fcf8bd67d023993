# Operands in memory of gyre are read in place: with few and many ranks, on one host.
add_executable(mapped_test mapped_test.c)
target_include_directories(mapped_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(mapped_test PRIVATE gyre_exact gyre_compile gyre m)
foreach(ranks 2 3 5)
  gyre_system_test(mapped.${ranks} 110 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,shm $<TARGET_FILE:gyre-run> -n ${ranks}
    $<TARGET_FILE:mapped_test>)
endforeach()
