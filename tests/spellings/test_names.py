"""Names of other libraries exist in the namespaces that spell them; docs/other_libraries.md has the rest.

The lists are the public names of the library without modules. That of NumPy is without classes of dtypes, datetimes,
matrices, records, memory maps, iterator objects, and the settings and tests of the library.
"""

from pathlib import Path

import pytest
import tandem as td

FOLDER = Path(__file__).parent / "names"
DOCUMENT = Path(td.__file__).parent / "docs" / "other_libraries.md"
NAMESPACES = {  # file: the namespace, and the least share of names
    "jax_numpy.txt": (lambda: td.jax.numpy, 0.95),
    "numpy.txt": (lambda: td.numpy, 0.95),
}


@pytest.mark.parametrize("file", NAMESPACES)
def test_names_of_other_libraries_exist(file):
    namespace, least = NAMESPACES[file]
    names = (FOLDER / file).read_text().split()
    missing = [name for name in names if not hasattr(namespace(), name)]
    assert len(missing) <= (1 - least) * len(names), missing
    if DOCUMENT.exists():
        text = DOCUMENT.read_text()
        assert not [name for name in missing if f"`{name}`" not in text], (
            "the document lists every missing name"
        )
