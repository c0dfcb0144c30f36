"""What the processes of one command tell each other, with a store that they share in place of torchrun's."""

from torch.distributed import HashStore
from torch.distributed.distributed_c10d import PrefixStore

from nmt.errors import ToldElsewhere, UserError
from nmt.jobs.team import Team


def team(processes: int) -> list[Team]:
    store = PrefixStore("test", HashStore())
    return [Team(rank, processes, store) for rank in range(processes)]


def test_one_of_them_says_what_all_would() -> None:
    several = team(3)
    assert [one.is_first_to("größer: \t5") for one in reversed(several)] == [True, False, False]
    assert [one.is_first_to("größer: \t6") for one in several] == [True, False, False]
    assert Team().is_first_to("5") and Team().is_first_to("5")  # noqa: PT018


def test_the_first_that_fails_tells_why() -> None:
    error = UserError("one", "two")
    first, second = team(2)
    assert second.once(error) is error
    assert isinstance(told := first.once(error), ToldElsewhere)
    assert told.messages == error.messages
    assert Team().once(error) is error
