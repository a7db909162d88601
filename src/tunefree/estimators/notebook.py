"""What notebooks show of an estimator: scikit-learn's diagram of its parameters, and what was learned."""

from __future__ import annotations

from html import escape
from typing import Any

from sklearn.utils import estimator_html_repr

MOST_MEMBERS = 5  # that are named


class LearnedInNotebooks:
    """A mixin, which stands before scikit-learn's classes, of estimators with a model.

    What was learned: the rows, the progressive loss, and the members with the largest weights.
    """

    _learned: Any

    def _html_repr(self) -> str:
        return f"{estimator_html_repr(self)}{self._learned_html()}"

    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        return shown | ({"text/html": self._html_repr()} if "text/html" in shown else {})

    def _learned_html(self) -> str:
        if not hasattr(self, "_learned"):
            return ""
        model, seen = self._learned.model, self._learned.progress.progressive[0]
        shares = sorted(model.shares_by_member().items(), key=lambda share: -share[1])
        facts = [("rows learned", f"{seen.rows:,}"), ("progressive loss", f"{seen.mean_loss():.6g}")]
        of = "the mean that is corrected" if model.options.is_pool else "predictions"
        facts += [(name, f"{100 * share:.1f} % of {of}") for name, share in shares[:MOST_MEMBERS]]
        facts += [(f"{len(shares) - MOST_MEMBERS} other members", "the rest")] if len(shares) > MOST_MEMBERS else []
        rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in facts)
        return f"<table><caption>What was learned</caption><tbody>{rows}</tbody></table>"
