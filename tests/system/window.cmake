# One-sided access: on one host, over sockets, and on two "hosts" of one machine.
add_executable(window_test window_test.c)
target_include_directories(window_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(window_test PRIVATE gyre_compile gyre)
foreach(suite access signals passive wrong booleans unmade late)
  set(settings GYRE_LOG=error)
  if(suite STREQUAL wrong OR suite STREQUAL late)
    list(APPEND settings GYRE_TIMEOUT=2) # longer than a rank waits for a core on a busy machine
  elseif(suite STREQUAL passive)
    list(APPEND settings GYRE_PROGRESS_THREAD=1)
  endif()
  foreach(transport shm tcp)
    gyre_system_test(window.${suite}.${transport} 100 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport} ${settings}
      $<TARGET_FILE:gyre-run> -n 3 $<TARGET_FILE:window_test> ${suite})
  endforeach()
  gyre_system_test(window.${suite}.mixed 100 ${CMAKE_COMMAND} -E env ${settings} GYRE_SECRET=0123456789abcdef0123456789abcdef
    $<TARGET_FILE:gyre-run> -n 4 -- sh -c "GYRE_HOST_ID=h$((RANK%2)) exec $<TARGET_FILE:window_test> ${suite}")
endforeach()
# gyre-run reports the rank that killed itself: what counts is that no other one complains.
foreach(transport shm tcp)
  add_test(NAME system.window.death.${transport} COMMAND ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport}
    $<TARGET_FILE:gyre-run> -n 3 $<TARGET_FILE:window_test> death)
  set_tests_properties(system.window.death.${transport} PROPERTIES TIMEOUT 60 FAIL_REGULAR_EXPRESSION "line [0-9]+:"
    PASS_REGULAR_EXPRESSION "rank 2 .* was ended by signal|rank 2 .*SIGKILL|rank 2 .*signal 9")
endforeach()
# One that is stopped while it holds a window's lock, or before it answers.
add_executable(window_stop_test window_stop_test.c)
target_include_directories(window_stop_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(window_stop_test PRIVATE gyre_compile gyre)
gyre_system_test(window.stopped.holder 60 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,shm $<TARGET_FILE:window_stop_test> holder)
gyre_system_test(window.stopped.hosts 60 $<TARGET_FILE:window_stop_test> hosts)
gyre_system_test(window.stopped.target 60 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,tcp $<TARGET_FILE:window_stop_test> target)
# A rank that waits for a window's lock, and is waited for on another host.
add_executable(window_slow_test window_slow_test.c)
target_include_directories(window_slow_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(window_slow_test PRIVATE gyre_compile gyre)
foreach(how taken own)
  gyre_system_test(window.slow.${how} 60 $<TARGET_FILE:window_slow_test> ${how})
endforeach()
# What a peer stores late, when a window has ended otherwise than by all ranks' destroying it.
add_executable(window_apart_test window_apart_test.c)
target_include_directories(window_apart_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(window_apart_test PRIVATE gyre_compile gyre Threads::Threads)
foreach(how failed gone reused threads)
  gyre_system_test(window.apart.${how} 60 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,shm $<TARGET_FILE:window_apart_test> ${how})
endforeach()
# One whose destruction is refused: the test refuses it, so it links the library's objects.
add_executable(window_refused_test window_refused_test.c)
target_include_directories(window_refused_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(window_refused_test PRIVATE gyre_internal)
target_link_options(window_refused_test PRIVATE LINKER:--wrap=gy_run_own)
foreach(transport shm tcp)
  gyre_system_test(window.refused.${transport} 60 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport} GYRE_LOG=error
    $<TARGET_FILE:gyre-run> -n 3 $<TARGET_FILE:window_refused_test>)
endforeach()
# One rank destroys the communicator, and with it the window that others use, and all else goes on.
add_executable(window_gone_test window_gone_test.c)
target_include_directories(window_gone_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(window_gone_test PRIVATE gyre_compile gyre)
foreach(how put accumulate signal flush get wait putting adding getting)
  foreach(transport shm tcp)
    gyre_system_test(window.gone.${how}.${transport} 100 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport}
      $<TARGET_FILE:window_gone_test> ${how})
  endforeach()
endforeach()
foreach(how putting adding getting)
  gyre_system_test(window.gone.${how}.sealed 100 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,tcp GYRE_INTEGRITY=encrypt
    $<TARGET_FILE:window_gone_test> ${how})
endforeach()

# Parts of different kinds of memory: links open at both ends where either side needs them.
add_executable(window_mixed_test window_mixed_test.c)
target_include_directories(window_mixed_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(window_mixed_test PRIVATE gyre_compile gyre Threads::Threads)
foreach(ranks 1 2 3 4)
  foreach(transport shm tcp)
    gyre_system_test(window.memories.${transport}.${ranks} 60 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport}
      $<TARGET_FILE:gyre-run> -n ${ranks} $<TARGET_FILE:window_mixed_test>)
    gyre_system_test(window.memories.threads.${transport}.${ranks} 60 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport}
      $<TARGET_FILE:window_mixed_test> ${ranks})
  endforeach()
endforeach()
