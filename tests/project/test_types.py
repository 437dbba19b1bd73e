"""Annotations name real types: how many contain ``Any``, and that those of public functions do not."""

import ast
import collections
import functools
import inspect
import types

import pytest
import tandem as td
from source_tree import ROOT, syntax_trees
from tandem.registry.function import OperatorFunction

pytestmark = pytest.mark.once

SHARE = 0.15
FOLDER_SHARE = {
    "control": 0.05,
    "custom": 0.05,
    "debug": 0.06,
    "eager": 0.09,
    "fft": 0.02,
    "linalg": 0.02,
    "lowering": 0.04,
    "operators": 0.09,
    "profiler": 0.03,
    "special": 0.03,
    "transforms": 0.07,
}
NAMESPACES = (td, td.linalg, td.fft, td.special, td.random, td.autograd)
TYPED_FOLDERS = ("linalg", "fft", "special", "operators", "eager")
# Here results and the arguments of bodies are pytrees of the caller's own kind, and so may be Any.
ARGUMENT_FOLDERS = ("control", "custom", "debug", "profiler", "transforms")
ANY = {
    "Tensor.item": "a Python number of a type that only the dtype tells",
    "Tensor.tolist": "a number or nested lists",
    "Function.forward": "users override it with arguments of their own",
    "Function.backward": "users override it with gradients of their own",
    "Function.apply": "what the user's forward returns",
    "load": "whatever tree was saved",
    "autocast.cached_cast": "any argument of an operator",
    "autocast.promote_type": "any arguments of an operator",
}


def has_any(annotation, aliases=frozenset()):
    """Whether an annotation, as an expression or a string, names ``Any`` or an alias of it."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval")
    names = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(annotation)}
    return "Any" in names or bool(names & aliases)


def aliases_of_any(tree):
    """Names of a module that are ``Any`` under another name."""
    assigned = (node for node in tree.body if isinstance(node, ast.Assign))
    return {
        target.id for node in assigned if getattr(node.value, "id", "") == "Any" for target in node.targets
    }


def statements(tree):
    """The statements of a module at every depth."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, field, ())


def annotations_of(node):
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        a = node.args
        arguments = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
        return [*filter(None, (argument.annotation for argument in arguments)), *filter(None, [node.returns])]
    return [node.annotation] if isinstance(node, ast.AnnAssign) else []


@functools.cache
def count_annotations():
    """For each folder of the package the number of annotations, and the number of those with ``Any``."""
    total, with_any = collections.Counter(), collections.Counter()
    for path, tree in syntax_trees().items():
        folder, aliases = path.relative_to(ROOT).parts[0], aliases_of_any(tree)
        annotations = [annotation for node in statements(tree) for annotation in annotations_of(node)]
        total[folder] += len(annotations)
        with_any[folder] += sum(has_any(annotation, aliases) for annotation in annotations)
    return total, with_any


def test_few_annotations_contain_any():
    total, with_any = count_annotations()
    assert with_any.total() <= SHARE * total.total()


@pytest.mark.parametrize("folder", FOLDER_SHARE)
def test_folder_has_few_annotations_with_any(folder):
    total, with_any = count_annotations()
    assert total[folder] and with_any[folder] <= FOLDER_SHARE[folder] * total[folder]


def test_has_any_sees_nested_and_quoted_names():
    wanted = {
        "Any": True,
        "list[Any]": True,
        "'dict[str, Any]'": True,
        "typing.Any": True,
        "AnyOf": False,
        "X": True,
    }
    found = {text: has_any(ast.parse(text, mode="eval").body, {"X"}) for text in wanted}
    assert found == wanted


def functions_of(name, member):
    """(name, function) of a function, of an operator's body, or of each public method of a class."""
    if isinstance(member, OperatorFunction):
        member = member.decl.body
    if inspect.isclass(member):
        for key, method in vars(member).items():
            function = method.fget if isinstance(method, property) else getattr(method, "__func__", method)
            function = inspect.unwrap(function) if callable(function) else function
            if not key.startswith("_") and inspect.isfunction(function):
                yield f"{name}.{key}", function
    elif inspect.isfunction(member):
        yield name, inspect.unwrap(member)


def public_functions(folders):
    """(name, function) of each public function and method that the folders define."""
    modules = tuple(f"tandem.{folder}." for folder in folders)
    for namespace in NAMESPACES:
        for name in getattr(namespace, "__all__", dir(namespace)):
            member = getattr(namespace, name)
            if not name.startswith("_") and not isinstance(member, types.ModuleType):
                for full_name, function in functions_of(name, member):
                    if function.__module__.startswith(modules):
                        yield full_name, function


class WithoutCallables(ast.NodeTransformer):
    """Leave out what the functions that are passed take and return."""

    def visit_Subscript(self, node):
        return node.value if getattr(node.value, "id", "") == "Callable" else self.generic_visit(node)


def functions_with_any(functions):
    """The names of the functions that have ``Any`` in an annotation."""
    return {
        name
        for name, function in functions.items()
        for text in function.__annotations__.values()
        if has_any(ast.parse(str(text), mode="eval"))
    }


def test_public_functions_have_no_any():
    functions = dict(public_functions(TYPED_FOLDERS))
    assert len(functions) > 350
    assert functions_with_any(functions) == ANY.keys()


def test_arguments_of_public_functions_have_no_any():
    functions = dict(public_functions(ARGUMENT_FOLDERS))
    assert len(functions) > 50
    texts = {
        f"{name}({key})": ast.parse(str(text), mode="eval")
        for name, function in functions.items()
        for key, text in function.__annotations__.items()
        if key != "return"
    }
    assert not [name for name, tree in texts.items() if has_any(WithoutCallables().visit(tree))]


@pytest.mark.parametrize("path", ["__init__.pyi", "eager/tensor/signatures.pyi"])
def test_stubs_have_no_any(path):
    tree = ast.parse((ROOT / path).read_text())
    public = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    )
    with_any = {node.name for node in public if any(map(has_any, annotations_of(node)))}
    assert with_any <= {"item", "tolist"}
