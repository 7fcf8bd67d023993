"""Every collective of torch.distributed over the backend "gyre"; under gyre-run, on every rank."""
import unittest
from typing import Any, Callable, Dict, List

import torch
import torch.distributed as dist

from tests.torch_group import GroupTest

SUMMED = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64,
          torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2]
COUNTS = (0, 1, 3, 1000, 70001)


def total(tensors: List[torch.Tensor]) -> torch.Tensor:
    dtype = tensors[0].dtype
    wide = torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else torch.int64
    result = tensors[0].to(wide)
    for tensor in tensors[1:]:
        result = result + tensor.to(wide)
    return result.to(dtype)


class Reductions(GroupTest):
    def test_all_reduce(self) -> None:
        for dtype in SUMMED:
            for count in COUNTS:
                with self.subTest(dtype=dtype, count=count):
                    x = self.mine(count, dtype)
                    dist.all_reduce(x)
                    self.assertSame([x], [total(self.everyone(count, dtype))])

    def test_operations(self) -> None:
        every = torch.stack(self.everyone(64, torch.int64))
        wanted: Dict[Any, torch.Tensor] = {
            dist.ReduceOp.SUM: every.sum(0), dist.ReduceOp.PRODUCT: every.prod(0), dist.ReduceOp.MIN: every.amin(0),
            dist.ReduceOp.MAX: every.amax(0)}
        for bits, func in ((dist.ReduceOp.BAND, torch.bitwise_and), (dist.ReduceOp.BOR, torch.bitwise_or), (dist.ReduceOp.BXOR, torch.bitwise_xor)):
            wanted[bits] = every[0]
            for one in every[1:]:
                wanted[bits] = func(wanted[bits], one)
        for op, result in wanted.items():
            for dtype in (torch.int64, torch.int32, torch.int16, torch.uint8):
                with self.subTest(op=op, dtype=dtype):
                    x = self.mine(64, dtype)
                    dist.all_reduce(x, op=op)
                    self.assertSame([x], [result.to(dtype)])

    def test_average(self) -> None:
        x = torch.full((100,), float(self.rank))
        dist.all_reduce(x, op=dist.ReduceOp.AVG)
        self.assertSame([x], [torch.full((100,), (self.size - 1) / 2)])

    def test_premul_sum(self) -> None:
        x = self.mine(100)
        dist.all_reduce(x, op=dist._make_nccl_premul_sum(0.5))
        self.assertSame([x], [total(self.everyone(100)) * 0.5])

    def test_booleans(self) -> None:
        mine = torch.tensor([self.rank == 0, True, False])
        for op, wanted in ((dist.ReduceOp.SUM, [True, True, False]), (dist.ReduceOp.MIN, [self.size == 1, True, False]),
                           (dist.ReduceOp.BOR, [True, True, False])):
            x = mine.clone()
            dist.all_reduce(x, op=op)
            self.assertSame([x], [torch.tensor(wanted)])

    def test_all_reduce_coalesced(self) -> None:
        tensors = [self.mine(count, torch.int16) for count in (1, 17, 4000)]
        dist.all_reduce_coalesced(tensors)
        self.assertSame(tensors, [total(self.everyone(count, torch.int16)) for count in (1, 17, 4000)])

    def test_reduce(self) -> None:
        for root in range(self.size):
            for dtype in (torch.float32, torch.int16):
                x = self.mine(33, dtype)
                dist.reduce(x, root)
                self.assertSame([x], [total(self.everyone(33, dtype)) if self.rank == root else self.mine(33, dtype)])

    def test_reduce_scatter(self) -> None:
        for dtype in (torch.float32, torch.int16, torch.complex64):
            wanted = total(self.everyone(12 * self.size, dtype)).chunk(self.size)[self.rank]
            output = torch.empty(12, dtype=dtype)
            dist.reduce_scatter_tensor(output, self.mine(12 * self.size, dtype))
            self.assertSame([output], [wanted])
            output.zero_()
            dist.reduce_scatter(output, [block.clone() for block in self.mine(12 * self.size, dtype).chunk(self.size)])
            self.assertSame([output], [wanted])

    def test_reduce_scatter_in_place(self) -> None:
        x = self.mine(5 * self.size)
        block = x.narrow(0, 5 * self.rank, 5)
        dist.reduce_scatter_tensor(block, x)
        self.assertSame([block], [total(self.everyone(5 * self.size)).narrow(0, 5 * self.rank, 5)])

    def test_reduce_scatter_uneven(self) -> None:
        output = torch.empty(self.rank + 1)
        dist.reduce_scatter(output, [torch.full((rank + 1,), float(self.rank)) for rank in range(self.size)])
        self.assertSame([output], [torch.full((self.rank + 1,), float(sum(range(self.size))))])


