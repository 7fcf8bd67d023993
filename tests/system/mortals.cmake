# Tests in which processes die, are stopped or come late: they launch them themselves (mortals.c). What each scenario
# does stands at the test's head.
add_library(mortals OBJECT mortals.c)
target_include_directories(mortals PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(mortals PRIVATE gyre_compile gyre)
foreach(test recovery grow uniform)
  add_executable(${test}_test ${test}_test.c $<TARGET_OBJECTS:mortals>)
  target_include_directories(${test}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${test}_test PRIVATE gyre_compile gyre)
  # the library calls the program's own send, recv and connect
  set_target_properties(${test}_test PROPERTIES ENABLE_EXPORTS ON)
endforeach()

target_sources(grow_test PRIVATE grow_world.c grow_stops.c)

# program, name, settings, then scenario, ranks and hosts
function(gyre_mortal_test program name settings)
  gyre_system_test(${program}.${name} 250 ${CMAKE_COMMAND} -E env ${settings} $<TARGET_FILE:${program}_test> ${ARGN})
endfunction()
