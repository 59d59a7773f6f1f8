"""Rows of a library's own tables: what is written by hand comes first."""

from __future__ import annotations

from streamlint.models import Models


def test_rows_that_are_written_by_hand_come_first() -> None:
    table = {"library": "torch", "fallback": True, "call": [{"names": ["a.f", "a.g", "torch.Tensor.h"], "effect": "touch"}]}
    for order in (1, -1):
        models = Models()
        for data in (table, {"library": "torch", "call": [{"names": ["a.f", "a.*", "torch.Tensor.*"], "effect": "unknown"}]})[::order]:
            models.add(data, "rows.toml")
        effects = [row.effect for name in ("a.f", "a.g", "a.h") if (row := models.call(name)) is not None]
        assert effects == ["unknown", "touch", "unknown"]
        method = models.method("torch.Tensor", "h")
        assert method is not None
        assert method.effect == "touch"
