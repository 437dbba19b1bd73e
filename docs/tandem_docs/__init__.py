"""The generator of the reference pages, from the declarations of the operators; ``docs/conf.py`` runs it.

sources.py: the source text of functions and lambdas of a declaration
formulas.py: scalar bodies, folds, views and composites as readable formulas or code
docstrings.py: docstrings as Markdown
examples.py: run the examples of docstrings, and keep what they print
inventory.py: the documented operators: names, families, neighbours
operator_page.py: the page of one operator
function_pages.py: pages of the other public functions, by package
name_pages.py: names of other libraries, and what they are called in tandem
reference.py: write all pages and their indices
guide_tables.py: the tables of the guides for users of other libraries
"""
