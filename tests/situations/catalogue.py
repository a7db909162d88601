"""All situations, in the order that halves them."""

from itertools import chain, product

from tests.situations import classes, columns, order, signals, tables, targets, weights
from tests.situations.situation import Situation, situations

RATES, ROWS = (0.001, 0.002, 0.01, 0.05), (500, 3000, 20_000)

ALL: tuple[Situation, ...] = tuple(
    chain(
        situations(weights.constant_weights, factor=(1e-6, 1e-3, 3.7, 1e3, 1e6)),
        situations(weights.random_weights),
        situations(weights.integer_weights),
        situations(weights.zero_weights),
        situations(weights.copies),
        situations(weights.copies_with_other_labels),
        situations(weights.copied_minority),
        situations(weights.weighted_minority),
        situations(weights.balanced),
        situations(classes.rare, 6, rate_and_rows=tuple(product(RATES, ROWS))),
        situations(classes.many, classes_and_rows=((3, 20), (10, 20), (30, 15), (100, 10))),
        situations(classes.single_rows),
        situations(classes.unequal_sizes),
        situations(signals.noise, n=(100, 500, 3000)),
        situations(signals.noise_of_classes),
        situations(signals.noise_of_numbers, n=(100, 1000)),
        situations(signals.noise_columns),
        situations(signals.noise_columns_with_steps),
        situations(signals.wide, n=(100, 400)),
        situations(signals.wide_numbers),
        situations(signals.linear_classes, n=(150, 1000)),
        situations(signals.linear_numbers, n=(150, 1000)),
        situations(signals.exact_numbers),
        situations(signals.steps),
        situations(signals.exclusive_or),
        situations(signals.products),
        situations(signals.waves),
        situations(signals.separable),
        situations(order.groups_of_like_rows),
        situations(order.groups_of_numbers),
        situations(order.sorted_by_class),
        situations(order.sorted_by_number),
        situations(order.drift),
        situations(order.drift_with_a_clock),
        situations(order.two_clusters),
        situations(order.outliers),
        situations(order.wrong_labels),
        situations(columns.heavy_columns),
        situations(columns.heavy_columns_of_numbers),
        situations(columns.constant_columns),
        situations(columns.copied_columns),
        situations(columns.row_numbers),
        situations(columns.missing_at_random),
        situations(columns.missing_where_large),
        situations(columns.large_offsets),
        situations(columns.tiny_scales),
        situations(columns.unlike_scales),
        situations(columns.correlated_columns),
        situations(targets.heavy_targets),
        situations(targets.log_normal_targets),
        situations(targets.unequal_variance),
        situations(targets.counts),
        situations(targets.rare_numbers),
        situations(targets.far_targets),
        situations(tables.breast_cancer),
        situations(tables.wine, 8),
        situations(tables.iris, 8),
        situations(tables.digits),
        situations(tables.diabetes, 8),
        situations(tables.people, n=(200, 1000)),
        situations(tables.short_texts, n=(100, 1000)),
        situations(tables.newsgroups),
        situations(columns.few_values, values=(3, 6, 10)),
        situations(columns.few_values_of_numbers),
    )
)
CHOSEN, OTHER = ALL[::2], ALL[1::2]
HALVES = {"chosen": CHOSEN, "other": OTHER}
