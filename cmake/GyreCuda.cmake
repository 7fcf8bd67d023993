# The plug-in libgyre-cuda.so.N with the GPU kernels of src/cuda/kernels, compiled by nvcc (CUDA 12 or later). It holds
# machine code for GYRE_CUDA_ARCHITECTURES, and PTX of the oldest architecture, which the driver compiles for a GPU that
# is not among them. No kernel uses an instruction of a newer architecture, so all machine code is made from that PTX.
#
#   gyre_cuda_plugin(TARGET ARCHITECTURES)   a shared library; files are made in ${CMAKE_BINARY_DIR}/cuda/TARGET
set(GYRE_CUDA_PLUGIN AUTO CACHE STRING "the plug-in with GPU kernels: AUTO (where nvcc is) | ON | OFF")
set(GYRE_CUDA_ARCHITECTURES "" CACHE STRING "of GPUs, such as 80;90; empty: all that nvcc knows of 75 80 86 89 90 100 120")
find_program(GYRE_NVCC nvcc PATHS /usr/local/cuda/bin /opt/cuda/bin)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(gyre_cuda_known "")
if(GYRE_NVCC)
  execute_process(COMMAND ${GYRE_NVCC} --list-gpu-arch OUTPUT_VARIABLE gyre_cuda_known ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+" gyre_cuda_known "${gyre_cuda_known}")
  execute_process(COMMAND ${GYRE_NVCC} --version OUTPUT_VARIABLE gyre_nvcc_version ERROR_QUIET)
  string(REGEX MATCH "release ([0-9.]+)" gyre_nvcc_version "${gyre_nvcc_version}")
  set(gyre_nvcc_version "${CMAKE_MATCH_1}")
  get_filename_component(gyre_nvcc_file ${GYRE_NVCC} REALPATH)
  get_filename_component(gyre_cuda_tools ${gyre_nvcc_file} DIRECTORY)
  execute_process(COMMAND ${gyre_cuda_tools}/ptxas --help OUTPUT_VARIABLE ptxas_help ERROR_QUIET)
  set(gyre_ptxas_threads "")
  if(ptxas_help MATCHES "--split-compile")
    set(gyre_ptxas_threads --split-compile 2)
  endif()
endif()
set(gyre_cuda_all "")
foreach(architecture 75 80 86 89 90 100 120)
  if(architecture IN_LIST gyre_cuda_known)
    list(APPEND gyre_cuda_all ${architecture})
  endif()
endforeach()
set(gyre_nvcc_works OFF)
if(gyre_cuda_all AND gyre_nvcc_version VERSION_GREATER_EQUAL 12)
  set(gyre_nvcc_works ON)
endif()

function(gyre_cuda_plugin target architectures)
  list(GET gyre_cuda_all 0 oldest)
  set(source ${PROJECT_SOURCE_DIR}/src/cuda)
  set(folder ${CMAKE_BINARY_DIR}/cuda/${target})
  set(steps ${PROJECT_SOURCE_DIR}/cmake/cuda_image.py)
  set(python Python3::Interpreter)
  file(MAKE_DIRECTORY ${folder})
  set(parts "")
  # The slowest come first.
  foreach(part float8_e4m3 float8_e5m2 float16 bfloat16 float64 float32 uint8 uint32 uint64 int8 int32 int64 boolean move)
    add_custom_command(OUTPUT ${folder}/${part}.ptx DEPFILE ${folder}/${part}.d
      COMMAND ${GYRE_NVCC} -std=c++17 -O3 -fmad=false -Werror all-warnings -arch=compute_${oldest} -DPART=${part}
        -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include -MD -MF ${folder}/${part}.d
        -ptx -o ${folder}/${part}.ptx ${source}/plugin/part.cu
      DEPENDS ${source}/plugin/part.cu COMMENT "nvcc: GPU kernels of ${part}" VERBATIM)
    list(APPEND parts ${folder}/${part}.ptx)
  endforeach()
  add_custom_command(OUTPUT ${folder}/kernels.ptx COMMAND ${python} ${steps} join ${folder}/kernels.ptx ${parts}
    DEPENDS ${steps} ${parts} VERBATIM)
  set(images --image3=kind=ptx,sm=${oldest},file=${folder}/kernels.ptx)
  set(files ${folder}/kernels.ptx)
  foreach(architecture ${architectures})
    set(cubin ${folder}/sm_${architecture}.cubin)
    add_custom_command(OUTPUT ${cubin} BYPRODUCTS ${folder}/sm_${architecture}.log
      COMMAND ${python} ${steps} assemble ${folder}/sm_${architecture}.log ${gyre_cuda_tools}/ptxas -v
        ${gyre_ptxas_threads} -arch=sm_${architecture} ${folder}/kernels.ptx -o ${cubin}
      DEPENDS ${steps} ${folder}/kernels.ptx COMMENT "ptxas: GPU kernels for sm_${architecture}" VERBATIM)
    list(APPEND images --image3=kind=elf,sm=${architecture},file=${cubin})
    list(APPEND files ${cubin})
  endforeach()
  add_custom_command(OUTPUT ${folder}/kernels.fatbin ${folder}/image_bytes.h
    COMMAND ${gyre_cuda_tools}/fatbinary --create ${folder}/kernels.fatbin -64 --compress-all ${images}
    COMMAND ${python} ${steps} bytes ${folder}/image_bytes.h ${folder}/kernels.fatbin
    DEPENDS ${steps} ${files} VERBATIM)

  add_library(${target} SHARED EXCLUDE_FROM_ALL ${source}/plugin/plugin.c ${folder}/image_bytes.h)
  set_property(SOURCE ${source}/plugin/plugin.c APPEND PROPERTY OBJECT_DEPENDS ${folder}/kernels.fatbin)
  target_include_directories(${target} PRIVATE ${folder} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(${target} PRIVATE GY_IMAGE="${folder}/kernels.fatbin")
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror -fvisibility=default -g0)
  target_link_options(${target} PRIVATE -nostdlib -Wl,--version-script=${source}/plugin/plugin.map)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME gyre-cuda SOVERSION ${GYRE_SOVERSION}
    LIBRARY_OUTPUT_DIRECTORY ${folder})
endfunction()

if(GYRE_CUDA_PLUGIN STREQUAL "OFF")
elseif(gyre_nvcc_works)
  if(NOT GYRE_CUDA_ARCHITECTURES)
    set(GYRE_CUDA_ARCHITECTURES ${gyre_cuda_all})
  endif()
  gyre_cuda_plugin(gyre_cuda "${GYRE_CUDA_ARCHITECTURES}")
  set_target_properties(gyre_cuda PROPERTIES EXCLUDE_FROM_ALL OFF LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/src)
  install(TARGETS gyre_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libgyre-cuda${GYRE_SOVERSION}
          NAMELINK_SKIP)
  list(JOIN GYRE_CUDA_ARCHITECTURES " " listed)
  message(STATUS "the plug-in with GPU kernels is built for architectures ${listed}")
elseif(GYRE_CUDA_PLUGIN STREQUAL "ON")
  message(FATAL_ERROR "GYRE_CUDA_PLUGIN=ON needs nvcc of CUDA 12 or later")
else()
  message(STATUS "no nvcc of CUDA 12 or later: the plug-in with GPU kernels is left out")
endif()
