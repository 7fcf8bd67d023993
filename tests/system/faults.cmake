# Faults. fault_test launches its ranks itself; what each scenario does stands at its head. All but the last two measure
# time, or must not take a busy machine for a missing rank: they run alone.
add_executable(fault_test fault_test.c fault_calls.c fault_noise.c fault_ranks.c fault_times.c fault_traces.c)
target_include_directories(fault_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(fault_test PRIVATE gyre_compile gyre)
set_target_properties(fault_test PROPERTIES ENABLE_EXPORTS ON) # the library asks the program for the time

# name, seconds, settings, then scenario and ranks
function(gyre_fault_test name seconds settings)
  add_test(NAME system.fault.${name} COMMAND ${CMAKE_COMMAND} -E env ${settings} $<TARGET_FILE:fault_test> ${ARGN})
  set_tests_properties(system.fault.${name} PROPERTIES TIMEOUT ${seconds})
  if(NOT name MATCHES "^(stop|straggler)")
    set_tests_properties(system.fault.${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
endfunction()

foreach(transport shm tcp)
  set(on GYRE_TRANSPORT=${transport})
  gyre_fault_test(kills.${transport} 300 "${on}" kills 4)
  gyre_fault_test(kills.many.${transport} 300 "${on}" many 64)
  gyre_fault_test(computing.${transport} 200 "${on}" computing 12)
  gyre_fault_test(forked.${transport} 200 "${on}" forked 4)
  gyre_fault_test(boot.${transport} 300 "${on};GYRE_MEET_TIMEOUT=60" boot 4)
  gyre_fault_test(destroy.${transport} 300 "${on}" destroy 8)
  gyre_fault_test(stop.${transport} 150 "${on};GYRE_STALL_TIMEOUT=5;GYRE_TIMEOUT=10" stop 4)
  gyre_fault_test(straggler.${transport} 200 "${on};GYRE_STALL_TIMEOUT=4" straggler 3)
endforeach()
gyre_fault_test(kills.mixed 300 GYRE_TRANSPORT=shm,tcp mixed 4)
gyre_fault_test(computing.distant 150 "GYRE_TRANSPORT=tcp;GYRE_ALGORITHM=all_reduce:binary_tree" distant 16)

# A rank that has sent all that is needed may leave.
add_executable(farewell_test farewell_test.c)
target_include_directories(farewell_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(farewell_test PRIVATE gyre_compile gyre)
# the library calls the program's own recv and epoll_wait
set_target_properties(farewell_test PROPERTIES ENABLE_EXPORTS ON)
add_test(NAME system.left.farewell COMMAND ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=tcp $<TARGET_FILE:farewell_test>)
set_tests_properties(system.left.farewell PROPERTIES TIMEOUT 90)

# Leaving is no fault, but a rank that cannot go on because of it fails, and must know the first rank that left.
add_executable(left_test left_test.c)
target_include_directories(left_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(left_test PRIVATE gyre_compile gyre)
foreach(transport shm tcp)
  foreach(what destroy linger abort exit window signal)
    add_test(NAME system.left.${what}.${transport}
      COMMAND ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=${transport} $<TARGET_FILE:left_test> ${what})
    set_tests_properties(system.left.${what}.${transport} PROPERTIES TIMEOUT 90)
  endforeach()
endforeach()
# 64 leave at once: a rank that has sent its leave message is not declared dead, however late the others read it.
# (Sanitized, they take gigabytes.)
foreach(transport shm tcp)
  if(NOT GYRE_SANITIZE)
    add_test(NAME system.left.crowd.${transport} COMMAND ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=${transport}
      sh -c "for i in 1 2 3; do '$<TARGET_FILE:gyre-run>' -n 64 '$<TARGET_FILE:example_all_reduce>' >/dev/null || exit 1; done")
    set_tests_properties(system.left.crowd.${transport} PROPERTIES TIMEOUT 90)
  endif()
  # A waiting rank sleeps: 4 ranks, one of which computes.
  add_test(NAME system.waiting.${transport} COMMAND ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=${transport}
    $<TARGET_FILE:gyre-run> -n 4 $<TARGET_FILE:gyre-waiting> 250 1)
  set_tests_properties(system.waiting.${transport} PROPERTIES TIMEOUT 240)
endforeach()
