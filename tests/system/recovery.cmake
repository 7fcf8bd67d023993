# Recovery: revoke, agree, shrink.
foreach(transport shm tcp)
  set(on GYRE_TRANSPORT=${transport})
  gyre_mortal_test(recovery calls.${transport} "${on}" calls 3)
  gyre_mortal_test(recovery calls.alone.${transport} "${on}" calls 1)
  gyre_mortal_test(recovery one.${transport} "${on}" one 8)
  gyre_mortal_test(recovery agree.${transport} "${on}" agree 4)
  gyre_mortal_test(recovery more.${transport} "${on};GYRE_TEST_DEATHS=42" more 8)
  gyre_mortal_test(recovery frozen.${transport} "${on};GYRE_TEST_DEATHS=3;GYRE_STALL_TIMEOUT=2;GYRE_TIMEOUT=6" frozen 3)
endforeach()
gyre_mortal_test(recovery halts "GYRE_TRANSPORT=shm,tcp;GYRE_TEST_DEATHS=2;GYRE_STALL_TIMEOUT=2;GYRE_TIMEOUT=4" halts 4 2)
gyre_mortal_test(recovery severed GYRE_TRANSPORT=shm severed 2)
gyre_mortal_test(recovery one.mixed GYRE_TRANSPORT=shm,tcp one 6 3)
gyre_mortal_test(recovery more.mixed "GYRE_TRANSPORT=shm,tcp;GYRE_TEST_DEATHS=42" more 8 2)
gyre_mortal_test(recovery calls.encrypt "GYRE_TRANSPORT=tcp;GYRE_INTEGRITY=encrypt" calls 4)

add_executable(cut_test cut_test.c)
target_include_directories(cut_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(cut_test PRIVATE gyre_compile gyre)
gyre_system_test(recovery.cut 300 ${here}/cut_test.sh $<TARGET_FILE:cut_test>)

# Every allocation of one rank fails, so this links the library's objects.
add_executable(recovery_memory_test recovery_memory_test.c)
target_include_directories(recovery_memory_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(recovery_memory_test PRIVATE gyre_internal)
foreach(victim 0 2)
  gyre_system_test(recovery.memory.shm.${victim} 120 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=shm $<TARGET_FILE:recovery_memory_test> ${victim})
endforeach()
gyre_system_test(recovery.memory.tcp.1 120 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=tcp $<TARGET_FILE:recovery_memory_test> 1)

# The same deaths in a memory cgroup that is full: tests/system/pressure_test.sh.
gyre_system_test(recovery.pressure 120 ${here}/pressure_test.sh $<TARGET_FILE:recovery_test> $<TARGET_FILE:gyre> 24 ${CMAKE_CURRENT_BINARY_DIR})
