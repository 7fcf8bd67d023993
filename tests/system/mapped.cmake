# Operands in memory of gyre are read in place: with few and many ranks, on one host.
add_executable(mapped_test mapped_test.c)
target_include_directories(mapped_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(mapped_test PRIVATE gyre_exact gyre_compile gyre m)
foreach(ranks 2 3 5)
  gyre_system_test(mapped.${ranks} 110 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,shm $<TARGET_FILE:gyre-run> -n ${ranks}
    $<TARGET_FILE:mapped_test>)
endforeach()
# What is read through the kernel.
add_executable(fetch_test fetch_test.c order_data.c)
target_include_directories(fetch_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(fetch_test PRIVATE gyre_compile gyre)
set_target_properties(fetch_test PROPERTIES ENABLE_EXPORTS ON) # the library calls the program's own process_vm_readv
foreach(what withdrawn unreadable unproved crowded slow preferred all)
  gyre_system_test(mapped.${what} 60 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,shm $<TARGET_FILE:fetch_test> ${what})
endforeach()
# What is written past the caches, by either question to the clock.
add_executable(past_test past_test.c)
target_include_directories(past_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(past_test PRIVATE gyre_internal)
foreach(function input publish exchange begin end)
  target_link_options(past_test PRIVATE LINKER:--wrap=gy_tuner_${function})
endforeach()
target_link_options(past_test PRIVATE LINKER:--wrap=gy_copy_stream,--wrap=gy_copy_both,--wrap=gy_combine_into,--wrap=gy_stream_fence)
foreach(read 0 1)
  gyre_system_test(mapped.past.${read} 70 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,shm GYRE_SHM_READ=${read} $<TARGET_FILE:past_test>)
endforeach()
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
if(cores GREATER 1) # two of them, however many this machine has
  gyre_system_test(mapped.past.crowded 70 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,shm taskset -c 0,1 $<TARGET_FILE:past_test> crowded)
endif()
# Every way of giving that the clock may choose.
add_executable(ways_system_test ways_test.c)
target_include_directories(ways_system_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(ways_system_test PRIVATE gyre_compile gyre)
# the library calls the program's own sched_getaffinity
set_target_properties(ways_system_test PROPERTIES ENABLE_EXPORTS ON)
foreach(ranks 2 3)
  gyre_system_test(mapped.ways.${ranks} 120 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,shm $<TARGET_FILE:ways_system_test> ${ranks})
endforeach()
# What is shown in the pass that takes something else.
add_executable(one_pass_test one_pass_test.c)
target_include_directories(one_pass_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(one_pass_test PRIVATE gyre_internal)
target_link_options(one_pass_test PRIVATE
  LINKER:--wrap=gy_topology_last_cache,--wrap=gy_tuner_publish,--wrap=gy_cores_same,--wrap=gy_copy_both)
gyre_system_test(mapped.one_pass 100 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,shm $<TARGET_FILE:one_pass_test>)
