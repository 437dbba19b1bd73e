"""Attributes and small methods of tensors with PyTorch's names."""

import weakref

import numpy as np
import pytest
import tandem as td
from tandem import errors

CONVERSIONS = {
    "float": td.float32,
    "double": td.float64,
    "half": td.float16,
    "bfloat16": td.bfloat16,
    "int": td.int32,
    "long": td.int64,
    "short": td.int16,
    "char": td.int8,
    "byte": td.uint8,
    "bool": td.bool,
    "cfloat": td.complex64,
    "cdouble": td.complex128,
}


@pytest.mark.parametrize(("name", "dtype"), CONVERSIONS.items(), ids=list(CONVERSIONS))
def test_conversions_return_the_dtype(name, dtype):
    x = td.asarray([1, 0], dtype=td.int32)
    converted = getattr(x, name)()
    assert converted.dtype is dtype
    assert getattr(converted, name)() is converted
    assert td.jit(lambda x: getattr(x, name)())(x).dtype is dtype


def test_conversions_are_differentiable():
    x = td.asarray([1.0, 2.0], requires_grad=True)
    x.double().sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_sizes_and_memory():
    x = td.zeros((2, 3))
    assert (x.dim(), x.ndimension(), x.numel(), x.nelement(), x.element_size()) == (2, 2, 6, 6, 4)
    assert (x.stride(), x.stride(1), x.stride(-2), x.T.stride()) == ((3, 1), 1, 3, (1, 3))
    assert x[1].data_ptr() == x.data_ptr() + 12
    assert (x.is_cpu, x.is_cuda, x.is_meta, x.to("meta").is_meta, x.get_device()) == (
        True,
        False,
        False,
        True,
        -1,
    )
    assert (td.numel(x), x.type(), x.type(td.int8).dtype) == (6, "float32", td.int8)


def test_predicates():
    x = td.zeros(2)
    assert x.is_floating_point() and x.is_signed() and not x.is_complex() and not x.bool().is_signed()
    assert td.is_complex(x.cfloat()) and not x.cfloat().is_floating_point() and not x.byte().is_signed()
    assert td.is_nonzero(td.asarray(2)) and x.is_same_size(td.ones(2)) and not x.is_inference()


def test_to_takes_all_forms_of_pytorch():
    x, like = td.zeros(2), td.zeros(3, dtype=td.float64)
    assert (
        x.to(like).dtype is x.type_as(like).dtype is x.to("cpu", td.float64, True, False).dtype is td.float64
    )
    assert x.to(td.float32) is x
    assert x.to(td.float32, False, True) is not x
    assert x.to(None) is x


def test_new_tensors_have_dtype_and_device():
    x = td.zeros(2, dtype=td.int16)
    assert x.new_zeros(2, 3).spec == td.zeros((2, 3), dtype=td.int16).spec
    assert x.new_ones((2,)).tolist() == [1, 1]
    assert x.new_full((2,), 7, dtype=td.int8).tolist() == [7, 7]
    assert x.new_empty(2, dtype=td.float32, requires_grad=True).requires_grad
    given = td.asarray([3, 4])
    assert x.new_tensor(given).dtype is td.int16
    assert x.to("meta").new_ones(3).device == "meta"


def test_shapes_like_another_tensor():
    x, y = td.arange(6), td.zeros((2, 3))
    assert (
        x.view(2, -1).tolist() == x.view_as(y).tolist() == x.reshape_as(y).tolist() == [[0, 1, 2], [3, 4, 5]]
    )
    assert x.view((3, 2)).storage() is x.storage()
    assert td.zeros(3).expand_as(y).shape == (2, 3)
    with pytest.raises(errors.ValueArgumentError, match="copy"):
        y.T.view(6)


def test_conjugate_transposes():
    x = td.asarray([[1 + 2j, 3.0]])
    assert x.H.tolist() == x.mH.tolist() == td.adjoint(x).tolist() == [[1 - 2j], [3 + 0j]]
    real = td.zeros((2, 3))
    assert real.mH.storage() is real.storage()
    with pytest.raises(errors.ShapeError, match="mH"):
        td.zeros((2, 2, 2)).H  # noqa: B018


def test_elements_are_replaced_by_functions():
    x = td.asarray([[1.0, 2.0]])
    assert x.apply_(lambda value: value + 1) is x
    assert x.map_(td.asarray([10.0, 20.0]), lambda one, two: one * two).tolist() == [[20.0, 60.0]]


def test_data_is_detached_and_can_be_set():
    x = td.asarray([1.0, 2.0], requires_grad=True)
    x.data.mul_(2)
    assert x.tolist() == [2.0, 4.0]
    other = td.asarray([5.0, 6.0])
    x.data = other
    assert x.requires_grad and x.storage() is other.storage()
    (x * x).sum().backward()
    assert x.grad.tolist() == [10.0, 12.0]
    with pytest.raises(errors.DTypeError, match="same dtype"):
        x.data = td.asarray([1, 2])


