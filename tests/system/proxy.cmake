# What is changed on its way: two ranks and a proxy between them, which is in front of the library's connect.
add_executable(proxy_test proxy_test.c proxy.c)
target_include_directories(proxy_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(proxy_test PRIVATE gyre_internal)
target_link_options(proxy_test PRIVATE LINKER:--wrap=gy_socket_connect LINKER:--wrap=gy_socket_connect_from)
foreach(mode crc mac encrypt)
  gyre_system_test(proxy.${mode} 200 $<TARGET_FILE:proxy_test> ${mode} 12 1)
endforeach()
gyre_system_test(proxy.off 100 $<TARGET_FILE:proxy_test> off 3 1)

# Unauthenticated connections to the listeners of a running job. It asks the library where these are.
add_executable(intruder_test intruder_test.c)
target_include_directories(intruder_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(intruder_test PRIVATE gyre_internal)
gyre_system_test(intruder 200 $<TARGET_FILE:intruder_test>)

# A rank that computes wrongly.
add_executable(verify_test verify_test.c)
target_include_directories(verify_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(verify_test PRIVATE gyre_compile gyre)
foreach(transport shm tcp)
  gyre_system_test(verify.${transport} 200 $<TARGET_FILE:verify_test> ${transport})
endforeach()
