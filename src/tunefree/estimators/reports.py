"""Reports of estimators that learn row by row."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from tunefree.core.registry import Registry

# Reports stand above what they are of, and are imported when they are asked for.
REPORTS = Registry("kind of report", {"page": "tunefree.report.page:page_of"})


class Reported:
    """Estimators that have a record of their training, ``trained_``."""

    def report(self, test: Any = None) -> Any:
        """What is known of the model as a page of HTML, as `tunefree report` writes it.

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

    def history(self) -> Any:
        """Progressive losses of the first pass along the stream, as a table whose ``to_pandas()`` is a data frame.

        Returns
        -------
        pyarrow.Table
            ``rows``, and over the rows so far the means ``loss`` and ``error`` (absolute error in regression).

        Examples
        --------
        >>> from tunefree import ScInOLRegressor
        >>> ScInOLRegressor(passes=1).fit([[0.0], [1.0]] * 50, [0.0, 1.0] * 50).history()["rows"].to_pylist()
        [64, 70, 76, 83, 91, 99, 100]
        """
        check_is_fitted(self)
        return self._learned.progress.history()  # type: ignore[attr-defined]
