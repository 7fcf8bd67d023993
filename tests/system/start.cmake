# Starts that find what the others have shown.
add_executable(start_test start_test.c)
target_include_directories(start_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(start_test PRIVATE gyre_compile gyre)
foreach(what last behind several full dies gone)
  gyre_system_test(start.${what} 60 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,shm GYRE_PROGRESS_THREAD=0
    $<TARGET_FILE:start_test> ${what})
endforeach()
