# Uniform ends: uniform_test launches its ranks itself; what each scenario does stands at its head.
add_executable(uniform_test uniform_test.c)
target_include_directories(uniform_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(uniform_test PRIVATE gyre_compile gyre)
foreach(transport shm tcp)
  set(with ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=${transport} $<TARGET_FILE:uniform_test>)
  gyre_system_test(uniform.settings.${transport} 90 ${with} settings 3)
  gyre_system_test(uniform.kill.${transport} 120 ${with} kill 5)
  gyre_system_test(uniform.leave.${transport} 120 ${with} leave 3)
endforeach()
gyre_system_test(uniform.kill.mixed 120 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=shm,tcp $<TARGET_FILE:uniform_test> kill 4 2)
# On shm a root waits for its readers: nobody succeeds before it.
gyre_system_test(uniform.siblings 90 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=tcp $<TARGET_FILE:uniform_test> siblings 4)
