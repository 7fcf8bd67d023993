# What GYRE_ALGORITHM forces, and what is chosen without it: with and without shared memory, few ranks and enough for
# Bruck.
add_executable(choice_test choice_test.c)
target_include_directories(choice_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(choice_test PRIVATE gyre_compile gyre)
foreach(place shm=shm tcp=links)
  string(REPLACE "=" ";" pair ${place})
  list(GET pair 0 transport)
  list(GET pair 1 reach)
  gyre_system_test(choice.${transport} 200 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport} GYRE_LOG=error
    $<TARGET_FILE:gyre-run> -n 3 $<TARGET_FILE:choice_test> ${reach})
endforeach()
gyre_system_test(choice.mixed 200 ${CMAKE_COMMAND} -E env GYRE_LOG=error GYRE_SECRET=0123456789abcdef0123456789abcdef
  $<TARGET_FILE:gyre-run> -n 3 -- sh -c "GYRE_HOST_ID=h$((RANK%2)) exec $<TARGET_FILE:choice_test> groups")
gyre_system_test(choice.part 200 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,tcp GYRE_LOG=error GYRE_SECRET=0123456789abcdef0123456789abcdef
  $<TARGET_FILE:gyre-run> -n 6 -- sh -c "GYRE_HOST_ID=h$((RANK<4?0:RANK)) exec $<TARGET_FILE:choice_test> part")
gyre_system_test(choice.hosts 200 ${CMAKE_COMMAND} -E env GYRE_LOG=error GYRE_SECRET=0123456789abcdef0123456789abcdef
  $<TARGET_FILE:gyre-run> -n 3 -- sh -c "GYRE_HOST_ID=h$RANK exec $<TARGET_FILE:choice_test> hosts")
gyre_system_test(choice.many 200 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,tcp
  $<TARGET_FILE:gyre-run> -n 17 $<TARGET_FILE:choice_test> links)
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
if(cores GREATER 1) # four ranks of a host with two cores, however many this one has
  gyre_system_test(choice.crowded 200 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,tcp GYRE_LOG=error
    taskset -c 0,1 $<TARGET_FILE:gyre-run> -n 4 $<TARGET_FILE:choice_test> crowded)
endif()
foreach(reach tcp=sockets rdma,tcp=more) # RDMA that is wanted counts, be there a device or not
  string(REPLACE "=" ";" pair ${reach})
  list(GET pair 0 transports)
  list(GET pair 1 place)
  gyre_system_test(choice.${place} 200 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transports} GYRE_LOG=error
    $<TARGET_FILE:gyre-run> -n 2 $<TARGET_FILE:choice_test> ${place})
endforeach()
