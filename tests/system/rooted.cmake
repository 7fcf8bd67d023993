# Broadcasts and reductions to a root that run inside the blocking call.
add_executable(rooted_test rooted_test.c)
target_include_directories(rooted_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(rooted_test PRIVATE gyre_compile gyre)
set_target_properties(rooted_test PROPERTIES ENABLE_EXPORTS ON) # the library calls the program's own sched_getaffinity
foreach(read 0 1)
  gyre_system_test(rooted.order.${read} 95 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,shm GYRE_SHM_READ=${read}
    $<TARGET_FILE:rooted_test> order)
endforeach()
foreach(what away dies aborts late)
  gyre_system_test(rooted.${what} 100 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,shm $<TARGET_FILE:rooted_test> ${what})
endforeach()
