# What `cmake --install` puts where: libraries, public headers, programs, manual pages, and the two ways to find them,
# pkg-config (gyre.pc, gyre-nn.pc) and find_package(gyre). Both kinds of consumer are built by tests/install. Components
# are the packages of GyrePackage.cmake.
include(CMakePackageConfigHelpers)

set(gyre_libraries gyre)
if(TARGET gyre_nn)
  list(APPEND gyre_libraries gyre_nn)
endif()
foreach(library ${gyre_libraries})
  # Found beside each other, wherever the tree was installed or copied to.
  set_target_properties(${library} PROPERTIES INSTALL_RPATH "$ORIGIN")
endforeach()
foreach(library ${gyre_libraries})
  string(REPLACE "_" "-" name ${library})
  install(TARGETS ${library} EXPORT gyreTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          COMPONENT lib${name}${GYRE_SOVERSION} NAMELINK_COMPONENT libgyre-dev)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/gyre DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libgyre-dev FILES_MATCHING PATTERN "*.h")

file(RELATIVE_PATH gyre_bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
foreach(program gyre-run gyre-info gyre-top gyre-train gyre-perf gyre-tune)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${gyre_bin_to_lib}")
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT gyre-tools)
  endif()
endforeach()
foreach(library openmpi mpich) # what is preloaded: bindings/mpi
  if(TARGET gyre-mpi-${library})
    install(TARGETS gyre-mpi-${library} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT gyre-mpi-${library})
  endif()
endforeach()

file(GLOB gyre_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.1)
install(FILES ${gyre_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT gyre-tools)
include(GyreManual)
foreach(section 3 7)
  install(DIRECTORY ${gyre_manual}/gyre/ ${gyre_manual}/cuda/ ${gyre_manual}/nn/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
          COMPONENT libgyre-dev FILES_MATCHING PATTERN "*.${section}")
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)

file(RELATIVE_PATH gyre_pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(library ${gyre_libraries})
  string(REPLACE "_" "-" module ${library})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${module}.pc.in ${PROJECT_BINARY_DIR}/${module}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${module}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libgyre-dev)
endforeach()

set(gyre_package ${CMAKE_INSTALL_LIBDIR}/cmake/gyre)
install(EXPORT gyreTargets NAMESPACE gyre:: DESTINATION ${gyre_package} COMPONENT libgyre-dev)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/gyreConfig.cmake.in ${PROJECT_BINARY_DIR}/gyreConfig.cmake
                              INSTALL_DESTINATION ${gyre_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gyreConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gyreConfig.cmake ${PROJECT_BINARY_DIR}/gyreConfigVersion.cmake DESTINATION ${gyre_package}
        COMPONENT libgyre-dev)
include(GyrePackage)
