# Run by cpack between installing aside and packing: each package gets its licence and the list of changes, and what
# Debian wants compressed is.
set(source ${CMAKE_CURRENT_LIST_DIR}/..)
file(READ ${source}/LICENSE licence)
string(REGEX REPLACE "\n\n" "\n.\n" licence "${licence}")
string(REGEX REPLACE "\n([^\n])" "\n \\1" licence "${licence}")
string(STRIP "${licence}" licence)
foreach(package ${CPACK_COMPONENTS_ALL})
  set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${package}/usr)
  if(NOT EXISTS ${root})
    message(FATAL_ERROR "nothing was installed for the package ${package}: ${root} is not there")
  endif()
  set(documents ${root}/share/doc/${package})
  file(WRITE ${documents}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: gyre

Files: *
Copyright: 2026 the gyre authors
License: Expat
 ${licence}
")
  file(COPY ${source}/CHANGELOG.md DESTINATION ${documents})
  file(RENAME ${documents}/CHANGELOG.md ${documents}/changelog)
  # The list of changes in Debian's own form: one entry for the package.
  string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE ${documents}/changelog.Debian "gyre (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * See the changelog of gyre.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
  file(GLOB_RECURSE pages ${root}/share/man/*)
  foreach(file ${documents}/changelog ${documents}/changelog.Debian ${pages})
    execute_process(COMMAND gzip -9n ${file} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(GLOB_RECURSE entries LIST_DIRECTORIES true ${root}/*)
  foreach(entry ${root} ${entries})
    if(IS_SYMLINK ${entry})
    elseif(IS_DIRECTORY ${entry} OR entry MATCHES "/bin/")
      file(CHMOD ${entry} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    else()
      file(CHMOD ${entry} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
    endif()
  endforeach()
endforeach()
