"""Sparse contents behave as the plain bytes they stand for, and cost only what was written."""

from hypothesis import given
from hypothesis import strategies as st

from belljar.abi.flags import O_CREAT, O_RDWR, SEEK_DATA, SEEK_HOLE
from belljar.kernel.fs.contents import PAGE, Sparse
from tests.contract.servers import memory, view_of

places = st.one_of(st.integers(0, 5 * PAGE), st.sampled_from([0, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE]))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), places, st.binary(min_size=1, max_size=20)),
        st.tuples(st.just("write"), places, st.just(b"x" * (PAGE + 3))),
        st.tuples(st.just("truncate"), places, st.just(b"")),
    ),
    max_size=12,
)


@given(start=st.binary(max_size=30), steps=steps)
def test_as_plain_bytes(start: bytes, steps: list[tuple[str, int, bytes]]) -> None:
    sparse, plain = Sparse(start), bytearray(start)
    for action, place, data in steps:
        if action == "truncate":
            sparse.truncate(place)
            del plain[place:]
            plain.extend(bytes(place - len(plain)))
        else:
            before, cost = sparse.held, sparse.cost(place, len(data))
            sparse.write(place, data)
            plain.extend(bytes(max(0, place - len(plain))))
            plain[place : place + len(data)] = data
            assert sparse.held == before + cost
        assert sparse.size == len(plain)
        assert sparse.read(0, len(plain) + 10) == plain
        assert sparse.read(PAGE - 2, 5) == plain[PAGE - 2 : PAGE + 3]
    for offset in (0, 1, PAGE, 2 * PAGE + 5):
        if offset < len(plain):
            hole = sparse.seek_data(offset, hole=True)
            assert offset <= hole <= len(plain)
            data_at = sparse.seek_data(offset, hole=False)
            assert not any(plain[offset : len(plain) if data_at < 0 else data_at])


def test_seeking_over_holes() -> None:
    view = view_of(memory())
    file = view.open("/sparse", O_RDWR | O_CREAT).retain()
    file.pwrite(b"end", 64 << 20)
    assert file.seek(0, SEEK_DATA) == 64 << 20
    assert file.seek(0, SEEK_HOLE) == 0
    assert file.seek(64 << 20, SEEK_HOLE) == (64 << 20) + 3
    file.release()
