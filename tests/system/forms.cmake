# The forms of calls: with counts, from point to point, persistent, operations of one's own, programs of all of them.
foreach(test varying_test programs_test messages_test persistent_test operations_test refused_test swap_test quiet_test)
  add_executable(${test} ${test}.c trial.c)
  target_include_directories(${test} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${test} PRIVATE gyre_exact gyre_compile gyre m)
endforeach()
target_sources(programs_test PRIVATE programs_operations.c)
target_sources(swap_test PRIVATE meddler.c)
target_sources(quiet_test PRIVATE meddler.c)

# NAME, seconds, number of ranks, test and its arguments: on one host, over sockets, and on two "hosts" of one machine.
function(gyre_forms_test name seconds ranks test)
  string(REPLACE ";" " " arguments "${ARGN}")
  foreach(transport shm tcp)
    gyre_system_test(${name}.${transport} ${seconds} ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport} GYRE_LOG=error
      $<TARGET_FILE:gyre-run> -n ${ranks} $<TARGET_FILE:${test}> ${ARGN})
  endforeach()
  gyre_system_test(${name}.mixed ${seconds} ${CMAKE_COMMAND} -E env GYRE_LOG=error GYRE_SECRET=0123456789abcdef0123456789abcdef
    $<TARGET_FILE:gyre-run> -n ${ranks} -- sh -c "GYRE_HOST_ID=h$((RANK%2)) exec $<TARGET_FILE:${test}> ${arguments}")
endfunction()

foreach(ranks 1 2 3 5 9)
  gyre_forms_test(varying.${ranks} 300 ${ranks} varying_test all)
endforeach()
foreach(where shm tcp mixed)
  gyre_label(exhaustive system.varying.9.${where})
endforeach()
gyre_forms_test(varying.disagree.small 60 3 varying_test disagree 10)
gyre_forms_test(varying.disagree.large 60 3 varying_test disagree 100000)
gyre_forms_test(varying.differ 60 3 varying_test differ)

foreach(ranks 1 2 3 4 6)
  gyre_forms_test(programs.${ranks} 130 ${ranks} programs_test)
endforeach()

gyre_forms_test(refused 90 3 refused_test ${PROJECT_SOURCE_DIR}/tests/install/exports.txt)

foreach(suite sizes many early group)
  gyre_forms_test(messages.${suite} 120 3 messages_test ${suite})
endforeach()
foreach(what count count_late type small small_late large large_late large_early both timeout)
  gyre_forms_test(messages.${what} 60 3 messages_test ${what})
endforeach()
foreach(transport shm tcp)
  gyre_system_test(messages.death.${transport} 60 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport}
    $<TARGET_FILE:messages_test> death)
endforeach()

foreach(order shape canonical)
  gyre_system_test(swap.${order} 200 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=tcp GYRE_ORDER=${order} $<TARGET_FILE:gyre-run> -n 2 $<TARGET_FILE:swap_test> results)
endforeach()
gyre_system_test(swap.memory 200 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=tcp $<TARGET_FILE:gyre-run> -n 2 $<TARGET_FILE:swap_test> memory)
# the library calls the program's own send and recv
set_target_properties(swap_test quiet_test PROPERTIES ENABLE_EXPORTS ON)
foreach(what kinds parts calls waits credit roots)
  gyre_system_test(swap.${what} 200 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=tcp GYRE_LOG=error $<TARGET_FILE:gyre-run> -n 2 $<TARGET_FILE:swap_test> ${what})
endforeach()
foreach(what late leaf root message request signal agree shrink grow threads forked)
  gyre_system_test(quiet.${what} 100 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=tcp GYRE_LOG=error $<TARGET_FILE:gyre-run> -n 2 $<TARGET_FILE:quiet_test> ${what})
endforeach()
foreach(what late request computes agree)
  gyre_system_test(quiet.${what}.driven 100 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=tcp GYRE_LOG=error GYRE_PROGRESS_THREAD=1
    $<TARGET_FILE:gyre-run> -n 2 $<TARGET_FILE:quiet_test> ${what})
endforeach()
# The slot that was not asked for, and a shorter one.
foreach(slot default 65536)
  set(asked ${slot})
  set(longest ${slot})
  if(slot STREQUAL default)
    set(asked)
    set(longest 1048576)
  endif()
  gyre_system_test(swap.sockets.${slot} 200 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=tcp GYRE_SHM_SLOT=${asked} GYRE_LOG=error
    $<TARGET_FILE:gyre-run> -n 2 $<TARGET_FILE:swap_test> sockets ${longest})
endforeach()
gyre_system_test(swap.sealed 200 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=tcp GYRE_INTEGRITY=encrypt $<TARGET_FILE:gyre-run> -n 2 $<TARGET_FILE:swap_test> kinds)
gyre_system_test(swap.disagree 200 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=tcp GYRE_LOG=error $<TARGET_FILE:gyre-run> -n 2 $<TARGET_FILE:swap_test> disagree)

foreach(suite order misuse destroyed)
  gyre_forms_test(persistent.${suite} 90 3 persistent_test ${suite})
endforeach()
foreach(suite average scaled crossed wrong)
  gyre_forms_test(operations.${suite} 90 3 operations_test ${suite})
endforeach()
foreach(ranks 1 2 3 5)
  gyre_forms_test(operations.own.${ranks} 90 ${ranks} operations_test own)
endforeach()

find_package(Threads REQUIRED)
add_executable(worlds_test worlds_test.c)
target_include_directories(worlds_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(worlds_test PRIVATE gyre_compile gyre Threads::Threads)
foreach(transport shm tcp)
  foreach(threaded 0 1)
    gyre_system_test(worlds.${transport}.${threaded} 110 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport}
      GYRE_PROGRESS_THREAD=${threaded} $<TARGET_FILE:worlds_test>)
    set_tests_properties(system.worlds.${transport}.${threaded} PROPERTIES LABELS tsan)
  endforeach()
endforeach()

add_executable(huge_test huge_test.c)
target_include_directories(huge_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(huge_test PRIVATE gyre_compile gyre)
# Counts beyond 2^32, in little memory but not in little time: a stage of .ci/run.
option(GYRE_TEST_HUGE "Run the tests of counts beyond 2^32" OFF)
if(GYRE_TEST_HUGE)
  foreach(transport shm tcp)
    gyre_system_test(huge.${transport} 300 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport}
      $<TARGET_FILE:gyre-run> -n 2 $<TARGET_FILE:huge_test>)
  endforeach()
endif()

# Every collective by every algorithm where some links are shared memory and some are TCP.
gyre_system_test(sweep.mixed 300 ${here}/sweep_test.sh $<TARGET_FILE:gyre-run> $<TARGET_FILE:sweep_test> mixed 3)
gyre_system_test(sweep.mixed.short 300 ${short} ${here}/sweep_test.sh $<TARGET_FILE:gyre-run> $<TARGET_FILE:sweep_test> mixed 3)
gyre_label(exhaustive system.sweep.mixed)
gyre_label(short system.sweep.mixed.short)
