# Communicators of communicators: on one host, over sockets, and on two "hosts" of one machine.
add_executable(divide_test divide_test.c)
target_include_directories(divide_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(divide_test PRIVATE gyre_compile gyre)
foreach(suite shapes many left lists)
  foreach(transport shm tcp)
    gyre_system_test(divide.${suite}.${transport} 220 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport} GYRE_STALL_TIMEOUT=2
      GYRE_LOG=error $<TARGET_FILE:gyre-run> -n 5 $<TARGET_FILE:divide_test> ${suite})
  endforeach()
  gyre_system_test(divide.${suite}.mixed 220 ${CMAKE_COMMAND} -E env GYRE_STALL_TIMEOUT=2 GYRE_LOG=error GYRE_SECRET=0123456789abcdef0123456789abcdef
    $<TARGET_FILE:gyre-run> -n 5 -- sh -c "GYRE_HOST_ID=h$((RANK%2)) exec $<TARGET_FILE:divide_test> ${suite}")
endforeach()
