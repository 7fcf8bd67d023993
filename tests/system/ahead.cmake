# Ranks that do not wait in short collectives with a root, as they do where they share cores.
add_executable(ahead_test ahead_test.c)
target_include_directories(ahead_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(ahead_test PRIVATE gyre_compile gyre)
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
if(cores GREATER 1) # three and four ranks of a host with two cores, however many this one has
  foreach(what alone order many leave part die differ)
    gyre_system_test(ahead.${what} 140 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,shm taskset -c 0,1
      $<TARGET_FILE:ahead_test> ${what})
  endforeach()
endif()
