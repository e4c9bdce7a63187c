"""What every memory must do; a new file in the folder is tested here with no other edit."""

import pytest
import torch
from torch import Tensor

from surefoot.data.records import Chunks, State
from surefoot.policies.memory import Memory, memories
from surefoot.policies.memory.recurrent import Recurrent
from surefoot.rollout.sequences import split

ROWS, STEPS, FEATURES, HIDDEN = 4, 9, 3, 5
RECURRENT = [name for name in memories.names() if issubclass(memories[name], Recurrent)]


def built(name: str, layers: int = 2) -> Memory:
    torch.manual_seed(3)
    memory = memories[name](FEATURES, Recurrent.Settings(kind=name, hidden_size=HIDDEN, layers=layers))
    memory.orthogonal_()
    return memory


def noise_state(memory: Memory, rows: int) -> State:
    return tuple(torch.randn_like(part) for part in memory.initial_state(rows))


def step_by_step(memory: Memory, features: Tensor, state: State, starts: Tensor) -> tuple[Tensor, State]:
    """The plain loop: forget where an episode starts, then one step `[T, N]`."""
    outputs = []
    for step, start in zip(features, starts, strict=True):
        state = tuple(torch.where(start[:, None, None], 0.0, part) for part in state)
        output, state = memory(step, state, None)
        outputs.append(output)
    return torch.stack(outputs), state


@pytest.mark.parametrize("name", memories.names())
def test_shapes(name: str) -> None:
    memory = built(name)
    output, state = memory(torch.randn(ROWS, FEATURES), memory.initial_state(ROWS), None)
    assert output.shape == (ROWS, memory.output_size)
    assert [part.shape for part in state] == [part.shape for part in memory.initial_state(ROWS)]
    assert len(memory.state_names) == len(state)
    assert all(part.shape[0] == ROWS and part.eq(0).all() for part in memory.initial_state(ROWS))


@pytest.mark.parametrize("name", memories.names())
def test_pure_and_the_same_in_any_company(name: str) -> None:
    memory, features = built(name), torch.randn(ROWS, FEATURES)
    state = noise_state(memory, ROWS)
    given = tuple(part.clone() for part in state)
    output, after = memory(features, state, None)
    assert all(torch.equal(part, before) for part, before in zip(state, given, strict=True))
    alone, alone_after = memory(features[2:3], tuple(part[2:3] for part in state), None)
    torch.testing.assert_close(alone, output[2:3])
    for part, expected in zip(alone_after, after, strict=True):
        torch.testing.assert_close(part, expected[2:3])


@pytest.mark.parametrize("name", RECURRENT)
@pytest.mark.parametrize("layers", [1, 3])
def test_the_past_matters_and_every_weight_has_a_gradient(name: str, layers: int) -> None:
    memory, features = built(name, layers), torch.randn(STEPS, ROWS, FEATURES)
    starts = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    output, _ = step_by_step(memory, features, memory.initial_state(ROWS), starts)
    changed = features.clone()
    changed[0] += 1
    other, _ = step_by_step(memory, changed, memory.initial_state(ROWS), starts)
    assert (other[-1] - output[-1]).abs().max() > 1e-4
    gradients = torch.autograd.grad(output[-1].square().sum(), list(memory.parameters()))
    assert all(gradient.abs().max() > 0 for gradient in gradients)


@pytest.mark.parametrize("name", RECURRENT)
def test_sequences_are_the_loop_and_so_are_their_gradients(name: str) -> None:
    """Backpropagation through time across resets, against a plain loop, in float64 (S6)."""
    memory = built(name).double()
    features = torch.randn(STEPS, ROWS, FEATURES, dtype=torch.float64, requires_grad=True)
    starts = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    starts[0, 1] = starts[4, 0] = starts[5, 0] = starts[6, 2] = starts[8, 3] = True
    state = tuple(part.double().requires_grad_() for part in noise_state(memory, ROWS))
    weights = torch.randn(STEPS, ROWS, HIDDEN, dtype=torch.float64)
    wanted = [features, *state, *memory.parameters()]

    looped, _ = step_by_step(memory, features, state, starts)
    loop_gradients = torch.autograd.grad((looped * weights).sum(), wanted)

    runs = split(starts, torch.ones_like(starts), Chunks(STEPS, STEPS))
    order = runs.length.argsort(descending=True, stable=True)
    runs = runs[order]
    running = torch.arange(int(runs.length.max()))[:, None] < runs.length
    step, run = running.nonzero(as_tuple=True)
    index = runs.first[run] + step
    rows, times = index // STEPS, index % STEPS
    begins_anew = starts[runs.first % STEPS, runs.first // STEPS]
    before = tuple(torch.where(begins_anew[:, None, None], 0.0, part[runs.first // STEPS]) for part in state)
    packed, _ = memory(features[times, rows], before, running.sum(1))
    torch.testing.assert_close(packed, looped[times, rows], rtol=1e-10, atol=1e-12)
    packed_gradients = torch.autograd.grad((packed * weights[times, rows]).sum(), wanted)
    for ours, expected in zip(packed_gradients, loop_gradients, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "torchs"), [("gru", torch.nn.GRU), ("lstm", torch.nn.LSTM)])
def test_what_torch_gives(name: str, torchs: type[torch.nn.RNNBase]) -> None:
    memory = built(name)
    theirs = torchs(FEATURES, HIDDEN, 2)
    theirs.load_state_dict(memory.cells.state_dict())
    features = torch.randn(STEPS, ROWS, FEATURES)
    ours, state = step_by_step(memory, features, memory.initial_state(ROWS), torch.zeros(STEPS, ROWS).bool())
    expected, last = theirs(features)
    torch.testing.assert_close(ours, expected)
    for part, part_expected in zip(state, last if isinstance(last, tuple) else (last,), strict=True):
        torch.testing.assert_close(part, part_expected.transpose(0, 1))


@pytest.mark.parametrize("name", RECURRENT)
def test_it_starts_by_remembering_for_a_step_or_a_hundred(name: str) -> None:
    memory = built(name, layers=1)
    with torch.no_grad():
        for cells in ("weight_ih_l0", "weight_hh_l0"):
            getattr(memory.cells, cells).zero_()  # what the biases alone do
    state = tuple(torch.ones_like(part) for part in memory.initial_state(1))
    _, after = memory(torch.zeros(1, FEATURES), state, None)
    kept = after[-1].detach().flatten()
    assert kept[0] == pytest.approx(0.5)
    assert kept[-1] == pytest.approx(100 / 101)
    assert (kept.diff() > 0).all()
