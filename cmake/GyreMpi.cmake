# The MPI libraries for which bindings/mpi has an interposer: for each that has its compiler wrapper here
# GYRE_MPICC_<library> and the interface library gyre_mpi_<library>, with its include folders and what is linked; and
# GYRE_MPIFORT_<library> where it compiles Fortran.
include_guard(GLOBAL)

# The include folders and libraries of a compiler wrapper, as it prints them.
function(gyre_mpi_library library)
  execute_process(COMMAND ${GYRE_MPICC_${library}} -show OUTPUT_VARIABLE line OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(words UNIX_COMMAND "${line}")
  add_library(gyre_mpi_${library} INTERFACE)
  foreach(word ${words})
    if(word MATCHES "^-I(.+)")
      target_include_directories(gyre_mpi_${library} SYSTEM INTERFACE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-[lL]")
      target_link_libraries(gyre_mpi_${library} INTERFACE ${word})
    endif()
  endforeach()
endfunction()

find_program(GYRE_GFORTRAN gfortran)
foreach(library openmpi mpich)
  find_program(GYRE_MPICC_${library} mpicc.${library})
  if(GYRE_MPICC_${library})
    gyre_mpi_library(${library})
    if(GYRE_GFORTRAN)
      find_program(GYRE_MPIFORT_${library} mpifort.${library})
    endif()
  endif()
endforeach()
