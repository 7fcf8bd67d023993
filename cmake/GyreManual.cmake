# The manual pages that are made when gyre is built: section 3 from the comments of the public headers and the
# examples of docs/man/examples, the overviews from the headers, the settings from the
# table that `gyre-info --config` prints. docs/man/pages.py makes them; tests/install/manual.py checks them.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(gyre_manual ${PROJECT_BINARY_DIR}/man)
set(gyre_pages_py ${PROJECT_SOURCE_DIR}/docs/man/pages.py)
set(gyre_manual_stamps "")
foreach(header gyre cuda nn)
  set(source ${PROJECT_SOURCE_DIR}/include/gyre/${header}.h)
  add_custom_command(OUTPUT ${gyre_manual}/${header}.stamp
    COMMAND Python3::Interpreter ${gyre_pages_py} ${source} ${gyre_manual}/${header} ${PROJECT_VERSION}
    COMMAND ${CMAKE_COMMAND} -E touch ${gyre_manual}/${header}.stamp
    DEPENDS ${gyre_pages_py} ${source} ${PROJECT_SOURCE_DIR}/include/gyre/gyre.h ${PROJECT_SOURCE_DIR}/docs/man/examples/${header}.c VERBATIM)
  list(APPEND gyre_manual_stamps ${gyre_manual}/${header}.stamp)
endforeach()
# The table is in the program, so the program must run here: not so with sanitizers, nor for another machine without an
# emulator.
if(NOT GYRE_SANITIZE AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
  set(settings ${gyre_manual}/gyre/gyre-environment.7)
  add_custom_command(OUTPUT ${gyre_manual}/settings.stamp
    COMMAND gyre-info --config > ${gyre_manual}/settings.txt
    COMMAND Python3::Interpreter ${gyre_pages_py} --settings ${gyre_manual}/gyre ${PROJECT_VERSION} < ${gyre_manual}/settings.txt
    COMMAND ${CMAKE_COMMAND} -E touch ${gyre_manual}/settings.stamp
    DEPENDS gyre-info ${gyre_pages_py} ${gyre_manual}/gyre.stamp VERBATIM)
  list(APPEND gyre_manual_stamps ${gyre_manual}/settings.stamp)
endif()
add_custom_target(gyre-manual ALL DEPENDS ${gyre_manual_stamps})
