"""Reports of estimators that learn row by row, and their display in notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from tunefree.core.registry import Registry
from tunefree.training.rises import drifts_of

# Reports stand above what they are of, and are imported when they are asked for.
REPORTS = Registry("kind of report", {"page": "tunefree.report.page:page_of"})
MOST_MEMBERS = 5  # that a notebook names


class Reported:
    """Estimators that have a record of their training, ``trained_``; to be inherited before scikit-learn's classes.

    Notebooks show scikit-learn's diagram of the parameters, and what was learned: the rows, the progressive loss, and
    the members with the largest weights.
    """

    _learned: Any

    def report(self, test: Any = None) -> Any:
        """The report of the model as a page of HTML, as `tunefree report` writes it.

        Parameters
        ----------
        test : path, sequence of paths, table or Source, optional
            Data with known targets, on which it is judged.

        Returns
        -------
        tunefree.report.page.Page
            It has ``html``, is written by ``save(path)``, and is shown in notebooks.

        Examples
        --------
        >>> from tunefree import ScInOLClassifier
        >>> page = ScInOLClassifier().fit({"age": [20.0, 60.0] * 100}, ["no", "yes"] * 100).report()
        >>> "scinol2" in page.html
        True
        """
        return REPORTS["page"](self.trained_, test)  # type: ignore[attr-defined]

    @property
    def drifts_(self) -> list[dict[str, Any]]:
        """Where the loss rose along the stream, and which columns changed most there.

        These are the largest rise and the latest, 64 in all. Columns are compared for the largest and the latest three.

        A sequential test of level 0.001 for the whole stream, and anew after each rise, for independent rows. It is
        known of models of :func:`tunefree.train`, and of these as long as they go on by rows of files.

        Returns
        -------
        list of dict
            Each has ``row``, ``file``, ``row_in_file``, ``time`` (by the first column of dates, or None), ``loss`` on
            ``rows`` rows from there, ``loss_before`` on ``rows_before`` rows before, ``rows_compared``,
            ``columns_compared`` and ``changed``: columns whose values, or whose relation to the target, differ most.

        Raises
        ------
        AttributeError
            If the losses were not followed in the order of the rows.

        Examples
        --------
        >>> import tunefree
        >>> model = tunefree.train({"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}, target="rich")
        >>> model.drifts_
        []
        """
        check_is_fitted(self)
        trained = self._learned
        if trained.rises is None:
            raise AttributeError(
                "there is no drifts_: only `tunefree.train` follows losses in the order of the rows, as in"
                " `tunefree.train(table, target=..., shuffle=False)`; fit() may learn them in an order of its own"
            )
        return drifts_of(trained)

    def history(self) -> Any:
        """Progressive losses of the first pass along the stream, as a table whose ``to_pandas()`` is a data frame.

        Returns
        -------
        pyarrow.Table
            ``rows``, and over the rows so far the means ``loss`` and ``error`` (absolute error in regression). Of each
            ``eval_set`` of ``fit`` ``valid_0_loss`` and ``valid_0_error``: means over the set of the model at that
            point, and in the last row of the finished one.

        Examples
        --------
        >>> from tunefree import ScInOLRegressor
        >>> ScInOLRegressor(passes=1).fit([[0.0], [1.0]] * 50, [0.0, 1.0] * 50).history()["rows"].to_pylist()
        [64, 70, 76, 83, 91, 99, 100]
        """
        check_is_fitted(self)
        return self._learned.progress.history()

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
        shares = sorted(model.predictor.shares().items(), key=lambda share: -share[1])
        facts = [("rows learned", f"{seen.rows:,}"), ("progressive loss", f"{seen.mean_loss():.6g}")]
        of = "the mean that is corrected" if model.pool is not None else "predictions"
        facts += [(name, f"{100 * share:.1f} % of {of}") for name, share in shares[:MOST_MEMBERS]]
        facts += [(f"{len(shares) - MOST_MEMBERS} other members", "the rest")] if len(shares) > MOST_MEMBERS else []
        rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in facts)
        return f"<table><caption>What was learned</caption><tbody>{rows}</tbody></table>"
