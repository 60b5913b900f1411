"""Fit scikit-learn's and skrub's own transformers on a history, and export them.

Imported only to fit: a decision needs none of these packages.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from tercet.checks import Matrix
from tercet.encode import columns
from tercet.encode.columns import CYCLES, PARTS, Column
from tercet.encode.kinds import Field, read, study
from tercet.encode.options import EncoderOptions
from tercet.encode.tables import flatten, rows_of

_DTYPES: dict[str, Any] = {
    "number": "float64",
    "category": "object",
    "date": "datetime64[us]",
    "text": pd.StringDtype("python"),  # Arrow's strings refuse lone surrogates
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Library:
    """The fitted transformers, as slow and as exact as their makers wrote them."""

    fields: list[Field]
    pipeline: ColumnTransformer

    def frame(self, table: Any) -> pd.DataFrame:
        """Return the frame that the pipeline takes."""
        rows = [flatten(row) for row in rows_of(table)]
        cells = {field.name: [row.get(field.name) for row in rows] for field in self.fields}
        return pd.DataFrame(
            {
                field.name: _series(field.kind, read(field.name, field.kind, cells[field.name]))
                for field in self.fields
            }
        )

    def transform(self, table: Any) -> Matrix:
        """Return the features of each row, slowly."""
        return np.asarray(self.pipeline.transform(self.frame(table)), dtype=np.float64)


def fit(table: Any, *, kinds: Mapping[str, str], options: EncoderOptions) -> Library:
    """Study the history and fit one transformer a column."""
    fields = study(rows_of(table), kinds, options)
    steps: list[tuple[str, Any, Any]] = []
    for i, field in enumerate(fields):
        if field.varies:
            steps.append((f"{i}", *_transformer(field, options)))
        if field.gaps:
            steps.append((f"{i} is missing", FunctionTransformer(pd.isna), [field.name]))
    pipeline = ColumnTransformer(steps, sparse_threshold=0)
    history = pd.DataFrame({field.name: _series(field.kind, field.values) for field in fields})
    # Texts of equal n-grams leave the SVD 0 / 0 of their variance, and some capitals have no small letter.
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Upper case characters found in vocabulary")
        pipeline.fit(history)
    return Library(fields=fields, pipeline=pipeline)


def export(library: Library) -> list[Column]:
    """Return what the transformers learned, as plain columns."""
    fitted = library.pipeline.named_transformers_
    exported: list[Column] = []
    for i, field in enumerate(library.fields):
        if field.varies:
            exported.append(_EXPORTS[field.kind](field, fitted[f"{i}"]))
        elif field.gaps:
            exported.append(columns.Presence(name=field.name))
    return exported


def calendar_frame(dates: pd.Series) -> pd.DataFrame:
    """Return the PARTS and CYCLES of dates in pandas' own arithmetic.

    skrub's DatetimeEncoder is no help here: it rounds the seconds to float32 (two minutes, today) and
    gives every month 30 days.
    """
    day = dates.dt.normalize()
    of_day = (dates - day) / pd.Timedelta(days=1)
    turns = {
        "day": of_day,
        "week": (dates.dt.day_of_week + of_day) / 7,
        "year": (dates.dt.day_of_year - 1 + of_day) / (365 + dates.dt.is_leap_year),
    }
    parts = {
        "year": dates.dt.year,
        "month": dates.dt.month,
        "day": dates.dt.day,
        "weekday": dates.dt.day_of_week,
        "hour": dates.dt.hour,
        "seconds": (dates - pd.Timestamp(0).as_unit("us")).dt.total_seconds(),
    }
    for cycle, turn in turns.items():
        parts[f"sin of {cycle}"] = np.sin(2 * np.pi * turn)
        parts[f"cos of {cycle}"] = np.cos(2 * np.pi * turn)
    return pd.DataFrame(parts).astype("float64")


def _series(kind: str, values: list[Any]) -> pd.Series:
    return pd.Series(values, dtype=_DTYPES[kind])


def _transformer(field: Field, options: EncoderOptions) -> tuple[Any, Any]:
    """Return an unfitted transformer and the column selection it takes: a list means a frame."""
    match field.kind:
        case "number":
            return make_pipeline(StandardScaler(), _zeros()), [field.name]
        case "category":
            return _one_hot(field, options), [field.name]
        case "date":
            return _dates(field), field.name
        case _:
            return _string_encoder(field, options), field.name


def _zeros() -> SimpleImputer:
    return SimpleImputer(strategy="constant", fill_value=0.0)


def _one_hot(field: Field, options: EncoderOptions) -> OneHotEncoder:
    # The labels are given, so that a missing value is none of them: like any unseen one it counts as rare,
    # and has an indicator besides.
    labels = sorted({value for value in field.values if value is not None})
    return OneHotEncoder(
        categories=[np.array(labels, dtype=object)],
        max_categories=options.max_categories,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
    )


def _dates(field: Field) -> Any:
    distinct = calendar_frame(_series("date", field.values)).nunique()
    varying = {"seconds", *distinct.index[distinct > 1]}
    scaled = make_pipeline(StandardScaler(), _zeros())
    return make_pipeline(
        FunctionTransformer(calendar_frame),
        ColumnTransformer(
            [
                ("parts", scaled, [part for part in PARTS if part in varying]),
                ("cycles", _zeros(), [cycle for cycle in CYCLES if cycle in varying]),
            ]
        ),
    )


def _string_encoder(field: Field, options: EncoderOptions) -> Any:
    from skrub import StringEncoder  # a slow import, which a history without texts is spared

    texts = [text or "" for text in field.values]
    counter = CountVectorizer(
        analyzer="char_wb", ngram_range=options.ngram_sizes, max_features=options.max_ngrams
    )
    vocabulary = counter.fit(texts).get_feature_names_out().tolist()
    # Beyond the rank of the history a component is noise; skrub wants fewer than rows and than n-grams.
    distinct = {tuple(columns.words(text)) for text in texts}
    rank = min(len(distinct), len(texts) - 1, len(vocabulary) - 1)
    return StringEncoder(
        n_components=max(1, min(options.text_components, rank)),
        ngram_range=options.ngram_sizes,
        vocabulary=vocabulary,
        random_state=0,  # the SVD is sketched: equal histories shall give equal encoders
    )


def _export_number(field: Field, fitted: Any) -> Column:
    scaler = fitted[0]
    return columns.Number(
        name=field.name, gaps=field.gaps, mean=float(scaler.mean_[0]), scale=float(scaler.scale_[0])
    )


def _export_category(field: Field, fitted: OneHotEncoder) -> Column:
    rare = fitted.infrequent_categories_[0]
    pooled = set() if rare is None else set(rare)
    return columns.Category(
        name=field.name,
        gaps=field.gaps,
        labels=tuple(label for label in fitted.categories_[0] if label not in pooled),
        pooled=bool(pooled),
    )


def _export_date(field: Field, fitted: Any) -> Column:
    (_, scaled, parts), (_, _, cycles) = fitted[1].transformers_[:2]
    scaler = scaled[0]
    return columns.Date(
        name=field.name,
        gaps=field.gaps,
        parts=(*parts, *cycles),
        means=(*scaler.mean_.tolist(), *(0.0 for _ in cycles)),
        scales=(*scaler.scale_.tolist(), *(1.0 for _ in cycles)),
    )


def _export_text(field: Field, fitted: Any) -> Column:
    ngrams = tuple(fitted.vocabulary)
    width = fitted.n_components_
    # skrub skips the decomposition of a single n-gram.
    loadings = fitted.tsvd_.components_.T if width < len(ngrams) else np.eye(width)
    return columns.Text(
        name=field.name,
        gaps=field.gaps,
        sizes=fitted.ngram_range,
        ngrams=ngrams,
        idf=np.asarray(fitted.vectorizer_.idf_, dtype=np.float64),
        components=np.ascontiguousarray(loadings, dtype=np.float64) / float(fitted.scaling_factor_),
    )


_EXPORTS = {
    "number": _export_number,
    "category": _export_category,
    "date": _export_date,
    "text": _export_text,
}
