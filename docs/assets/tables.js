// Let keys reach tables that are wider than the screen; the theme wraps them when a page is shown.
document$.subscribe(() =>
  setTimeout(() => {
    for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
      table.tabIndex = 0;
      table.setAttribute("role", "region");
      table.setAttribute("aria-label", "Table");
    }
  }),
);
