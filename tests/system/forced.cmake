# What the user forces is for the user's calls: gyre's own go on, and it can be taken back. Two ranks have short ways of
# their own.
add_executable(forced_test forced_test.c)
target_include_directories(forced_test PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(forced_test PRIVATE gyre_compile gyre)
foreach(transport shm tcp)
  foreach(ranks 2 3)
    gyre_system_test(forced.${transport}.${ranks} 120 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport} GYRE_LOG=error
      $<TARGET_FILE:gyre-run> -n ${ranks} $<TARGET_FILE:forced_test> set)
  endforeach()
  gyre_system_test(forced.begun.${transport} 120 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport} GYRE_LOG=error
    GYRE_ALGORITHM=all_gather:direct_two_shot GYRE_VERIFY=3 $<TARGET_FILE:gyre-run> -n 3 $<TARGET_FILE:forced_test> begun)
endforeach()
gyre_system_test(forced.off 120 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,tcp GYRE_HIERARCHY=off GYRE_LOG=error
  $<TARGET_FILE:gyre-run> -n 3 $<TARGET_FILE:forced_test> set)
gyre_system_test(forced.mixed 120 ${CMAKE_COMMAND} -E env GYRE_LOG=error GYRE_SECRET=0123456789abcdef0123456789abcdef
  $<TARGET_FILE:gyre-run> -n 4 -- sh -c "GYRE_HOST_ID=h$((RANK%2)) exec $<TARGET_FILE:forced_test> set")
