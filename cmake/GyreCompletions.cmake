# The completions of bash and zsh, made by scripts/completions from the --help of the programs. So the programs must run
# here: not so with sanitizers, nor for another machine without an emulator.
include(GNUInstallDirs)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(gyre_completions ${PROJECT_BINARY_DIR}/completions)
set(gyre_completed "")
foreach(program gyre-run gyre-info gyre-top gyre-train gyre-perf gyre-tune)
  if(TARGET ${program})
    list(APPEND gyre_completed ${program})
  endif()
endforeach()
if(NOT GYRE_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  set(gyre_completed_files "")
  foreach(program ${gyre_completed})
    list(APPEND gyre_completed_files $<TARGET_FILE:${program}>)
  endforeach()
  add_custom_command(OUTPUT ${gyre_completions}/stamp
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/completions ${gyre_completions} ${gyre_completed_files}
    COMMAND ${CMAKE_COMMAND} -E touch ${gyre_completions}/stamp
    DEPENDS ${PROJECT_SOURCE_DIR}/scripts/completions ${gyre_completed} VERBATIM)
  add_custom_target(gyre-completions ALL DEPENDS ${gyre_completions}/stamp)
  install(DIRECTORY ${gyre_completions}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          COMPONENT gyre-tools)
  install(DIRECTORY ${gyre_completions}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
          COMPONENT gyre-tools)
endif()
