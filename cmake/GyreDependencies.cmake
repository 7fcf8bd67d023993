find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
# Its header only: the library is opened at run time, where there is one.
find_path(GYRE_VERBS_HEADER infiniband/verbs.h REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
# Its dispatcher by the processor's instructions is optional in that library: core/hash.h.
include(CheckSymbolExists)
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::XXHASH)
check_symbol_exists(XXH3_128bits_dispatch xxh_x86dispatch.h gyre_xxhash_dispatch)
unset(CMAKE_REQUIRED_LIBRARIES)
# Its header only, and only where there is one (x86-64): the library is opened at run time.
find_path(GYRE_IPSEC_MB_HEADER intel-ipsec-mb.h)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
# libcsv has no file for pkg-config.
find_path(GYRE_CSV_INCLUDE csv.h REQUIRED)
find_library(GYRE_CSV_LIBRARY csv REQUIRED)
pkg_check_modules(CBLAS REQUIRED IMPORTED_TARGET openblas)
if(GYRE_TESTS)
  pkg_check_modules(CRITERION REQUIRED IMPORTED_TARGET criterion)
endif()