class Copies(GroupTest):
    def test_broadcast(self) -> None:
        for root in range(self.size):
            for dtype in (*SUMMED, torch.bool, torch.uint16):
                x = self.mine(1000, dtype)
                dist.broadcast(x, root)
                self.assertSame([x], [self.everyone(1000, dtype)[root]])

    def test_all_gather(self) -> None:
        for dtype in (torch.float32, torch.int16, torch.complex64, torch.bool):
            outputs = [torch.empty(7, dtype=dtype) for _ in range(self.size)]
            dist.all_gather(outputs, self.mine(7, dtype))
            self.assertSame(outputs, self.everyone(7, dtype))
            whole = torch.empty(7 * self.size, dtype=dtype)
            dist.all_gather_into_tensor(whole, self.mine(7, dtype))
            self.assertSame([whole], [torch.cat(self.everyone(7, dtype))])
            dist.all_gather(list(whole.zero_().chunk(self.size)), self.mine(7, dtype))  # one after the other in memory
            self.assertSame([whole], [torch.cat(self.everyone(7, dtype))])

    def test_all_gather_uneven(self) -> None:
        outputs = [torch.empty(rank + 2) for rank in range(self.size)]
        dist.all_gather(outputs, torch.full((self.rank + 2,), float(self.rank)))
        self.assertSame(outputs, [torch.full((rank + 2,), float(rank)) for rank in range(self.size)])

    def test_gather_and_scatter(self) -> None:
        for root in range(self.size):
            outputs = [torch.empty(9) for _ in range(self.size)] if self.rank == root else None
            dist.gather(self.mine(9), outputs, dst=root)
            if outputs is not None:
                self.assertSame(outputs, self.everyone(9))
            output = torch.empty(9)
            dist.scatter(output, self.everyone(9) if self.rank == root else None, src=root)
            self.assertSame([output], [self.mine(9)])

    def test_all_to_all(self) -> None:
        outputs = [torch.empty(self.rank + 1) for _ in range(self.size)]
        dist.all_to_all(outputs, [torch.full((rank + 1,), float(self.rank * 10 + rank)) for rank in range(self.size)])
        self.assertSame(outputs, [torch.full((self.rank + 1,), float(rank * 10 + self.rank)) for rank in range(self.size)])

    def test_all_to_all_single(self) -> None:
        output = torch.empty(2 * self.size, 3)
        dist.all_to_all_single(output, torch.full((2 * self.size, 3), float(self.rank)))
        self.assertSame([output], [torch.arange(self.size).repeat_interleave(2).float().reshape(-1, 1).expand(-1, 3).contiguous()])
        sent = [rank for rank in range(self.size)]  # none to rank 0, one row to rank 1, ...
        output = torch.empty(self.rank * self.size, 2)
        dist.all_to_all_single(output, torch.full((sum(sent), 2), float(self.rank)), [self.rank] * self.size, sent)
        self.assertSame([output], [torch.arange(self.size).repeat_interleave(self.rank).float().reshape(-1, 1).expand(-1, 2).contiguous()])

    def test_objects(self) -> None:
        everyone: List[Any] = [None] * self.size
        dist.all_gather_object(everyone, {"rank": self.rank, "text": "x" * self.rank})
        self.assertEqual(everyone, [{"rank": rank, "text": "x" * rank} for rank in range(self.size)])
        objects: List[Any] = [["of rank 0"]] if self.rank == 0 else [None]
        dist.broadcast_object_list(objects)
        self.assertEqual(objects, [["of rank 0"]])


class Transfers(GroupTest):
    def test_tags(self) -> None:
        if self.size == 1:
            self.skipTest("needs two ranks")
        if self.rank == 0:
            for tag in (1, 2, 3):
                dist.send(torch.full((5,), float(tag)), 1, tag=tag)
        elif self.rank == 1:
            for tag in (3, 1, 2):
                x = torch.empty(5)
                dist.recv(x, 0, tag=tag)
                self.assertSame([x], [torch.full((5,), float(tag))])

    def test_any_source(self) -> None:
        if self.rank > 0:
            dist.send(torch.full((4,), float(self.rank)), 0, tag=7)
            return
        seen = set()
        for _ in range(1, self.size):
            x = torch.empty(4)
            source = dist.recv(x, tag=7)
            seen.add(source)
            self.assertSame([x], [torch.full((4,), float(source))])
        self.assertEqual(seen, set(range(1, self.size)))

    def test_ring(self) -> None:
        if self.size == 1:
            self.skipTest("needs two ranks")
        for count in (0, 1, 100000):
            output = torch.empty(count)
            operations = [dist.P2POp(dist.isend, torch.full((count,), float(self.rank)), (self.rank + 1) % self.size),
                          dist.P2POp(dist.irecv, output, (self.rank - 1) % self.size)]
            for work in dist.batch_isend_irecv(operations):
                work.wait()
            self.assertSame([output], [torch.full((count,), float((self.rank - 1) % self.size))])

    def test_wrong_length(self) -> None:
        if self.rank == 0 and self.size > 1:
            dist.send(torch.ones(4), 1)
            dist.send(torch.ones(3), 1)
        elif self.rank == 1:
            with self.assertRaisesRegex(dist.DistBackendError, "rank 0 sent 16 bytes with tag 0, the tensor has 12"):
                dist.recv(torch.empty(3), 0)
            x = torch.empty(3)
            dist.recv(x, 0)  # the group goes on
            self.assertSame([x], [torch.ones(3)])


