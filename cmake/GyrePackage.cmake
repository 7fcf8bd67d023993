# `cpack -G DEB`: the packages libgyre1, libgyre-nn1, libgyre-dev and gyre-tools, gyre-mpi-openmpi and gyre-mpi-mpich
# where those MPI libraries are, and libgyre-cuda1 where nvcc is. Build them with the preset "package", for /usr;
# scripts/package does,
# and tests/install/package_test.sh installs them aside and uses them.
#
# Libraries are named by SONAME, as Debian wants it, so that two interfaces can be installed side by side: libgyre1
# holds libgyre.so.1. Everything that belongs to no interface in particular (headers, the .so links, manual pages) is in
# libgyre-dev, programs are in gyre-tools.
set(gyre_runtime libgyre${GYRE_SOVERSION})
set(gyre_nn_runtime libgyre-nn${GYRE_SOVERSION})
set(gyre_packages ${gyre_runtime} ${gyre_nn_runtime} libgyre-dev gyre-tools)
set(gyre_mpi_packages "")
foreach(library openmpi mpich)
  if(TARGET gyre-mpi-${library})
    list(APPEND gyre_mpi_packages gyre-mpi-${library})
  endif()
endforeach()
list(APPEND gyre_packages ${gyre_mpi_packages})
set(gyre_cuda_package "")
if(TARGET gyre_cuda)
  set(gyre_cuda_package libgyre-cuda${GYRE_SOVERSION})
endif()
list(APPEND gyre_packages ${gyre_cuda_package})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gyre)
set(CPACK_PACKAGE_VENDOR gyre)
set(CPACK_PACKAGE_CONTACT "the gyre authors <gyre@gyre.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${gyre_packages})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/GyrePackageFiles.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/src ${PROJECT_BINARY_DIR}/nn)

set(version "= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
function(gyre_package name section depends title)
  string(TOUPPER ${name} upper)
  string(REPLACE ";" "\n" body "${ARGN}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${title}\n${body}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${title}\n${body}" PARENT_SCOPE)
endfunction()
gyre_package(${gyre_runtime} libs "" "decentralised collective communication"
  "Collectives (all-reduce and the others) and messages between the processes of a"
  "parallel job, over shared memory and TCP, without a server. This package holds"
  "the library that programs need in order to run.")
gyre_package(${gyre_nn_runtime} libs "${gyre_runtime} (${version})" "small neural networks, trained in parallel over gyre"
  "Layers, optimisers, checkpoints, and data parallelism whose gradients travel"
  "during backpropagation. This package holds the library that programs need in"
  "order to run.")
gyre_package(libgyre-dev libdevel "${gyre_runtime} (${version}), ${gyre_nn_runtime} (${version})" "collective communication, for development"
  "Headers, manual pages and what pkg-config and CMake need in order to build"
  "programs with libgyre and libgyre-nn.")
gyre_package(gyre-tools utils "${gyre_runtime} (${version}), ${gyre_nn_runtime} (${version})" "collective communication, programs"
  "gyre-run starts the ranks of a job, gyre-info shows what gyre finds on a"
  "machine, gyre-top what its ranks do, gyre-perf measures collectives and"
  "gyre-train trains a small network.")
foreach(package ${gyre_mpi_packages}) # libgyre is linked in
  gyre_package(${package} libs "" "collective communication, for MPI programs that exist"
    "A library that is preloaded before an MPI program (LD_PRELOAD) and takes over"
    "its collective calls. This package holds the one for the MPI library of its"
    "name.")
endforeach()
if(gyre_cuda_package)
  gyre_package(${gyre_cuda_package} libs "${gyre_runtime} (${version})" "collective communication, kernels for NVIDIA GPUs"
    "Machine code for GPUs, as data; libgyre opens it at run time where there is an"
    "NVIDIA driver. No library of CUDA is needed.")
endif()
foreach(runtime ${gyre_runtime} ${gyre_nn_runtime} ${gyre_mpi_packages} ${gyre_cuda_package})
  string(TOUPPER ${runtime} upper)
  # A new library must be known to the loader before a program is started with it.
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
include(CPack)
