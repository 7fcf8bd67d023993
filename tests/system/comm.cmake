# One rank destroys a communicator that others still use, and all else goes on.
add_executable(comm_gone_test comm_gone_test.c)
target_include_directories(comm_gone_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(comm_gone_test PRIVATE gyre_compile gyre)
foreach(how all_reduce long heap broadcast to_all barrier started kept send isend recv alone both chain sent last pending)
  foreach(transport shm tcp)
    gyre_system_test(comm.gone.${how}.${transport} 100 ${CMAKE_COMMAND} -E env GYRE_TRANSPORT=self,${transport}
      $<TARGET_FILE:comm_gone_test> ${how})
  endforeach()
  gyre_system_test(comm.gone.${how}.hosts 100 $<TARGET_FILE:comm_gone_test> ${how} hosts)
endforeach()
foreach(how all_reduce long send recv)
  gyre_system_test(comm.gone.${how}.driven 100 ${CMAKE_COMMAND} -E env GYRE_PROGRESS_THREAD=1 $<TARGET_FILE:comm_gone_test> ${how})
endforeach()
