"""Reading and changing nested dicts and lists at a path, without touching the original."""

from typing import Any

from nmt.config.yaml_text import KeyPath


def get(tree: Any, path: KeyPath) -> Any:
    """The value at `path`; None where there is nothing."""
    for part in path:
        if isinstance(part, int):
            tree = tree[part] if isinstance(tree, list) and part < len(tree) else None
        else:
            tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def replaced(tree: Any, path: KeyPath, value: Any) -> Any:
    """A copy with `value` at `path`. Sections that are missing, or null, are made; a list grows by one at most."""
    if not path:
        return value
    part, below = path[0], path[1:]
    if isinstance(part, int):
        items = list(tree or [])
        items[part : part + 1] = [replaced(get(items, (part,)), below, value)]
        return items
    section = dict(tree or {})
    section[part] = replaced(section.get(part), below, value)
    return section


def without(tree: Any, path: KeyPath) -> Any:
    """A copy without the key at `path`, which must be there."""
    section = get(tree, path[:-1])
    return replaced(tree, path[:-1], {key: value for key, value in section.items() if key != path[-1]})