class Asynchronous(GroupTest):
    def test_futures(self) -> None:
        tensors = [self.mine(count) for count in (1, 1000, 1 << 20)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        futures = [work.get_future().then(lambda done: done.value()[0] * 2) for work in works]
        for tensor, future in zip(tensors, futures):
            wanted = total(self.everyone(tensor.numel()))
            self.assertSame([future.wait(), tensor], [wanted * 2, wanted])
        self.assertTrue(all(work.is_completed() for work in works))

    def test_tensors_are_held(self) -> None:
        outputs = [torch.empty(200000) for _ in range(4)]
        works = [dist.all_gather(list(output.chunk(self.size)), torch.full((200000 // self.size,), float(self.rank)), async_op=True)
                 for output in outputs]
        del outputs
        for work in works:
            work.wait()

    def test_order_by_any_wait(self) -> None:
        tensors = [self.mine(count) for count in range(1, 50)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        for work in works if self.rank % 2 else reversed(works):
            work.wait()
        self.assertSame(tensors, [total(self.everyone(tensor.numel())) for tensor in tensors])

    def test_coalescing(self) -> None:
        a, b = self.mine(10), self.mine(2000)
        with dist._coalescing_manager(async_ops=True) as manager:
            dist.all_reduce(a)
            dist.all_reduce(b)
        manager.wait()
        self.assertSame([a, b], [total(self.everyone(10)), total(self.everyone(2000))])

    def test_sequence_numbers(self) -> None:
        group: Any = dist.distributed_c10d._get_default_group()
        before = group._get_sequence_number_for_group()
        dist.barrier()
        self.assertGreater(group._get_sequence_number_for_group(), before)


class Groups(GroupTest):
    def test_new_group(self) -> None:
        evens = list(range(0, self.size, 2))
        group = dist.new_group(evens, backend="gyre")
        if self.rank in evens:
            x = torch.ones(3)
            dist.all_reduce(x, group=group)
            self.assertSame([x], [torch.full((3,), float(len(evens)))])
            dist.destroy_process_group(group)

    def test_split_and_shrink(self) -> None:
        parent: Any = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
        if not getattr(parent, "supports_shrinking", False):
            self.skipTest("this torch has neither for backends of others")
        group = dist.split_group(split_ranks=[[rank] for rank in range(self.size)])
        x = torch.ones(3)
        dist.all_reduce(x, group=group)
        self.assertSame([x], [torch.ones(3)])
        if self.size > 1 and self.rank != self.size - 1:
            smaller = parent.shrink([self.size - 1])
            smaller.allreduce([x]).wait()
            self.assertSame([x], [torch.full((3,), self.size - 1.0)])
            smaller.shutdown()

    def test_gather_single(self) -> None:
        if not hasattr(dist, "gather_single"):
            self.skipTest("this torch has no gather_single")
        for root in range(self.size):
            output = torch.empty(3 * self.size) if self.rank == root else None
            dist.gather_single(self.mine(3), output, dst=root)
            if output is not None:
                self.assertSame([output], [torch.cat(self.everyone(3))])

    def test_reconfigure(self) -> None:
        """The last rank leaves, and the others come back in the opposite order."""
        group: Any = dist.new_group(backend="gyre")
        if not getattr(group, "supports_reconfigure", False):
            self.skipTest("this torch has no reconfigure")
        handles: List[Any] = [None] * self.size
        dist.all_gather_object(handles, group.get_reconfigure_handle())
        self.assertEqual(len(set(handles)), self.size)
        stay = handles[:max(self.size - 1, 1)][::-1]
        if handles[self.rank] in stay:
            dist.distributed_c10d._reconfigure(7, stay, group).wait()
            backend = group._get_backend(torch.device("cpu"))
            self.assertEqual((backend.rank(), backend.size()), (len(stay) - 1 - self.rank, len(stay)))
            outputs = torch.empty(len(stay))
            backend._allgather_base(outputs, torch.full((1,), float(self.rank))).wait()
            self.assertSame([outputs], [torch.arange(len(stay)).float().flip(0)])

    def test_refusals(self) -> None:
        calls: List[Callable[[], Any]] = [
            lambda: dist.all_reduce(torch.ones(4, 4).t()[1:]),
            lambda: dist.all_reduce(torch.ones(3, dtype=torch.bool), op=dist.ReduceOp.AVG),
            lambda: dist.all_reduce(torch.ones(3), op=dist.ReduceOp.BAND),
            lambda: dist.all_reduce(torch.ones(3).to_sparse()),
            lambda: dist.all_gather([torch.empty(3)] * self.size, torch.ones(4)),
            lambda: dist.all_to_all_single(torch.empty(2 * self.size), torch.ones(2 * self.size), [2] * self.size, [3] * self.size),
        ]
        for number, call in enumerate(calls):
            with self.subTest(number), self.assertRaises((RuntimeError, ValueError)):
                call()
        dist.barrier()  # the group goes on

    def test_monitored_barrier(self) -> None:
        dist.monitored_barrier()


def tearDownModule() -> None:
    dist.destroy_process_group()


if __name__ == "__main__":
    unittest.main()