def test_graph_of_a_result():
    x = td.asarray([1.0, 2.0], requires_grad=True)
    y = x * 2.0
    z = td.concat([y, x])
    assert x.grad_fn is None and td.zeros(2).grad_fn is None
    assert (y.grad_fn.name(), repr(y.grad_fn)) == ("MulBackward0", "<MulBackward0>")
    assert y.grad_fn == y.grad_fn and hash(y.grad_fn) == hash(y.grad_fn) and y.grad_fn != z.grad_fn
    names = [(function.name(), index) for function, index in z.grad_fn.next_functions]
    assert names == [("MulBackward0", 0), ("AccumulateGrad", 0)]
    assert z.grad_fn.next_functions[0][0] == y.grad_fn
    assert not z.grad_fn.next_functions[1][0].next_functions


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda x: x * 2, "Mul"),
        (lambda x: (x / x).sum(), "Sum Div"),
        (lambda x: (-x).exp(), "Exp Neg"),
        (lambda x: x.sqrt().clone(), "Clone Sqrt"),
        (lambda x: (x - 1).permute(0), "Permute Sub"),
        (lambda x: x.index_select(0, td.asarray([1])).add_(1), "Add"),
    ],
)
def test_names_of_graph_functions_are_those_of_pytorch(function, names):
    node, seen = function(td.asarray([1.0, 2.0], requires_grad=True)).grad_fn, []
    while node.next_functions and len(seen) < len(names.split()):
        seen.append(node.name())
        node = node.next_functions[0][0]
    assert seen == [f"{name}Backward0" for name in names.split()]


def test_name_of_a_function_of_the_user():
    x = td.asarray([1.0], requires_grad=True)

    class Double(td.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    assert Double.apply(x).grad_fn.name() == "DoubleBackward"


def test_accumulate_grad_has_the_leaf():
    x = td.asarray([1.0, 2.0], requires_grad=True)
    weight = td.nn.Parameter(td.ones(2))
    y = x + weight
    variables = [function.variable for function, _ in y.grad_fn.next_functions]
    assert variables[0] is x
    assert variables[1] is weight
    with pytest.raises(AttributeError, match="AddBackward0"):
        _ = y.grad_fn.variable
    reference = weakref.ref(x)
    del x, variables
    assert reference() is None  # the graph refers to the leaf's gradient only
    assert y.grad_fn.next_functions[0][0].variable is None


def test_writes_through_data_are_not_counted():
    x = td.asarray([1.0, 2.0], requires_grad=True)
    y = x * x
    data = x.data
    data[0] = 5.0
    data.add_(1.0)
    assert (x._version, data._version) == (0, 2)
    assert x.tolist() == [6.0, 3.0]
    y.sum().backward()
    assert x.grad.tolist() == [12.0, 6.0]  # of the new elements
    z = x * x
    x.detach().add_(1.0)
    assert x._version == 1
    with pytest.raises(td.errors.VersionError):
        z.sum().backward()


def test_state_of_autograd():
    x = td.zeros(2)
    x.requires_grad = True
    assert x.requires_grad and x.is_leaf
    y = x * 2.0
    assert not y.retains_grad
    y.retain_grad()
    assert y.retains_grad
    version = y._version
    y.add_(1)
    assert y._version == version + 1
    assert y.detach_() is y
    assert y.is_leaf and not y.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    assert np.asarray(x).tolist() == [0.0, 0.0]


def test_views_are_not_detached_in_place():
    y = td.asarray([[1.0, 2.0]], requires_grad=True) * 2.0
    with pytest.raises(errors.UnsupportedError, match="view"):
        y[0].detach_()


def test_functions_of_linear_algebra():
    x = td.asarray([[2.0, 0.0], [0.0, 4.0]])
    assert x.det().item() == td.det(x).item() == 8.0
    assert (
        x.inverse().tolist() == x.pinverse().tolist() == td.inverse(x).tolist() == [[0.5, 0.0], [0.0, 0.25]]
    )
    assert x.matrix_power(2).tolist() == [[4.0, 0.0], [0.0, 16.0]]


def test_special_functions():
    x = td.asarray([0.25, 0.5])
    for name, function in (
        ("lgamma", "gammaln"),
        ("digamma", "digamma"),
        ("erfinv", "erfinv"),
        ("logit", "logit"),
    ):
        expected = getattr(td.special, function)(x).tolist()
        assert getattr(x, name)().tolist() == getattr(td, name)(x).tolist() == expected
    assert td.asarray([0.0]).logit(eps=0.5).tolist() == [0.0]
    assert x.xlogy(1.0).tolist() == [0.0, 0.0]


def test_forms_of_indexing():
    x = td.arange(6).reshape(2, 3)
    assert x.select(1, -1).tolist() == [2, 5]
    assert x.select(0, 1).storage() is x.storage()
    assert x.masked_select(x > 3).tolist() == td.masked_select(x, x > 3).tolist() == [4, 5]
    assert td.arange(2).masked_select(td.asarray([[True], [False]])).tolist() == [0, 1]
    indices = (td.asarray([0, 0]), td.asarray([1, 1]))
    assert x.index_put(indices, 10, accumulate=True)[0].tolist() == [0, 21, 2]
    assert x.index_put_(indices, td.asarray([7, 7])) is x
    assert x.index_put_(indices, 1, True)[0].tolist() == [0, 9, 2]
