# Uniform ends.
foreach(transport shm tcp)
  gyre_mortal_test(uniform settings.${transport} GYRE_TRANSPORT=${transport} settings 3)
  gyre_mortal_test(uniform kill.${transport} GYRE_TRANSPORT=${transport} kill 5)
  gyre_mortal_test(uniform leave.${transport} GYRE_TRANSPORT=${transport} leave 3)
endforeach()
gyre_mortal_test(uniform kill.mixed GYRE_TRANSPORT=shm,tcp kill 4 2)
# On shm a root waits for its readers: no rank succeeds before it.
gyre_mortal_test(uniform away "GYRE_TRANSPORT=tcp;GYRE_STALL_TIMEOUT=2" away 3)
gyre_mortal_test(uniform pending GYRE_TRANSPORT=shm,tcp pending 4 2)
gyre_mortal_test(uniform siblings GYRE_TRANSPORT=tcp siblings 4)
