"""The command line, ``tandem`` or ``python -m tandem``.

- catalogue.py: ``tandem ops``
- commands.py: the commands and their options
- doctor.py: ``tandem doctor``
- overhead/: ``tandem overhead``
"""
