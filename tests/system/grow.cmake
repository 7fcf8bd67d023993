# Growing: newcomers, and deaths meanwhile. grow_test launches its processes itself; what each scenario does stands at its head.
add_executable(grow_test grow_test.c)
target_include_directories(grow_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(grow_test PRIVATE gyre_compile gyre)

# name, settings, then scenario, ranks and hosts
function(gyre_grow_test name settings)
  gyre_system_test(grow.${name} 120 ${CMAKE_COMMAND} -E env ${settings} $<TARGET_FILE:grow_test> ${ARGN})
endfunction()

foreach(transport shm tcp)
  gyre_grow_test(plain.${transport} GYRE_TRANSPORT=${transport} plain)
  gyre_grow_test(changes.${transport} GYRE_TRANSPORT=${transport} changes 3)
endforeach()
gyre_grow_test(alone "GYRE_TRANSPORT=shm,tcp;GYRE_TEST_ROUNDS=4" changes 1)
gyre_grow_test(heirs "GYRE_TRANSPORT=shm,tcp;GYRE_TEST_ROUNDS=6" heirs 3 2)
gyre_grow_test(refused GYRE_TRANSPORT=tcp refused 2)
gyre_grow_test(encrypt "GYRE_TRANSPORT=tcp;GYRE_INTEGRITY=encrypt;GYRE_TEST_ROUNDS=6" changes 3)
gyre_grow_test(frozen "GYRE_TRANSPORT=shm,tcp;GYRE_STALL_TIMEOUT=2;GYRE_TIMEOUT=6" frozen 3)
