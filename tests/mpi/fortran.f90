! A Fortran program, with the module of MPI 3 and with the older one: the interposer takes over what it calls.
subroutine with_module(failures)
  use mpi
  implicit none
  integer, intent(inout) :: failures
  integer :: rank, ranks, code, i
  double precision :: mine(4), sum(4)
  integer :: value, all(16)

  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  mine = [(dble(rank + i), i = 1, 4)]
  call MPI_Allreduce(mine, sum, 4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, code)
  if (any(abs(sum - [(dble(ranks * (ranks - 1) / 2 + ranks * i), i = 1, 4)]) > 0)) failures = failures + 1
  value = rank + 1
  call MPI_Allgather(value, 1, MPI_INTEGER, all, 1, MPI_INTEGER, MPI_COMM_WORLD, code)
  if (any(all(1:ranks) /= [(i, i = 1, ranks)])) failures = failures + 1
  all(rank + 1) = rank + 7
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INTEGER, MPI_COMM_WORLD, code)
  if (any(all(1:ranks) /= [(i + 6, i = 1, ranks)])) failures = failures + 1
  call MPI_Barrier(MPI_COMM_WORLD, code)
end subroutine

subroutine with_f08(failures)
  use mpi_f08
  implicit none
  integer, intent(inout) :: failures
  integer :: rank, ranks, value, total
  double precision :: sum(4)

  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  value = merge(99, 0, rank == ranks - 1)
  call MPI_Bcast(value, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD)
  if (value /= 99) failures = failures + 1
  call MPI_Reduce(rank, total, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
  if (rank == 0 .and. total /= ranks * (ranks - 1) / 2) failures = failures + 1
  sum = rank
  call MPI_Allreduce(MPI_IN_PLACE, sum, 4, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
  if (any(abs(sum - (ranks - 1)) > 0)) failures = failures + 1
end subroutine

program fortran
  use mpi
  implicit none
  integer :: code, failures
  failures = 0
  call MPI_Init(code)
  call with_module(failures)
  call with_f08(failures)
  call MPI_Finalize(code)
  if (failures > 0) stop 1
end program
