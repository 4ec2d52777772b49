"""JSON schema of the merged configuration, generated from the typed models."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from reproduction.pipeline.config import Config, DataSource, LargestJob, Paper
from reproduction.pipeline.registry import Recipe, known_keys, known_papers, recipes


def schema() -> str:
    """The schema as text, each paper a top-level block."""
    definitions: dict[str, Any] = {}
    blocks: dict[str, Any] = {}
    for paper in known_keys():
        block = _definition(Paper, definitions)
        blocks[paper] = {"$ref": block, "description": f"The block of {paper}."}
        for name in recipes(paper):
            model = Recipe(paper, name).module.Parameters
            title = f"{paper}.{name}.Parameters"
            definitions[title] = TypeAdapter(model).json_schema() | {"title": title}
    shared = Config.model_json_schema(ref_template="#/$defs/{model}")["properties"]
    _definition(DataSource, definitions)
    _definition(LargestJob, definitions)
    listed = {
        "type": "array",
        "minItems": 1,
        "items": {"enum": known_papers()},
        "description": shared["papers"]["description"],
    }
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of privreg",
        "description": "The parameters of each recipe are in $defs.",
        "type": "object",
        "additionalProperties": False,
        "required": ["seed", "data", "papers"],
        "properties": shared | {"papers": listed} | blocks,
        "$defs": definitions,
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _definition(model: Any, definitions: dict[str, Any]) -> str:
    found = model.model_json_schema(ref_template="#/$defs/{model}")
    definitions.update(found.pop("$defs", {}))
    definitions[model.__name__] = found
    return f"#/$defs/{model.__name__}"
